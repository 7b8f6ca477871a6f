// C = 2 A B by the WMMA API of <mma.h>, in FP16, BF16 and TF32, from global memory and from padded shared memory, with the
// accumulator scaled element by element. Small integers, so that the result is exact.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <vector>

#include "check.h"

using namespace nvcuda;

constexpr int m = 64, n = 64, k = 80;

/// One warp per tile of C; A and B row by row.
template <class T, class Stored, int wm, int wn, int wk, bool from_shared>
__global__ void gemm(const Stored* a, const Stored* b, float* c) {
  constexpr int padding = 16 / sizeof(Stored);
  __shared__ __align__(32) Stored tile_a[wm][wk + padding], tile_b[wk][wn + padding];
  const int row = blockIdx.y * wm, column = blockIdx.x * wn;
  wmma::fragment<wmma::accumulator, wm, wn, wk, float> sum;
  wmma::fill_fragment(sum, 0.0F);
  for (int step = 0; step < k; step += wk) {
    wmma::fragment<wmma::matrix_a, wm, wn, wk, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, wm, wn, wk, T, wmma::row_major> fb;
    if constexpr (from_shared) {
      for (int i = threadIdx.x; i < wm * wk; i += 32) tile_a[i / wk][i % wk] = a[(row + i / wk) * k + step + i % wk];
      for (int i = threadIdx.x; i < wk * wn; i += 32) tile_b[i / wn][i % wn] = b[(step + i / wn) * n + column + i % wn];
      __syncwarp();
      wmma::load_matrix_sync(fa, &tile_a[0][0], wk + padding);
      wmma::load_matrix_sync(fb, &tile_b[0][0], wn + padding);
      __syncwarp();
    } else {
      wmma::load_matrix_sync(fa, a + row * k + step, k);
      wmma::load_matrix_sync(fb, b + step * n + column, n);
    }
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0F;
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

template <class T, class Stored, int wm, int wn, int wk>
void check() {
  std::vector<Stored> a(m * k), b(k * n);
  for (int i = 0; i < m * k; ++i) a[i] = Stored(float(i * 7 % 11 - 5));
  for (int i = 0; i < k * n; ++i) b[i] = Stored(float(i * 5 % 13 - 6));
  Stored *device_a, *device_b;
  float* device_c;
  CHECK(cudaMalloc(&device_a, a.size() * sizeof(Stored)));
  CHECK(cudaMalloc(&device_b, b.size() * sizeof(Stored)));
  CHECK(cudaMalloc(&device_c, m * n * sizeof(float)));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(Stored), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(Stored), cudaMemcpyHostToDevice));
  for (const bool from_shared : {false, true}) {
    CHECK(cudaMemset(device_c, 0xff, m * n * sizeof(float)));
    if (from_shared)
      gemm<T, Stored, wm, wn, wk, true><<<dim3(n / wn, m / wm), 32>>>(device_a, device_b, device_c);
    else
      gemm<T, Stored, wm, wn, wk, false><<<dim3(n / wn, m / wm), 32>>>(device_a, device_b, device_c);
    std::vector<float> c(m * n);
    CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int step = 0; step < k; ++step) sum += float(a[i * k + step]) * float(b[step * n + j]);
        expect_equal(i * n + j, c[i * n + j], 2 * sum);
      }
  }
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_c));
}

int main() {
  check<__half, __half, 16, 16, 16>();
  check<__half, __half, 8, 32, 16>();
  check<__nv_bfloat16, __nv_bfloat16, 16, 16, 16>();
  check<__nv_bfloat16, __nv_bfloat16, 8, 32, 16>();
  check<wmma::precision::tf32, float, 16, 16, 8>();
  return passed();
}
