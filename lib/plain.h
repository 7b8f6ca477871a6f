// The library's own kernels: products that no rung takes, where there is no cuBLAS (right for every layout, size and alignment, with
// scales and groups; not fast), and what comes before or after a rung.
#pragma once

#include <cstdint>

#include "common/problem.h"

namespace ladder {

/// D = alpha A B + beta C for any problem. Enqueues; throws CudaError.
void plain_gemm(const Problem& p);

/// C = beta C, which is not read where beta is 0. Enqueues; throws CudaError.
void scale_c(const Problem& p);

/// to[columns][ld_to] = from[rows][ld]'s transpose. Both are aligned to 16 bytes, both ld multiples of 4 elements. A row of `to` is
/// filled with zeros up to a multiple of 4. Enqueues; throws CudaError.
void transpose(const float* from, int rows, int columns, int ld, float* to, int ld_to, cudaStream_t stream);

/// Each of n columns of `height` elements, ld apart, becomes `column`. Enqueues; throws CudaError.
void fill_columns(const float* column, float* to, int64_t height, int64_t n, int64_t ld, cudaStream_t stream);

}  // namespace ladder
