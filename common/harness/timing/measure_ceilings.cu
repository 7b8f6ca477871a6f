#include "common/harness/timing/ceilings.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "common/harness/error.h"
#include "common/harness/operands.h"
#include "common/harness/timing/measure.h"
#include "common/harness/timing/sm_clock.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/wgmma.h"
#include "common/ptx/wgmma_n.h"
#include "common/rung.h"
#include "common/types.h"

namespace ladder {
namespace {

constexpr int threads = 256;
constexpr int repeats = 9;

/// 16 independent chains of FMAs per thread: enough to cover the latency of 4 cycles with 8 warps per scheduler or more.
constexpr int fma_chains = 16, fma_steps = 4096;
__global__ void __launch_bounds__(threads) fma_chain(float* out, float x, float y) {
  float value[fma_chains];
#pragma unroll
  for (int i = 0; i < fma_chains; ++i) value[i] = x + i + threadIdx.x;
#pragma unroll 16
  for (int step = 0; step < fma_steps; ++step)
#pragma unroll
    for (int i = 0; i < fma_chains; ++i) value[i] = value[i] * x + y;
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < fma_chains; ++i) sum += value[i];
  if (sum == 12345.0F) *out = sum;  // never true, but the compiler cannot know
}

/// Calls `f` with each element of an array of arrays.
template <class T, size_t count, class F>
__device__ void for_each(T (&array)[count], const F& f) {
#pragma unroll
  for (T& element : array)
    if constexpr (std::is_array_v<T>)
      for_each(element, f);
    else
      f(element);
}

/// 4 bytes of operands from -1 to 1, different for each seed. The operands decide the power, and so the clock.
template <class T>
__device__ uint32_t random_word(uint32_t seed) {
  T values[4 / sizeof(T)];
  for_each(values, [&](T& value) {
    seed = (seed ^ (seed >> 16)) * 0x7feb352dU;
    seed = (seed ^ (seed >> 15)) * 0x846ca68bU;
    seed ^= seed >> 16;
    value = from_float<T>(static_cast<int>(seed) * 0x1p-31F);
  });
  uint32_t word;
  memcpy(&word, values, sizeof word);
  return word;
}

/// The mma.sync of a block of rung 14 and nothing else: one block per SM, 64 x 64 results per warp, two steps of fragments,
/// every second column upwards. Of E4M3 it is a warp's 48 x 32 of rung 40: Hopper has no registers for more. After 256 steps (K = 4096 of
/// 16 bits) the signs change, so the sums go up and down and stay in a GEMM's range.
constexpr int mma_turns = 64, mma_turn_steps = 256;
template <Type type>
constexpr int mma_rows = Operand<type>::BYTES == 1 ? 48 : 64;
template <Type type>
constexpr int mma_columns = Operand<type>::BYTES == 1 ? 32 : 64;
template <Type type>
__global__ void __launch_bounds__(threads, 1) mma_loop(float* out) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using T = typename Operand<type>::Element;
  using TB = typename Operand<of_b(type)>::Element;
  constexpr int mma_m = mma_rows<type> / 16, mma_n = mma_columns<type> / 8;
  uint32_t rA[2][mma_m][4], rB[2][mma_n][2];
  uint32_t seed = (blockIdx.x * threads + threadIdx.x) * (sizeof(rA) + sizeof(rB)) / 4;
  for_each(rA, [&](uint32_t& word) { word = random_word<T>(seed++); });
  for_each(rB, [&](uint32_t& word) { word = random_word<TB>(seed++); });

  float acc[mma_m][mma_n][4] = {};
#pragma unroll 1
  for (int turn = 0; turn < mma_turns; ++turn) {
#pragma unroll 1
    for (int step = 0; step < mma_turn_steps; step += 2)
#pragma unroll
      for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int j = 0; j < mma_n; ++j)
#pragma unroll
          for (int i = 0; i < mma_m; ++i) {
            const int i_serpentine = j % 2 ? mma_m - 1 - i : i;
            Operand<type>::mma(acc[i_serpentine][j], rA[k][i_serpentine], rB[k][j]);
          }
    for_each(rA, [](uint32_t& word) {
      word ^= sizeof(T) == 1 ? 0x80808080U : sizeof(T) == 2 ? 0x80008000U : 0x80000000U;
    });
  }
  float sum = 0.0F;
  for_each(acc, [&](float d) { sum += d; });
  if (sum == 12345.0F) *out = sum;
#else
  __trap();  // an empty loop would be an endless rate
#endif
}

/// The wgmma of a block of rung 22 and nothing else: one block per SM, two warpgroups of 64 x 256 results, four k tiles of operands in
/// shared memory, one after another.
constexpr int wgmma_tiles = 4, wgmma_turns = 1024, wgmma_rows = 128 + 256;
constexpr int wgmma_smem_bytes = wgmma_tiles * wgmma_rows * 128;
template <Type type>
__global__ void __launch_bounds__(threads, 1) wgmma_loop(float* out) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint32_t words[];
  using T = typename Operand<type>::Element;
  using TB = typename Operand<of_b(type)>::Element;
  for (int i = threadIdx.x; i < wgmma_smem_bytes / 4; i += threads) {
    const uint32_t seed = (blockIdx.x * (wgmma_smem_bytes / 4) + i) * 2;
    words[i] = i / 32 % wgmma_rows < 128 ? random_word<T>(seed) : random_word<TB>(seed);
  }
  fence_proxy_async_shared();
  __syncthreads();
  const uint32_t rows_of_a = threadIdx.x / 128 * 64;
  const uint64_t swizzled =
      uint64_t{1} << 62 | uint64_t{1024 / 16} << 32 | uint64_t{1} << 16;  // rung 22 explains the bits
  const uint64_t tile = swizzled | shared_address(words) / 16;
  float acc[32][4] = {};
#pragma unroll 1
  for (int turn = 0; turn < wgmma_turns; ++turn) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < wgmma_tiles; ++i) {
      const uint64_t a = tile + i * wgmma_rows * 8 + rows_of_a * 8, b = tile + i * wgmma_rows * 8 + 128 * 8;
#pragma unroll
      for (int k_step = 0; k_step < 4; ++k_step) wgmma<type, 256>(acc, a + k_step * 2, b + k_step * 2, 1);
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
  float sum = 0.0F;
  for_each(acc, [&](float d) { sum += d; });
  if (sum == 12345.0F) *out = sum;
#else
  __trap();
#endif
}

__global__ void __launch_bounds__(threads)
    copy(const float4* __restrict__ from, float4* __restrict__ to, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * threads;
  for (size_t i = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

/// Every block reads the whole buffer past L1 (ld.global.cg). Each block starts at another place.
__global__ void __launch_bounds__(threads) read_l2(const float4* from, size_t count, float* out) {
  float sum = 0.0F;
  const size_t start = count / gridDim.x * blockIdx.x;
#pragma unroll 8
  for (size_t i = threadIdx.x; i < count; i += threads) {
    const size_t at = start + i < count ? start + i : start + i - count;
    const float4 v = __ldcg(from + at);
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 12345.0F) *out = sum;
}

/// 16-byte shared loads without bank conflicts: 512 bytes per warp and load, four wavefronts of 128 bytes.
constexpr int smem_steps = 2048, smem_loads = 8;
__global__ void __launch_bounds__(threads) read_smem(float* out) {
  __shared__ float4 tile[threads];
  tile[threadIdx.x] = make_float4(threadIdx.x, 1.0F, 2.0F, 3.0F);
  __syncthreads();
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x]));
  float sum = 0.0F;
  for (int step = 0; step < smem_steps; ++step)
#pragma unroll
    for (int i = 0; i < smem_loads; ++i) {
      float4 v;
      asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                   : "r"(at));
      sum += v.x + v.y + v.z + v.w;
    }
  if (sum == 12345.5F) *out = sum;
}

/// Medians over `repeats` runs.
struct Run {
  double ms;
  double clocks;  ///< of an SM; 0 where they could not be counted
};

/// Times `launch`, after one run that is not counted.
template <class Launch>
Run median(const Launch& launch) {
  cudaEvent_t start, stop;
  cuda_check(cudaEventCreate(&start));
  cuda_check(cudaEventCreate(&stop));
  std::vector<double> times, clocks;
  SmClock sm_clock(2);
  for (int i = 0; i <= repeats; ++i) {
    sm_clock.mark(nullptr);
    cuda_check(cudaEventRecord(start));
    launch();
    cuda_check(cudaGetLastError());
    cuda_check(cudaEventRecord(stop));
    sm_clock.mark(nullptr);
    cuda_check(cudaStreamSynchronize(nullptr));
    float ms = 0.0F;
    cuda_check(cudaEventElapsedTime(&ms, start, stop));
    const SmTime sm = sm_clock.finish()[0];
    if (i == 0) continue;
    times.push_back(ms);
    clocks.push_back(ms * sm.mhz() * 1e3);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return {quantile(times, 0.5), quantile(clocks, 0.5)};
}

}  // namespace

std::vector<Ceiling> measure_ceilings(const Device& device) {
  if (device.simulated) throw Waived("needs a GPU: on the simulator nothing can be timed");
  const int blocks = 8 * device.sm_count;
  const DeviceBuffer out(sizeof(float));
  std::vector<Ceiling> ceilings;
  const auto giga_per_second = [](double amount, double ms) { return amount / ms * 1e-6; };
  const auto add_compute = [&](const std::string& name, double flops, const Run& run) {
    ceilings.push_back({name, giga_per_second(flops, run.ms), "GFLOP/s"});
    if (run.clocks > 0.0) ceilings.push_back({name + "_per_clk", flops / run.clocks / device.sm_count, "FLOP/clk/SM"});
  };

  add_compute(ceiling_name(MathInstruction::ffma, Type::f32), 2.0 * fma_chains * fma_steps * threads * blocks,
              median([&] { fma_chain<<<blocks, threads>>>(out.as<float>(), 0.5F, 1.0F); }));
  const auto add_mma = [&]<Type type>() {
    const double k = 32.0 / Operand<type>::BYTES;
    const double flops =
        2.0 * mma_rows<type> * mma_columns<type> * k * mma_turns * mma_turn_steps * (threads / 32) * device.sm_count;
    add_compute(ceiling_name(MathInstruction::mma_sync, type), flops,
                median([&] { mma_loop<type><<<device.sm_count, threads>>>(out.as<float>()); }));
  };
  if (device.sm >= 80)
    for (const Type type : MmaSyncTypes::list) visit(MmaSyncTypes{}, type, add_mma);
  if (device.sm >= 89)
    for (const Type type : Fp8Types::list) visit(Fp8Types{}, type, add_mma);

  const auto add_wgmma = [&]<Type type>() {
    cuda_check(cudaFuncSetAttribute(wgmma_loop<type>, cudaFuncAttributeMaxDynamicSharedMemorySize, wgmma_smem_bytes));
    const double k = 128.0 / Operand<type>::BYTES * wgmma_tiles * wgmma_turns;
    add_compute(ceiling_name(MathInstruction::wgmma, type), 2.0 * 128 * 256 * k * device.sm_count,
                median([&] { wgmma_loop<type><<<device.sm_count, threads, wgmma_smem_bytes>>>(out.as<float>()); }));
  };
  if (device.sm == 90) {
    for (const Type type : MmaSyncTypes::list) visit(MmaSyncTypes{}, type, add_wgmma);
    for (const Type type : Fp8Types::list) visit(Fp8Types{}, type, add_wgmma);
  }

  const size_t copy_bytes = std::min<size_t>(size_t{1} << 30, free_memory() / 4) / 16 * 16;
  const DeviceBuffer from(copy_bytes), to(copy_bytes);
  cuda_check(cudaMemset(from.as<void>(), 1, copy_bytes));
  const Run copied = median([&] { copy<<<blocks, threads>>>(from.as<float4>(), to.as<float4>(), copy_bytes / 16); });
  ceilings.push_back({"dram", giga_per_second(2.0 * copy_bytes, copied.ms), "GB/s"});

  // A quarter of the L2, so that each of its partitions can hold it.
  const size_t l2_count = std::min(device.l2_bytes / 4, copy_bytes) / 16;
  const Run l2 = median([&] { read_l2<<<blocks, threads>>>(from.as<float4>(), l2_count, out.as<float>()); });
  ceilings.push_back({"l2", giga_per_second(16.0 * l2_count * blocks, l2.ms), "GB/s"});

  const Run smem = median([&] { read_smem<<<blocks, threads>>>(out.as<float>()); });
  const double smem_bytes = 16.0 * smem_loads * smem_steps * threads * blocks;
  ceilings.push_back({"smem", giga_per_second(smem_bytes, smem.ms), "GB/s"});
  return ceilings;
}

}  // namespace ladder
