// C = A B^T in BF16 by mma.sync: three stages of cp.async into swizzled shared memory, ldmatrix, and a store with bounds. With an
// argument, one fault is planted: the name says which.
#include <cuda_bf16.h>

#include <cstdint>
#include <string>
#include <vector>

#include "check.h"

enum Fault { none, wait_too_few, no_barrier, no_swizzle_on_load };

constexpr int bm = 64, bn = 64, bk = 32, stages = 3, threads = 128;

__device__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ void cp_async_16(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ void ldmatrix_x4(uint32_t (&d)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row)
               : "memory");
}
__device__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Byte of 16-byte chunk `chunk` of row `row` of a tile with rows of 64 bytes: two rows to the 32 banks.
template <bool swizzled>
__device__ uint32_t place(int row, int chunk) {
  return 64 * row + 16 * (swizzled ? chunk ^ (row / 2 % 4) : chunk);
}

/// Four warps, each 32 x 32 of the block's 64 x 64; A is m x k, B is n x k, k a multiple of 8.
template <Fault fault>
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k) {
  __shared__ __align__(128) unsigned char tiles[stages][2][bm * bk * 2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * bm, column0 = blockIdx.x * bn;

  const auto load = [&](int tile) {
    if (tile * bk < k) {
      for (int i = threadIdx.x; i < bm * 4; i += threads) {
        const int row = i / 4, chunk = i % 4, at = tile * bk + 8 * chunk;
        const bool in_a = row0 + row < m && at < k, in_b = column0 + row < n && at < k;
        cp_async_16(shared_address(tiles[tile % stages][0]) + place<true>(row, chunk),
                    in_a ? a + size_t(row0 + row) * k + at : a, in_a ? 16 : 0);
        cp_async_16(shared_address(tiles[tile % stages][1]) + place<true>(row, chunk),
                    in_b ? b + size_t(column0 + row) * k + at : b, in_b ? 16 : 0);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float sum[2][4][4] = {};
  for (int s = 0; s < stages - 1; ++s) load(s);
  for (int tile = 0; tile * bk < k; ++tile) {
    asm volatile("cp.async.wait_group %0;" ::"n"(fault == wait_too_few ? stages - 1 : stages - 2) : "memory");
    if (fault != no_barrier) __syncthreads();
    load(tile + stages - 1);
    constexpr bool swizzled = fault != no_swizzle_on_load;
    const uint32_t tile_a = shared_address(tiles[tile % stages][0]), tile_b = shared_address(tiles[tile % stages][1]);
    for (int step = 0; step < bk / 16; ++step) {
      uint32_t fa[2][4], fb[2][4];
      for (int i = 0; i < 2; ++i) {
        ldmatrix_x4(fa[i], tile_a + place<swizzled>(warp / 2 * 32 + 16 * i + lane % 16, 2 * step + lane / 16));
        ldmatrix_x4(fb[i], tile_b + place<swizzled>(warp % 2 * 32 + 16 * i + lane % 8 + lane / 16 * 8,
                                                    2 * step + lane / 8 % 2));
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) mma(sum[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + warp / 2 * 32 + 16 * i + lane / 4 + e / 2 * 8;
        const int column = column0 + warp % 2 * 32 + 8 * j + lane % 4 * 2 + e % 2;
        if (row < m && column < n) c[size_t(row) * n + column] = sum[i][j][e];
      }
}

template <Fault fault>
void check(int m, int n, int k) {
  std::vector<__nv_bfloat16> a(m * k), b(n * k);
  for (int i = 0; i < m * k; ++i) a[i] = __nv_bfloat16(float(i * 7 % 11 - 5));
  for (int i = 0; i < n * k; ++i) b[i] = __nv_bfloat16(float(i * 5 % 13 - 6));
  __nv_bfloat16 *device_a, *device_b;
  float* device_c;
  CHECK(cudaMalloc(&device_a, a.size() * 2));
  CHECK(cudaMalloc(&device_b, b.size() * 2));
  CHECK(cudaMalloc(&device_c, m * n * sizeof(float)));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * 2, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * 2, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(device_c, 0xff, m * n * sizeof(float)));
  gemm<fault><<<dim3((n + bn - 1) / bn, (m + bm - 1) / bm), threads>>>(device_a, device_b, device_c, m, n, k);
  std::vector<float> c(m * n);
  CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int step = 0; step < k; ++step) sum += float(a[i * k + step]) * float(b[j * k + step]);
      expect_equal(size_t(i) * n + j, c[size_t(i) * n + j], sum);
    }
}

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  if (fault == "wait_too_few") check<wait_too_few>(64, 64, 128);
  if (fault == "no_barrier") check<no_barrier>(64, 64, 128);
  if (fault == "no_swizzle_on_load") check<no_swizzle_on_load>(64, 64, 128);
  check<none>(128, 64, 256);
  check<none>(70, 50, 72);
  check<none>(1, 1, 8);
  return passed();
}
