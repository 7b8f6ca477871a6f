// The functions of the driver that programs of the runtime call directly: what they ask of the device, its one context, memory,
// and launches of kernels that the runtime knows. Each is a call of the runtime: their error codes have the same numbers.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>
#include <string>

namespace {

CUresult code(cudaError_t status) { return static_cast<CUresult>(status); }

/// The one context, the device's primary one. Its handle is never looked into.
CUcontext context() { return reinterpret_cast<CUcontext>(uintptr_t{0x10}); }

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

struct Name {
  CUresult error;
  const char* text;
};
constexpr Name names[] = {
#define NAME(error) \
  { error, #error }
    NAME(CUDA_SUCCESS),
    NAME(CUDA_ERROR_INVALID_VALUE),
    NAME(CUDA_ERROR_OUT_OF_MEMORY),
    NAME(CUDA_ERROR_NOT_INITIALIZED),
    NAME(CUDA_ERROR_DEINITIALIZED),
    NAME(CUDA_ERROR_NO_DEVICE),
    NAME(CUDA_ERROR_INVALID_DEVICE),
    NAME(CUDA_ERROR_INVALID_IMAGE),
    NAME(CUDA_ERROR_INVALID_CONTEXT),
    NAME(CUDA_ERROR_NO_BINARY_FOR_GPU),
    NAME(CUDA_ERROR_INVALID_PTX),
    NAME(CUDA_ERROR_INVALID_SOURCE),
    NAME(CUDA_ERROR_FILE_NOT_FOUND),
    NAME(CUDA_ERROR_INVALID_HANDLE),
    NAME(CUDA_ERROR_ILLEGAL_STATE),
    NAME(CUDA_ERROR_NOT_FOUND),
    NAME(CUDA_ERROR_NOT_READY),
    NAME(CUDA_ERROR_ILLEGAL_ADDRESS),
    NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    NAME(CUDA_ERROR_LAUNCH_TIMEOUT),
    NAME(CUDA_ERROR_ASSERT),
    NAME(CUDA_ERROR_HARDWARE_STACK_ERROR),
    NAME(CUDA_ERROR_ILLEGAL_INSTRUCTION),
    NAME(CUDA_ERROR_MISALIGNED_ADDRESS),
    NAME(CUDA_ERROR_INVALID_ADDRESS_SPACE),
    NAME(CUDA_ERROR_INVALID_PC),
    NAME(CUDA_ERROR_LAUNCH_FAILED),
    NAME(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    NAME(CUDA_ERROR_NOT_PERMITTED),
    NAME(CUDA_ERROR_NOT_SUPPORTED),
    NAME(CUDA_ERROR_INVALID_CLUSTER_SIZE),
    NAME(CUDA_ERROR_UNKNOWN),
#undef NAME
};

CUresult find_name(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  for (const Name& name : names)
    if (name.error == error) {
      *text = name.text;
      return CUDA_SUCCESS;
    }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

// --- errors, the driver itself -----------------------------------------------------------------------------------------------

CUresult cuInit(unsigned) {
  int devices;
  return code(cudaGetDeviceCount(&devices));
}

CUresult cuDriverGetVersion(int* version) { return code(cudaDriverGetVersion(version)); }

CUresult cuGetErrorName(CUresult error, const char** text) { return find_name(error, text); }

CUresult cuGetErrorString(CUresult error, const char** text) {
  const CUresult known = find_name(error, text);
  if (known == CUDA_SUCCESS) *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return known;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* result) {
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(symbol, function, static_cast<unsigned>(version), flags, &found);
  if (result) *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return status == cudaSuccess && !*function && !result ? CUDA_ERROR_NOT_FOUND : code(status);
}

// --- the device and its context ------------------------------------------------------------------------------------------------

CUresult cuDeviceGetCount(int* count) { return code(cudaGetDeviceCount(count)); }

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  cudaDeviceProp properties;
  if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
  if (const cudaError_t status = cudaGetDeviceProperties(&properties, device)) return code(status);
  std::strncpy(name, properties.name, static_cast<size_t>(length - 1));
  name[length - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  cudaDeviceProp properties;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  const cudaError_t status = cudaGetDeviceProperties(&properties, device);
  *bytes = properties.totalGlobalMem;
  return code(status);
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return code(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const cudaError_t status = cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device);
  return status ? code(status) : code(cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device));
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice device) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  *result = context();
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (flags) *flags = 0;
  if (active) *active = 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* result) { return cuDevicePrimaryCtxRetain(result, 0); }

CUresult cuCtxSetCurrent(CUcontext given) {
  return !given || given == context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPushCurrent(CUcontext given) { return cuCtxSetCurrent(given); }

CUresult cuCtxPopCurrent(CUcontext* result) {
  if (result) *result = context();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) { return cuDeviceGet(device, 0); }

CUresult cuCtxSynchronize() { return code(cudaDeviceSynchronize()); }

// --- memory --------------------------------------------------------------------------------------------------------------------

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
  void* allocated = nullptr;
  const cudaError_t status = cudaMalloc(&allocated, bytes);
  *address = reinterpret_cast<CUdeviceptr>(allocated);
  return code(status);
}

CUresult cuMemFree(CUdeviceptr address) { return code(cudaFree(pointer(address))); }

CUresult cuMemGetInfo(size_t* free, size_t* total) { return code(cudaMemGetInfo(free, total)); }

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return code(cudaMemcpy(pointer(to), from, bytes, cudaMemcpyHostToDevice));
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return code(cudaMemcpy(to, pointer(from), bytes, cudaMemcpyDeviceToHost));
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return code(cudaMemcpy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return code(cudaMemcpyAsync(pointer(to), from, bytes, cudaMemcpyHostToDevice, stream));
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return code(cudaMemcpyAsync(to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return code(cudaMemcpyAsync(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, stream));
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return code(cudaMemset(pointer(to), value, count));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return code(cudaMemsetAsync(pointer(to), value, count, stream));
}

// --- streams and kernels -------------------------------------------------------------------------------------------------------

CUresult cuStreamSynchronize(CUstream stream) { return code(cudaStreamSynchronize(stream)); }

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return code(
      cudaFuncSetAttribute(reinterpret_cast<const void*>(function), static_cast<cudaFuncAttribute>(attribute), value));
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  cudaFuncAttributes all;
  if (const cudaError_t status = cudaFuncGetAttributes(&all, reinterpret_cast<const void*>(function)))
    return code(status);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = all.maxThreadsPerBlock;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(all.sharedSizeBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(all.localSizeBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = all.numRegs;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = all.maxDynamicSharedSizeBytes;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned dynamic_smem, CUstream stream, void** arguments,
                        void** extra) {
  if (extra) return CUDA_ERROR_NOT_SUPPORTED;
  return code(cudaLaunchKernel(reinterpret_cast<const void*>(function), dim3(grid_x, grid_y, grid_z),
                               dim3(block_x, block_y, block_z), arguments, dynamic_smem, stream));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* launch, CUfunction function, void** arguments, void** extra) {
  if (!launch) return CUDA_ERROR_INVALID_VALUE;
  if (extra) return CUDA_ERROR_NOT_SUPPORTED;
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(launch->gridDimX, launch->gridDimY, launch->gridDimZ);
  configuration.blockDim = dim3(launch->blockDimX, launch->blockDimY, launch->blockDimZ);
  configuration.dynamicSmemBytes = launch->sharedMemBytes;
  configuration.stream = launch->hStream;
  configuration.attrs = reinterpret_cast<cudaLaunchAttribute*>(launch->attrs);
  configuration.numAttrs = launch->numAttrs;
  return code(cudaLaunchKernelExC(&configuration, reinterpret_cast<const void*>(function), arguments));
}
