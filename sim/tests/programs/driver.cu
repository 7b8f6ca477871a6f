// What programs of the runtime take from the driver's library, linked or asked for by name; and what is not supported.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>

#include "check.h"

__global__ void scale(float* x, float factor, int n) {
  extern __shared__ float row[];
  const int i = threadIdx.x;
  row[i] = x[i];
  __syncthreads();
  if (i < n) x[i] = factor * row[n - 1 - i];
}

void expect(const char* what, int got, int expected) {
  if (got == expected) return;
  std::printf("%s: got %d, expected %d\n", what, got, expected);
  std::exit(1);
}

/// Through the driver: the device, memory, and a kernel whose handle the runtime gives out.
void launch_by_driver() {
  CUdevice device;
  CUcontext context;
  int version, major, by_runtime;
  char name[64];
  expect("cuInit", cuInit(0), CUDA_SUCCESS);
  expect("cuDriverGetVersion", cuDriverGetVersion(&version), CUDA_SUCCESS);
  expect("cuDeviceGet", cuDeviceGet(&device, 0), CUDA_SUCCESS);
  expect("cuDeviceGet", cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  expect("cuDeviceGetName", cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
  CHECK(cudaDriverGetVersion(&by_runtime));
  expect("version", version, by_runtime);
  expect("attribute", cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), CUDA_SUCCESS);
  CHECK(cudaDeviceGetAttribute(&by_runtime, cudaDevAttrComputeCapabilityMajor, 0));
  expect("major", major, by_runtime);
  expect("cuCtxGetCurrent", cuCtxGetCurrent(&context), CUDA_SUCCESS);
  expect("cuCtxSetCurrent", cuCtxSetCurrent(context), CUDA_SUCCESS);

  constexpr int n = 64;
  float x[n];
  for (int i = 0; i < n; ++i) x[i] = float(i);
  CUdeviceptr memory;
  expect("cuMemAlloc", cuMemAlloc(&memory, sizeof x), CUDA_SUCCESS);
  expect("cuMemcpyHtoD", cuMemcpyHtoD(memory, x, sizeof x), CUDA_SUCCESS);
  cudaFunction_t function;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(scale)));
  expect("attribute", cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000),
         CUDA_SUCCESS);
  float factor = 3;
  int count = n;
  void* arguments[] = {&memory, &factor, &count};
  expect("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, n, 1, 1, 100000, nullptr, arguments, nullptr),
         CUDA_SUCCESS);
  CUlaunchConfig configuration = {};
  configuration.gridDimX = configuration.gridDimY = configuration.gridDimZ = 1;
  configuration.blockDimX = n;
  configuration.blockDimY = configuration.blockDimZ = 1;
  configuration.sharedMemBytes = sizeof x;
  expect("cuLaunchKernelEx", cuLaunchKernelEx(&configuration, function, arguments, nullptr), CUDA_SUCCESS);
  expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_SUCCESS);
  expect("cuMemcpyDtoH", cuMemcpyDtoH(x, memory, sizeof x), CUDA_SUCCESS);
  for (int i = 0; i < n; ++i) expect_equal(i, x[i], 9.0f * i);
  expect("cuMemFree", cuMemFree(memory), CUDA_SUCCESS);
}

int main() {
  launch_by_driver();

  const char* text;
  expect("cuGetErrorName", cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  expect("name", std::strcmp(text, "CUDA_ERROR_INVALID_VALUE"), 0);
  expect("cuGetErrorString", cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  expect("string", std::strcmp(text, "an illegal memory access was encountered"), 0);
  expect("unknown", cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);

  // The same function by name, from the runtime and from the driver: cuMemAlloc is cuMemAlloc_v2.
  void *from_runtime, *from_driver;
  cudaDriverEntryPointQueryResult found;
  CUdriverProcAddressQueryResult answer;
  CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &from_runtime, 12000, cudaEnableDefault, &found));
  expect("by version", found, cudaDriverEntryPointSuccess);
  expect("cuGetProcAddress", cuGetProcAddress("cuMemAlloc", &from_driver, 12000, 0, &answer), CUDA_SUCCESS);
  expect("the same", from_runtime == from_driver && from_driver == reinterpret_cast<void*>(&cuMemAlloc), true);
  CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &from_runtime, 12000, cudaEnableDefault, &found));
  expect("unknown", found, cudaDriverEntryPointSymbolNotFound);

  // What nothing stands in for: an error that names it, and the program goes on.
  CUmodule module;
  expect("cuModuleLoadData", cuModuleLoadData(&module, ""), CUDA_ERROR_NOT_SUPPORTED);
  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float2>();
  expect("channel", channel.x == 32 && channel.y == 32 && channel.z == 0 && channel.f == cudaChannelFormatKindFloat, 1);
  cudaMipmappedArray_t mipmapped;
  expect("arrays", cudaMallocMipmappedArray(&mipmapped, nullptr, {}, 1), cudaErrorNotSupported);
  expect("last error", cudaGetLastError(), cudaErrorNotSupported);
  return passed();
}
