// A product of BF16 on the tensor cores of sm_100a: TMA brings A and B, one thread multiplies into tensor memory, four warps store D.
// Three stages; M, N and K as the tiles have them. With an argument it has one fault, which a kernel like it could have.
#include <cuda_bf16.h>

#include <cstring>
#include <vector>

#include "blackwell.h"

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
    init(full, stages);
    init(empty, stages);
    init(&done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 5) allocate(&tensor_address, fault == odd_columns ? 48 : 64);
  __syncthreads();

  if (warp == 4 && lane == 0) {
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % stages;
      if (fault != no_wait_for_empty) wait(&empty[stage], i / stages % 2 ^ 1);
      unsigned char* const tile = tiles + stage * (a_bytes + b_bytes);
      expect_bytes(&full[stage], a_bytes + b_bytes + (fault == more_bytes_expected ? 16 : 0));
      load_tile(&map_a, tile, i * BK, blockIdx.y * BM, &full[stage]);
      load_tile(&map_b, tile + a_bytes, i * BK, blockIdx.x * BN, &full[stage]);
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
      commit(&empty[stage]);
    }
    if (fault != no_last_commit) commit(&done);
  } else if (warp < 4) {
    if (fault != no_wait_for_products) wait(&done, 0);
    if (fault != no_fence_after_wait) asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const uint32_t quarter = fault == lanes_of_another_warp ? warp ^ 1 : warp;
    const int behind = fault == column_outside ? 8 : 0;
    for (int n = 0; n < BN; n += 8) {
      float v[8];
      load_columns(v, tensor_address + (quarter << 21) + n + behind);
      if (fault != no_wait_for_load) asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      for (int i = 0; i < 8; ++i) d[size_t(blockIdx.y * BM + threadIdx.x) * n_size + blockIdx.x * BN + n + i] = v[i];
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  __syncthreads();
  for (int i = 0; warp == 5 && i < (fault == not_given_back ? 0 : fault == given_back_twice ? 2 : 1); ++i)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tensor_address));
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
  constexpr auto bf16 = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  constexpr int bytes = stages * (a_bytes + b_bytes);
  CHECK(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply<<<dim3(n_size / BN, m_size / BM), 192, bytes>>>(map_of(bf16, 2, device_a, m_size, k_size, BM),
                                                           map_of(bf16, 2, device_b, n_size, k_size, BN), device_d,
                                                           n_size, k_size, fault);
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
