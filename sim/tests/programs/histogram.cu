// A histogram: atomics in shared memory, then in global memory.
#include <vector>

#include "check.h"

constexpr int bins = 37;

__global__ void histogram(const unsigned* values, int n, unsigned* counts) {
  __shared__ unsigned own[bins];
  for (int i = threadIdx.x; i < bins; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[values[i] % bins], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += blockDim.x) atomicAdd(&counts[i], own[i]);
}

int main() {
  const int n = 10007;
  std::vector<unsigned> values(n), expected(bins), counts(bins);
  unsigned state = 1;
  for (unsigned& value : values) {
    value = state = state * 1664525u + 1013904223u;
    ++expected[value % bins];
  }
  unsigned *device, *result;
  CHECK(cudaMalloc(&device, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&result, bins * sizeof(unsigned)));
  CHECK(cudaMemset(result, 0, bins * sizeof(unsigned)));
  CHECK(cudaMemcpy(device, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
  histogram<<<5, 160>>>(device, n, result);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(counts.data(), result, bins * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (int i = 0; i < bins; ++i) expect_equal(i, counts[i], expected[i]);
  return passed();
}
