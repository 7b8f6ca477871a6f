// One mistake each, as one makes them while learning; docs/sim.md shows what the simulator says of them.
//   mistakes out_of_bounds
#include <cassert>
#include <cstring>
#include <map>
#include <string>

#include "check.h"

constexpr int threads = 64;

__global__ void out_of_bounds(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = 1;  // should be <
}

__global__ void misaligned(float* x, int) {
  float4* four = reinterpret_cast<float4*>(x + 1);  // no multiple of 16 bytes
  four[threadIdx.x] = {1, 2, 3, 4};
}

__global__ void uninitialised(float* x, int) {
  __shared__ float tile[threads];
  if (threadIdx.x < threads - 1) tile[threadIdx.x] = x[threadIdx.x];  // the last one is forgotten
  __syncthreads();
  x[threadIdx.x] = tile[threads - 1 - threadIdx.x];
}

__global__ void race(float* x, int) {
  __shared__ float tile[threads];
  for (int step = 0; step < 2; ++step) {
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] += tile[threads - 1 - threadIdx.x];
  }  // the next step overwrites the tile: a second __syncthreads() is missing
}

__global__ void divergent(float* x, int n) {
  if (threadIdx.x < n) {
    x[threadIdx.x] = 1;
    __syncthreads();  // not all threads of a warp come here
  } else {
    __syncthreads();
  }
}

__global__ void deadlock(float* x, int) {
  if (threadIdx.x < 32)
    asm volatile("barrier.sync 1, 64;" ::: "memory");
  else
    asm volatile("barrier.sync 2, 64;" ::: "memory");  // should be 1
  x[threadIdx.x] = 1;
}

__global__ void shuffle(float* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] += __shfl_down_sync(0xffff, x[threadIdx.x], 16);  // from lanes that are not here
}

__global__ void assertion(float* x, int n) { assert(x[threadIdx.x] == float(n)); }

int main(int count, char** arguments) {
  const std::map<std::string, void (*)(float*, int)> kernels = {{"out_of_bounds", out_of_bounds},
                                                                {"misaligned", misaligned},
                                                                {"uninitialised", uninitialised},
                                                                {"race", race},
                                                                {"divergent", divergent},
                                                                {"deadlock", deadlock},
                                                                {"shuffle", shuffle},
                                                                {"assertion", assertion}};
  if (count == 2 && !std::strcmp(arguments[1], "--list")) {
    for (const auto& [name, kernel] : kernels) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (count != 2 || !kernels.count(arguments[1])) {
    std::printf("usage: mistakes KIND\n");
    return 2;
  }
  const int n = std::strcmp(arguments[1], "out_of_bounds") ? 16 : 1000;
  float* x;
  CHECK(cudaMalloc(&x, 1000 * sizeof(float)));
  CHECK(cudaMemset(x, 0, 1000 * sizeof(float)));
  kernels.at(arguments[1])<<<n / threads + 1, threads>>>(x, n);
  const cudaError_t status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(status));
  return status == cudaSuccess;
}
