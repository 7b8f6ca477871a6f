// Products that no rung takes, where there is no cuBLAS, and C = beta C. Right for every layout, size and alignment; not fast.
#pragma once

#include <cstdint>

#include "common/problem.h"

namespace ladder {

/// D = alpha A B + beta C for any problem. Enqueues; throws CudaError.
void plain_gemm(const Problem& p);

/// C = beta C, which is not read where beta is 0. Enqueues; throws CudaError.
void scale_c(const Problem& p);

/// Each of n columns of `height` elements, ld apart, becomes `column`. Enqueues; throws CudaError.
void fill_columns(const float* column, float* to, int64_t height, int64_t n, int64_t ld, cudaStream_t stream);

}  // namespace ladder
