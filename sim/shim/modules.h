// The program's fat binaries, and the kernels and variables in them, as its start-up code registers them. The PTX of a
// fat binary is parsed when a kernel or a variable of it is first used.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "cubin.h"
#include "executor/executor.h"
#include "executor/program.h"
#include "ptx/ir.h"
#include "shim/runtime.h"

namespace sim {

/// One fat binary: one translation unit of the program.
struct Binary {
  const void* wrapper;
  std::unique_ptr<ptx::Module> module = {};       ///< null until loaded
  int ptx_arch = 0;                               ///< of the PTX that was loaded: 80 for sm_80
  cudaError_t failed = cudaSuccess;               ///< why it could not be loaded
  std::map<std::string, KernelUsage> usage = {};  ///< of its kernels, where it holds machine code for the described GPU
};

struct Kernel {
  Binary* binary;
  std::string name;                             ///< of the PTX `.entry`
  const ptx::Function* function = nullptr;      ///< null until loaded
  std::unique_ptr<const Program> program = {};  ///< null until launched
  int smem_bytes = 0;                           ///< static shared memory
  int max_threads = 0;                          ///< per block; __launch_bounds__ may lower it
  int max_dynamic_smem = 0;                     ///< cudaFuncSetAttribute may raise it
  KernelUsage usage = {};                       ///< zeros where there is no machine code
  bool nonportable_clusters = false;            ///< of more than 8 blocks; likewise
};

struct Variable {
  Binary* binary;
  std::string name;
  size_t bytes;
  MemoryKind kind;
  uint64_t address = 0;  ///< 0 until loaded; that of a managed variable is fixed when it is registered
};

/// By the host's stub or by the handle that cudaGetKernel gave out; loaded. Otherwise cudaErrorInvalidDeviceFunction.
Kernel& find_kernel(const void* function);

/// By the host's shadow of the variable; loaded. Otherwise cudaErrorInvalidSymbol.
Variable& find_variable(const void* symbol);

}  // namespace sim
