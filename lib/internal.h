// What lib/preload.cpp takes from lib/gemm_ladder.cpp beyond the C interface.
#pragma once

#include <functional>
#include <string>

#include "include/gemm_ladder.h"

namespace ladder {

/// A handle of a caller that has cuBLAS itself: it never calls cuBLAS, and leaves to the caller what cuBLAS does better.
gemm_ladder_status_t create_beside_cublas(gemm_ladder_handle_t* handle);

/// As gemm_ladder_run(); `done` is false, and nothing was enqueued, where the caller's cuBLAS is to compute it. It is true with an error
/// where a part was enqueued. `before` is called where a rung computes, right before it.
gemm_ladder_status_t run_beside_cublas(gemm_ladder_handle_t handle, const gemm_ladder_problem_t& problem, float alpha,
                                       const void* a, const void* b, float beta, void* c, bool& done,
                                       const std::function<void()>& before = {});

/// The stem of the rung for a product: "38_sgemm_layouts".
std::string rung_name(const gemm_ladder_problem_t& problem);

}  // namespace ladder
