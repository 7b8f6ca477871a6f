// Products that no rung takes, where there is no cuBLAS, and C = beta C. Right for every layout, size and alignment; not fast.
#pragma once

#include "common/problem.h"

namespace ladder {

/// D = alpha A B + beta C for any problem. Enqueues; throws CudaError.
void plain_gemm(const Problem& p);

/// C = beta C, which is not read where beta is 0. Enqueues; throws CudaError.
void scale_c(const Problem& p);

}  // namespace ladder
