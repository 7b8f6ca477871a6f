// No fmt here: nvcc 13 rejects the consteval constructors of fmt 9.
#include "bench/ceilings.h"

#include <algorithm>
#include <fstream>

#include "common/harness/csv.h"
#include "common/harness/error.h"
#include "common/harness/measure.h"
#include "common/harness/operands.h"
#include "common/rung.h"

namespace ladder {
namespace {

constexpr int threads = 256;
constexpr int repeats = 9;

/// 16 independent chains of FMAs a thread: enough to cover the latency of 4 cycles with 8 warps a scheduler and more.
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
  if (sum == 12345.0F) *out = sum;  // never, but the compiler cannot know
}

__global__ void __launch_bounds__(threads)
    copy(const float4* __restrict__ from, float4* __restrict__ to, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * threads;
  for (size_t i = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

/// Every block reads the whole buffer past the L1 (ld.global.cg), each from a start of its own.
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

/// 16-byte shared loads without bank conflicts: 512 bytes a warp and load, four wavefronts of 128 bytes.
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

/// Median milliseconds of `launch` over `repeats` runs, after one that is not counted.
template <class Launch>
double median_ms(const Launch& launch) {
  cudaEvent_t start, stop;
  cuda_check(cudaEventCreate(&start));
  cuda_check(cudaEventCreate(&stop));
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    cuda_check(cudaEventRecord(start));
    launch();
    cuda_check(cudaGetLastError());
    cuda_check(cudaEventRecord(stop));
    cuda_check(cudaEventSynchronize(stop));
    float ms = 0.0F;
    cuda_check(cudaEventElapsedTime(&ms, start, stop));
    if (i > 0) times.push_back(ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return quantile(times, 0.5);
}

double value_of(const std::vector<Ceiling>& ceilings, const std::string& name) {
  const auto found = std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceiling& c) { return c.name == name; });
  if (found == ceilings.end()) throw std::runtime_error("no ceiling called " + name);
  return found->value;
}

}  // namespace

std::vector<Ceiling> measure_ceilings(const Device& device) {
  const int blocks = 8 * device.sm_count;
  const DeviceBuffer out(sizeof(float));

  const double fma_ms = median_ms([&] { fma_chain<<<blocks, threads>>>(out.as<float>(), 0.5F, 1.0F); });
  const double fma_flops = 2.0 * fma_chains * fma_steps * threads * blocks;

  const size_t copy_bytes = std::min<size_t>(size_t{1} << 30, free_memory() / 4) / 16 * 16;
  const DeviceBuffer from(copy_bytes), to(copy_bytes);
  cuda_check(cudaMemset(from.as<void>(), 1, copy_bytes));
  const double copy_ms =
      median_ms([&] { copy<<<blocks, threads>>>(from.as<float4>(), to.as<float4>(), copy_bytes / 16); });

  // A quarter of the L2, so that each of its partitions can hold it.
  const size_t l2_count = std::min(device.l2_bytes / 4, copy_bytes) / 16;
  const double l2_ms = median_ms([&] { read_l2<<<blocks, threads>>>(from.as<float4>(), l2_count, out.as<float>()); });

  const double smem_ms = median_ms([&] { read_smem<<<blocks, threads>>>(out.as<float>()); });
  const double smem_bytes = 16.0 * smem_loads * smem_steps * threads * blocks;

  const auto giga_per_second = [](double amount, double ms) { return amount / ms * 1e-6; };
  return {{"fp32_fma", giga_per_second(fma_flops, fma_ms), "GFLOP/s"},
          {"dram", giga_per_second(2.0 * copy_bytes, copy_ms), "GB/s"},
          {"l2", giga_per_second(16.0 * l2_count * blocks, l2_ms), "GB/s"},
          {"smem", giga_per_second(smem_bytes, smem_ms), "GB/s"}};
}

std::vector<std::string> ceiling_columns() { return {"name", "value", "unit", "gpu", "utc", "commit"}; }

std::vector<Ceiling> read_ceilings(const std::string& path, const Device& device) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw UsageError("--ceilings: cannot read '" + path + "'");
  std::vector<Ceiling> ceilings;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = split_csv_line(line);
    if (fields.size() != ceiling_columns().size())
      throw UsageError("--ceilings: '" + path + "' is no table of ceilings: " + line);
    if (fields[3] != device.name)
      throw UsageError("--ceilings: '" + path + "' is of " + fields[3] + ", this is " + device.name);
    char* end = nullptr;
    const double value = std::strtod(fields[1].c_str(), &end);
    if (*end != '\0' || !(value > 0.0))
      throw UsageError("--ceilings: '" + path + "' has no positive number here: " + line);
    ceilings.push_back({fields[0], value, fields[2]});
  }
  if (std::none_of(ceilings.begin(), ceilings.end(), [](const Ceiling& c) { return c.name == "fp32_fma"; }) ||
      std::none_of(ceilings.begin(), ceilings.end(), [](const Ceiling& c) { return c.name == "dram"; }))
    throw UsageError("--ceilings: '" + path + "' lacks fp32_fma or dram");
  return ceilings;
}

Floor time_floor(const std::vector<Ceiling>& ceilings, const Problem& p) {
  const double m = p.m, n = p.n, k = p.k;
  const double flops = 2.0 * m * n * k;
  const double bytes =
      (m * k + k * n) * operand_bytes(p.type) + m * n * result_bytes(p.type, p.out) * (p.beta == 0.0F ? 1.0 : 2.0);
  const Floor compute{flops / value_of(ceilings, "fp32_fma") * 1e-6, "fp32_fma"};
  const Floor memory{bytes / value_of(ceilings, "dram") * 1e-6, "dram"};
  return compute.ms >= memory.ms ? compute : memory;
}

}  // namespace ladder
