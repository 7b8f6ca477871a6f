// What the shim's files share: the state of the simulated runtime, and how each of its calls reports an error.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <new>
#include <utility>

#include "device_memory.h"
#include "error.h"
#include "gpu.h"

namespace sim {

/// A call of the runtime that ends in an error code of its own, with no kernel at fault.
struct CallFailed {
  cudaError_t status;
};

struct Runtime {
  std::recursive_mutex mutex;  ///< one call at a time: a launch returns when its kernel has ended
  const Gpu* gpu;              ///< the described one; null where GEMM_LADDER_SIM_GPU names none, and no call succeeds
  DeviceMemory memory;
  cudaError_t sticky = cudaSuccess;  ///< a kernel's fault: every later call returns it, until cudaDeviceReset

  Runtime();
};

/// Lives as long as the process: programs unregister their kernels when all else is gone.
Runtime& runtime();

/// Within a call of the runtime.
const Gpu& described_gpu();

/// The thread's last error, which cudaGetLastError returns and clears; success does not clear it.
cudaError_t record(cudaError_t status);

/// The runtime's code for a fault.
cudaError_t status_of(Fault fault);

/// Prints the report and makes its code stick.
cudaError_t kernel_fault(const Error& error);

/// Prints what the simulator cannot do, and ends the call with cudaErrorNotSupported.
[[noreturn]] void not_supported(const char* what);

inline void require(bool condition, cudaError_t otherwise = cudaErrorInvalidValue) {
  if (!condition) throw CallFailed{otherwise};
}

/// How every call is made: one at a time, not after a fault, its errors recorded as the thread's last one.
template <class Body>
cudaError_t call(Body&& body) noexcept {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().sticky != cudaSuccess) return record(runtime().sticky);
  try {
    require(runtime().gpu, cudaErrorInvalidDevice);
    std::forward<Body>(body)();
    return cudaSuccess;
  } catch (const CallFailed& failed) {
    return record(failed.status);
  } catch (const Error& error) {
    return record(kernel_fault(error));
  } catch (const std::bad_alloc&) {
    return record(cudaErrorMemoryAllocation);
  }
}

}  // namespace sim

/// The runtime's functions are C functions with default visibility; sim/cudart.map gives them the runtime's version.
#define CUDA_API extern "C"
