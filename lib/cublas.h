// cuBLAS, where there is one: opened when it is first needed, since not every program has it, and the simulator has none.
#pragma once

#include <cublas_v2.h>

#include <string>

namespace ladder {

/// The functions of cuBLAS that the library calls, as cublas_v2.h declares them.
struct CublasFunctions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasGemmStridedBatchedEx_64) gemm;
};

/// Those of this process: of the cuBLAS that it has loaded already, else of one that the loader finds. Null where there is none, as on the simulator.
const CublasFunctions* cublas_functions();

}  // namespace ladder
