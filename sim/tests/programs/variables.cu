// Variables of the device: initialised and written __constant__, __device__ with and without an initial value (one is
// the address of another), and __managed__, which the host reads and writes by its name. Next to them is a
// table of functions; no kernel calls a function through it.
#include "check.h"

__constant__ float weights[4] = {1, 2, 3, 4};
__constant__ int offset;
__device__ int counter = 40;
__device__ int* const counter_address = &counter;
__device__ double table[3];
__managed__ int both = 5;

__device__ float twice(float x) { return 2 * x; }
__device__ float half(float x) { return x / 2; }
__device__ float (*functions[2])(float) = {twice, half};

__global__ void use(float* out) {
  const int i = threadIdx.x;
  out[i] = weights[i % 4] * i + offset;
  if (i < 3) table[i] = i + 0.5;
  if (i == 0) *counter_address += 2;
  if (i == 0) both *= 10;
  if (i == 0 && (!functions[0] || functions[0] == functions[1])) both = -1;
}

int main() {
  float* device;
  CHECK(cudaMalloc(&device, 32 * sizeof(float)));
  const int seven = 7;
  CHECK(cudaMemcpyToSymbol(offset, &seven, sizeof seven));
  const float nine = 9;
  CHECK(cudaMemcpyToSymbol(weights, &nine, sizeof nine, 2 * sizeof(float)));
  expect_equal(0, both, 5);
  both += 1;
  use<<<1, 32>>>(device);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  expect_equal(1, both, 60);
  float out[32];
  CHECK(cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost));
  const float expected[] = {1, 2, 9, 4};
  for (int i = 0; i < 32; ++i) expect_equal(i, out[i], expected[i % 4] * i + 7);
  int count;
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  expect_equal(0, count, 42);
  double values[3];
  CHECK(cudaMemcpyFromSymbol(values, table, sizeof values));
  for (int i = 0; i < 3; ++i) expect_equal(i, values[i], i + 0.5);
  void* address;
  size_t bytes;
  CHECK(cudaGetSymbolAddress(&address, table));
  CHECK(cudaGetSymbolSize(&bytes, table));
  expect_equal<size_t>(0, bytes, sizeof values);
  CHECK(cudaMemcpy(values, address, sizeof values, cudaMemcpyDeviceToHost));
  expect_equal(1, values[1], 1.5);
  return passed();
}
