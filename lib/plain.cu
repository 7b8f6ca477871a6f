#include "common/operand_types.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"
#include "lib/plain.h"

namespace ladder {
namespace {

constexpr int TILE = 32;  // rows and columns of C per block, and elements along k per step

/// Element [row][column] of a matrix.
template <class T>
__device__ float element(const T* x, MatrixLayout layout, int ld, int row, int column) {
  return to_float(x[layout == MatrixLayout::row_major ? static_cast<size_t>(row) * ld + column
                                                      : static_cast<size_t>(column) * ld + row]);
}

/// As rung 02: tiles of A and B in shared memory, one result per thread, four of them here. A tile of C may have rows of several groups: each
/// multiplies by its own B, and has `scales_of_b` of the scales of B.
template <class TA, class TB, class TC>
__global__ void __launch_bounds__(256) plain(Problem p, size_t scales_of_b) {
  __shared__ float sA[TILE][TILE + 1], sB[TILE][TILE + 1];
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  const int tiles_n = ceil_div(p.n, TILE);
  const int tile_row = blockIdx.x / tiles_n * TILE, column = blockIdx.x % tiles_n * TILE + x;
  const bool scaled = p.scales != Scales::none;
  for (int group = 0; group < max(1, p.groups); ++group) {
    const int first_row = p.groups == 0 ? tile_row : max(tile_row, p.first_row[group]);
    const int end_row = min(min(tile_row + TILE, p.m), p.groups == 0 ? p.m : p.first_row[group + 1]);
    if (first_row >= end_row) continue;
    const TA* const a = static_cast<const TA*>(p.a);
    const TB* const b = static_cast<const TB*>(p.b) + static_cast<size_t>(group) * p.n * p.ldb;
    const float* const scale_b = p.scale_b + group * scales_of_b;
    float acc[4] = {};
    for (int k0 = 0; k0 < p.k; k0 += TILE) {
      for (int i = y; i < TILE; i += 8) {
        const int row = first_row + i, k_a = k0 + x, k_b = k0 + i;
        const bool a_there = row < end_row && k_a < p.k, b_there = k_b < p.k && column < p.n;
        sA[i][x] = a_there ? element(a, p.layout_a, p.lda, row, k_a) : 0.0F;
        sB[i][x] = b_there ? element(b, p.layout_b, p.ldb, k_b, column) : 0.0F;
        if (scaled && a_there) sA[i][x] *= p.scale_a[scale_index_a(p.scales, p.m, p.k, row, k_a)];
        if (scaled && b_there) sB[i][x] *= scale_b[scale_index_b(p.scales, p.k, column, k_b)];
      }
      __syncthreads();
      for (int k = 0; k < TILE; ++k)
        for (int i = 0; i < 4; ++i) acc[i] += sA[y + 8 * i][k] * sB[k][x];
      __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
      const int row = first_row + y + 8 * i;
      if (row >= end_row || column >= p.n) continue;
      TC* const c = static_cast<TC*>(p.c) + static_cast<size_t>(row) * p.ldc + column;
      *c = from_float<TC>(p.alpha * acc[i] + (p.beta == 0.0F ? 0.0F : p.beta * to_float(*c)));
    }
  }
}

template <class TC>
__global__ void __launch_bounds__(256) scale(Problem p) {
  for (int64_t column = blockIdx.y * 256 + threadIdx.x; column < p.n; column += gridDim.y * 256) {
    TC* const c = static_cast<TC*>(p.c) + static_cast<size_t>(blockIdx.x) * p.ldc + column;
    *c = p.beta == 0.0F ? TC(0.0F) : from_float<TC>(p.beta * to_float(*c));
  }
}

/// Squares of 64 x 64 elements.
__global__ void __launch_bounds__(256)
    transpose_square(const float* __restrict__ from, int rows, int columns, int ld, float* __restrict__ to, int ld_to) {
  __shared__ float square[64][65];
  const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16, across = ceil_div(columns, 64);
  const int row = blockIdx.x / across * 64, column = blockIdx.x % across * 64;
#pragma unroll
  for (int i = y; i < 64; i += 16) {
    float4 r = {};
    if (row + i < rows && column + x < columns)
      r = *reinterpret_cast<const float4*>(from + static_cast<size_t>(row + i) * ld + column + x);
    square[i][x] = r.x, square[i][x + 1] = r.y, square[i][x + 2] = r.z, square[i][x + 3] = r.w;
  }
  __syncthreads();
#pragma unroll
  for (int i = y; i < 64; i += 16)
    if (column + i < columns && row + x < rows)
      *reinterpret_cast<float4*>(to + static_cast<size_t>(column + i) * ld_to + row + x) =
          float4{square[x][i], square[x + 1][i], square[x + 2][i], square[x + 3][i]};
}

__global__ void __launch_bounds__(256) fill(const float* column, float* to, int64_t height, int64_t n, int64_t ld) {
  const int64_t row = blockIdx.x * int64_t{256} + threadIdx.x;
  if (row >= height) return;
  const float x = column[row];
  for (int64_t i = blockIdx.y; i < n; i += gridDim.y) to[i * ld + row] = x;
}

}  // namespace

void plain_gemm(const Problem& p) {
  const size_t scales_of_b = scale_stride_b(p.scales, p.n, p.k);
  visit(WholeByteTypes{}, p.type, p.out, [&]<Type type, class TC>() {
    const unsigned blocks = static_cast<unsigned>(ceil_div(p.m, TILE)) * ceil_div(p.n, TILE);
    plain<typename Operand<type>::Element, typename Operand<of_b(type)>::Element, TC>
        <<<blocks, 256, 0, p.stream>>>(p, scales_of_b);
  });
  cuda_check(cudaGetLastError());
}

void scale_c(const Problem& p) {
  visit(WholeByteTypes{}, p.type, p.out,
        [&]<Type type, class TC>() { scale<TC><<<dim3(p.m, min(ceil_div(p.n, 256), 4096)), 256, 0, p.stream>>>(p); });
  cuda_check(cudaGetLastError());
}

void transpose(const float* from, int rows, int columns, int ld, float* to, int ld_to, cudaStream_t stream) {
  const unsigned squares = static_cast<unsigned>(ceil_div(columns, 64)) * ceil_div(rows, 64);
  transpose_square<<<squares, 256, 0, stream>>>(from, rows, columns, ld, to, ld_to);
  cuda_check(cudaGetLastError());
}

void fill_columns(const float* column, float* to, int64_t height, int64_t n, int64_t ld, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((height + 255) / 256), static_cast<unsigned>(n < 4096 ? n : 4096));
  fill<<<blocks, 256, 0, stream>>>(column, to, height, n, ld);
  cuda_check(cudaGetLastError());
}

}  // namespace ladder
