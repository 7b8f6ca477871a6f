// Memory of the other kinds, copies between them, streams and events; and copies that are refused.
#include <cstring>

#include "check.h"

__global__ void twice(int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= 2;
}

void refused(cudaError_t status) {
  if (status != cudaErrorInvalidValue || cudaGetLastError() != cudaErrorInvalidValue) {
    std::printf("expected cudaErrorInvalidValue, got %s\n", cudaGetErrorName(status));
    std::exit(1);
  }
}

int main() {
  const int n = 100;
  cudaStream_t stream;
  cudaEvent_t start, stop;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));

  int *pinned, *managed, *device;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  CHECK(cudaMallocManaged(&managed, n * sizeof(int)));
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; ++i) pinned[i] = managed[i] = i;
  CHECK(cudaMemcpyAsync(device, pinned, n * sizeof(int), cudaMemcpyDefault, stream));
  CHECK(cudaEventRecord(start, stream));
  twice<<<1, 128, 0, stream>>>(device, n);
  twice<<<1, 128, 0, stream>>>(managed, n);
  twice<<<1, 128, 0, stream>>>(pinned, n);
  CHECK(cudaEventRecord(stop, stream));
  CHECK(cudaStreamSynchronize(stream));
  int values[n];
  CHECK(cudaMemcpy(values, device, sizeof values, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    expect_equal(i, values[i], 2 * i);
    expect_equal(i, managed[i], 2 * i);
    expect_equal(i, pinned[i], 2 * i);
  }
  float milliseconds = 1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  expect_equal(0, milliseconds, 0.0f);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, device + 1));
  expect_equal<int>(0, attributes.type, cudaMemoryTypeDevice);

  refused(cudaMemcpy(device, values, (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
  refused(cudaMemcpy(values, values, sizeof values, cudaMemcpyHostToDevice));
  refused(cudaMemset(values, 0, sizeof values));
  refused(cudaFree(device + 1));
  refused(cudaFree(pinned));
  CHECK(cudaFree(nullptr));

  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(managed));
  CHECK(cudaFree(device));
  refused(cudaFree(device));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaStreamDestroy(stream));
  return passed();
}
