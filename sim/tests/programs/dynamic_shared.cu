// Dynamic shared memory: a reversal in the default 48 KiB, then 100 KiB that have to be asked for.
#include <vector>

#include "check.h"

__global__ void reverse(int* values, int n) {
  extern __shared__ int copy[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) copy[i] = values[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = copy[n - 1 - i];
}

void run(int n) {
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = i;
  int* device;
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  CHECK(cudaMemcpy(device, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse<<<1, 96, n * sizeof(int)>>>(device, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(values.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) expect_equal(i, values[i], n - 1 - i);
  CHECK(cudaFree(device));
}

int main() {
  run(777);
  CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  run(25 * 1024);
  return passed();
}
