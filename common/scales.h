// Where the scales of A and B lie (Scales, problem.h), for the host and the device. They are FP32, in the layouts that cuBLASLt has:
//
//   tensor   one float each                                             SCALAR_32F
//   rows     M floats for the rows of A, N for the columns of B         OUTER_VEC_32F
//   blocks   of A: scale_a[k / 128 * scale_ld_a(M) + row]               VEC128_32F, where M is a multiple of 4
//            of B: scale_b[col / 128 * scale_ld_b(K) + k / 128]         BLK128x128_32F
//   mx       a byte x each, for 2^(x - 127), at scale_index_vector()     VEC32_UE8M0
//   nv       a byte each, E4M3 without its sign, likewise                VEC16_UE4M3
//
// Blocks: neighbours in a row of scale_a belong to neighbouring rows of A, so that a tile's scales are contiguous at each k. Leading
// dimensions are multiples of 4, so that rows of scales begin at multiples of 16 bytes, as TMA takes them.
//
// Groups (Problem::groups) share the scales of A, as they share its rows: M counts the rows of all. Each has scales of B of its own, one group
// after another; the one of `tensor` is for all.
#pragma once

#include <cuda_fp8.h>

#include <cmath>
#include <cstddef>

#include "common/problem.h"

namespace ladder {

inline constexpr int SCALE_BLOCK = 128;  ///< elements along k, and columns of B, that share a scale

namespace scales_detail {
constexpr __host__ __device__ int blocks_of(int extent) { return (extent - 1) / SCALE_BLOCK + 1; }
constexpr __host__ __device__ int round_up_4(int count) { return (count + 3) / 4 * 4; }
constexpr __host__ __device__ size_t floats_of_vectors(int vector, int rows, int k) {
  return static_cast<size_t>(blocks_of(rows)) * ((k - 1) / (4 * vector) + 1) * 128;
}
}  // namespace scales_detail

/// Leading dimensions of the scales, with blocks: floats from one 128 of k to the next, and from one 128 columns of B to the next.
constexpr __host__ __device__ int scale_ld_a(int m) { return scales_detail::round_up_4(m); }
constexpr __host__ __device__ int scale_ld_b(int k) { return scales_detail::round_up_4(scales_detail::blocks_of(k)); }

/// Elements along k that share a scale; 0 but for mx and nv.
constexpr __host__ __device__ int scale_vector(Scales scales) {
  return scales == Scales::mx ? 32 : scales == Scales::nv ? 16 : 0;
}

/// Of mx and nv, the byte of `row` (of A, or column of B) and `k` of `depth`. 128 rows and four scales of each have 512 bytes, which tensor
/// memory holds in 32 lanes and 4 columns: 16 bytes per row modulo 32, of these 4 per row / 32. Bytes past the last row or k are 0.
constexpr __host__ __device__ size_t scale_index_vector(int vector, int depth, int row, int k) {
  const int along_k = (depth - 1) / (4 * vector) + 1;
  const size_t tile = static_cast<size_t>(row / 128) * along_k + k / (4 * vector);
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + k / vector % 4;
}

/// Where the scale of A's element in `row` and `k` of `depth` lies; A has m rows. Not for Scales::none.
constexpr __host__ __device__ size_t scale_index_a(Scales scales, int m, int depth, int row, int k) {
  if (const int vector = scale_vector(scales)) return scale_index_vector(vector, depth, row, k);
  if (scales == Scales::tensor) return 0;
  return scales == Scales::rows ? row : static_cast<size_t>(k / SCALE_BLOCK) * scale_ld_a(m) + row;
}
/// Of B's element in column `col` and row `k` of `depth`.
constexpr __host__ __device__ size_t scale_index_b(Scales scales, int depth, int col, int k) {
  if (const int vector = scale_vector(scales)) return scale_index_vector(vector, depth, col, k);
  if (scales == Scales::tensor) return 0;
  return scales == Scales::rows ? col : static_cast<size_t>(col / SCALE_BLOCK) * scale_ld_b(depth) + k / SCALE_BLOCK;
}

/// The scale at an index of the above.
inline __host__ __device__ float scale_at(Scales scales, const float* data, size_t index) {
  if (scale_vector(scales) == 0) return data[index];
  const unsigned char byte = reinterpret_cast<const unsigned char*>(data)[index];
  if (scales == Scales::mx) return ldexpf(1.0F, byte - 127);
  __nv_fp8_e4m3 x;
  x.__x = byte;
  return static_cast<float>(x);
}

/// How many floats the scales of A (m x k) and one B (k x n) take, padding included.
constexpr size_t scale_floats_a(Scales scales, int m, int k) {
  if (const int vector = scale_vector(scales)) return scales_detail::floats_of_vectors(vector, m, k);
  if (scales == Scales::blocks) return static_cast<size_t>(scales_detail::blocks_of(k)) * scale_ld_a(m);
  return scales == Scales::none ? 0 : scales == Scales::tensor ? 1 : m;
}
constexpr __host__ __device__ size_t scale_floats_b(Scales scales, int n, int k) {
  if (const int vector = scale_vector(scales)) return scales_detail::floats_of_vectors(vector, n, k);
  if (scales == Scales::blocks) return static_cast<size_t>(scales_detail::blocks_of(n)) * scale_ld_b(k);
  return scales == Scales::none ? 0 : scales == Scales::tensor ? 1 : n;
}

/// Floats from the scales of one group's B to those of the next.
constexpr __host__ __device__ size_t scale_stride_b(Scales scales, int n, int k) {
  return scales == Scales::tensor ? 0 : scale_floats_b(scales, n, k);
}

/// "none", "tensor", "rows", "blocks", "mx" or "nv".
constexpr const char* name(Scales scales) {
  constexpr const char* names[] = {"none", "tensor", "rows", "blocks", "mx", "nv"};
  return names[static_cast<int>(scales)];
}

}  // namespace ladder
