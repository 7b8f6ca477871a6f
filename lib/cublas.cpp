#include "lib/cublas.h"

#include <dlfcn.h>

namespace ladder {
namespace {

void* open_cublas() {
  if (dlsym(RTLD_DEFAULT, "cudaSimStopCounting")) return nullptr;  // the simulator: cuBLAS needs a driver
  for (const int how : {RTLD_NOLOAD, 0})
    for (const char* name : {"libcublas.so.13", "libcublas.so.12"})
      if (void* const library = dlopen(name, RTLD_LAZY | how)) return library;
  return nullptr;
}

}  // namespace

const CublasFunctions* cublas_functions() {
  static const CublasFunctions functions = [] {
    CublasFunctions found{};
    void* const library = open_cublas();
    if (!library) return found;
    const auto look = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    look(found.create, "cublasCreate_v2");
    look(found.destroy, "cublasDestroy_v2");
    look(found.set_stream, "cublasSetStream_v2");
    look(found.set_math_mode, "cublasSetMathMode");
    look(found.gemm, "cublasGemmStridedBatchedEx_64");
    return found;
  }();
  const bool whole =
      functions.create && functions.destroy && functions.set_stream && functions.set_math_mode && functions.gemm;
  return whole ? &functions : nullptr;
}

}  // namespace ladder
