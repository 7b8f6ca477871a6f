// A tree reduction in shared memory with a barrier at each level, then a sum of the blocks by atomicAdd.
#include <vector>

#include "check.h"

constexpr int threads = 128;

__global__ void sum(const int* values, int* result, int n) {
  __shared__ int partial[threads];
  int mine = 0;
  for (int i = blockIdx.x * threads + threadIdx.x; i < n; i += gridDim.x * threads) mine += values[i];
  partial[threadIdx.x] = mine;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, partial[0]);
}

int main() {
  const int n = 5003;
  std::vector<int> values(n);
  int expected = 0;
  for (int i = 0; i < n; ++i) expected += values[i] = i % 89 - 40;
  int *device, *result, got;
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  CHECK(cudaMalloc(&result, sizeof(int)));
  CHECK(cudaMemset(result, 0, sizeof(int)));
  CHECK(cudaMemcpy(device, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<7, threads>>>(device, result, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&got, result, sizeof(int), cudaMemcpyDeviceToHost));
  expect_equal(0, got, expected);
  return passed();
}
