// A product of BF16 on the tensor cores of sm_100a: TMA brings A and B, one thread multiplies into tensor memory, four warps store D.
// Three stages; M, N and K as the tiles have them. With an argument it has one fault, which a kernel like it could have.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

enum Fault {
  none,
  no_wait_for_products,
  no_fence_after_wait,
  lanes_of_another_warp,
  no_wait_for_load,
  not_given_back,
  given_back_twice,
  swizzle_of_64_bytes,
  no_wait_for_empty,
  no_last_commit,
  adds_to_nothing,
  k_offset,
  too_wide,
  descriptor_of_wgmma,
  all_lanes_multiply,
  odd_columns,
  column_outside,
  no_wait_for_full,
  stage_overwritten,
  unfenced_store,
  address_of_tile_outside,
  more_bytes_expected,
  types_that_differ,
  fault_count
};
const char* const fault_names[] = {"none",
                                   "no_wait_for_products",
                                   "no_fence_after_wait",
                                   "lanes_of_another_warp",
                                   "no_wait_for_load",
                                   "not_given_back",
                                   "given_back_twice",
                                   "swizzle_of_64_bytes",
                                   "no_wait_for_empty",
                                   "no_last_commit",
                                   "adds_to_nothing",
                                   "k_offset",
                                   "too_wide",
                                   "descriptor_of_wgmma",
                                   "all_lanes_multiply",
                                   "odd_columns",
                                   "column_outside",
                                   "no_wait_for_full",
                                   "stage_overwritten",
                                   "unfenced_store",
                                   "address_of_tile_outside",
                                   "more_bytes_expected",
                                   "types_that_differ"};
static_assert(sizeof fault_names / sizeof *fault_names == fault_count);

constexpr int BM = 128, BN = 64, BK = 64, stages = 3;
constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2;

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

__device__ void wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(
          address_of(barrier)),
      "r"(parity)
      : "memory");
}

__device__ void load(const CUtensorMap* map, const void* to, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          address_of(to)),
      "l"(map), "r"(x), "r"(y), "r"(address_of(barrier))
      : "memory");
}

/// Rows of 128 bytes with 128-byte swizzling, K contiguous.
__device__ uint64_t descriptor(uint32_t address, int fault) {
  const uint64_t version = fault == descriptor_of_wgmma ? 0 : 1, swizzle = fault == swizzle_of_64_bytes ? 4 : 2;
  if (fault == address_of_tile_outside) address += 150 * 1024;
  return uint64_t{address >> 4} | uint64_t{8 * 128 >> 4} << 32 | version << 46 | swizzle << 61;
}

__global__ void __launch_bounds__(192)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* d, int n_size,
             int k_size, int fault) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ uint64_t full[stages], empty[stages], done;
  __shared__ uint32_t tensor_address;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, k_tiles = k_size / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full[i])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&empty[i])));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&done)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 5) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address_of(&tensor_address)),
                 "r"(fault == odd_columns ? 48 : 64)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  __syncthreads();

  if (warp == 4 && lane == 0) {
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % stages;
      if (fault != no_wait_for_empty) wait(&empty[stage], i / stages % 2 ^ 1);
      unsigned char* const tile = tiles + stage * (a_bytes + b_bytes);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&full[stage])),
                   "r"(a_bytes + b_bytes + (fault == more_bytes_expected ? 16 : 0))
                   : "memory");
      load(&map_a, tile, i * BK, blockIdx.y * BM, &full[stage]);
      load(&map_b, tile + a_bytes, i * BK, blockIdx.x * BN, &full[stage]);
    }
  } else if (warp == 5 && (lane == 0 || fault == all_lanes_multiply)) {
    const uint32_t b_type = fault == types_that_differ ? 0 : 1, n = fault == too_wide ? 2 * BN : BN;
    const uint32_t shape = 1 << 4 | 1 << 7 | b_type << 10 | n / 8 << 17 | BM / 16 << 24;
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % stages;
      if (fault != no_wait_for_full) wait(&full[stage], i / stages % 2);
      if (fault == unfenced_store) *reinterpret_cast<volatile int*>(tiles + stage * (a_bytes + b_bytes)) = 0;
      const uint32_t tile = address_of(tiles + stage * (a_bytes + b_bytes));
      for (int k = 0; k < BK / 16; ++k)
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(
                tensor_address),
            "l"(descriptor(tile + 32 * k, fault)),
            "l"(descriptor(tile + a_bytes + (fault == k_offset ? 16 : 32) * k, 0)), "r"(shape),
            "r"(i + k + (fault == adds_to_nothing))
            : "memory");
      if (fault == stage_overwritten) *reinterpret_cast<volatile int*>(tiles + stage * (a_bytes + b_bytes)) = 0;
      asm volatile(
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address_of(&empty[stage]))
          : "memory");
    }
    if (fault != no_last_commit)
      asm volatile(
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address_of(&done))
          : "memory");
  } else if (warp < 4) {
    if (fault != no_wait_for_products) wait(&done, 0);
    if (fault != no_fence_after_wait) asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const uint32_t quarter = fault == lanes_of_another_warp ? warp ^ 1 : warp;
    const int behind = fault == column_outside ? 8 : 0;
    for (int n = 0; n < BN; n += 8) {
      float v[8];
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                   : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
                   : "r"(tensor_address + (quarter << 21) + n + behind));
      if (fault != no_wait_for_load) asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      for (int i = 0; i < 8; ++i) d[size_t(blockIdx.y * BM + threadIdx.x) * n_size + blockIdx.x * BN + n + i] = v[i];
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  __syncthreads();
  for (int i = 0; warp == 5 && i < (fault == not_given_back ? 0 : fault == given_back_twice ? 2 : 1); ++i)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tensor_address));
}

CUtensorMap map_of(void* matrix, int rows, int columns, int box_rows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  CUtensorMap map;
  const cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {cuuint64_t(columns) * 2};
  const cuuint32_t box[] = {BK, cuuint32_t(box_rows)}, step[] = {1, 1};
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  expect_equal(0,
               int(encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, size, stride, box, step,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)),
               int(CUDA_SUCCESS));
  return map;
}

int main(int argc, char** argv) {
  int fault = none;
  for (int i = 0; argc == 2 && i < fault_count; ++i)
    if (!std::strcmp(argv[1], fault_names[i])) fault = i;
  const int m_size = 256, n_size = 192, k_size = 448;
  std::vector<__nv_bfloat16> a(m_size * k_size), b(n_size * k_size);
  for (int i = 0; i < m_size * k_size; ++i) a[i] = __float2bfloat16(float(i * 7 % 5 - 2));
  for (int i = 0; i < n_size * k_size; ++i) b[i] = __float2bfloat16(float(i * 5 % 7 - 3));
  __nv_bfloat16 *device_a, *device_b;
  float* device_d;
  CHECK(cudaMalloc(&device_a, a.size() * 2));
  CHECK(cudaMalloc(&device_b, b.size() * 2));
  CHECK(cudaMalloc(&device_d, m_size * n_size * 4));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * 2, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * 2, cudaMemcpyHostToDevice));
  constexpr int bytes = stages * (a_bytes + b_bytes);
  CHECK(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply<<<dim3(n_size / BN, m_size / BM), 192, bytes>>>(
      map_of(device_a, m_size, k_size, BM), map_of(device_b, n_size, k_size, BN), device_d, n_size, k_size, fault);
  CHECK(cudaGetLastError());
  std::vector<float> d(m_size * n_size);
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * 4, cudaMemcpyDeviceToHost));
  for (int m = 0; m < m_size; ++m)
    for (int n = 0; n < n_size; ++n) {
      float sum = 0;
      for (int k = 0; k < k_size; ++k) sum += __bfloat162float(a[m * k_size + k]) * __bfloat162float(b[n * k_size + k]);
      expect_equal(m * n_size + n, d[m * n_size + n], sum);
    }
  return passed();
}
