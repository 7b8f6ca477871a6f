// What a program asks the runtime for by name: functions of the driver. They are in a library of their own, libcuda.so.1 next to
// this one, which also programs find that are linked with it.
#include <dlfcn.h>

#include <string>

#include "shim/runtime.h"
#include "text.h"

namespace sim {
namespace {

/// Null where the library is not there.
void* driver() {
  static void* const library = [] {
    Dl_info here;
    if (!dladdr(reinterpret_cast<const void*>(&driver), &here)) return static_cast<void*>(nullptr);
    const std::string path = here.dli_fname;
    return dlopen((path.substr(0, path.rfind('/') + 1) + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

/// The newest version of the function, as the driver's own cuGetProcAddress finds it.
void* driver_function(const std::string& name) {
  for (const char* version : {"_v3", "_v2", ""})
    if (void* const found = driver() ? dlsym(driver(), (name + version).c_str()) : nullptr) return found;
  return nullptr;
}

}  // namespace
}  // namespace sim

using namespace sim;

CUDA_API cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                                      cudaDriverEntryPointQueryResult* result) {
  return call([&] {
    require(symbol && function);
    *function = driver_function(symbol);
    if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (*function) return;
    print(stderr, "simulator: the driver's {} is not there\n", symbol);
    require(result, cudaErrorSymbolNotFound);
  });
}

CUDA_API cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, result);
}
