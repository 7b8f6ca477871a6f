// What a program is told of its device, and what it can do with that: prints the figures, and tries each limit.
#include "check.h"

/// Which PTX runs, and %nsmid.
__global__ void look(int* seen) {
#ifdef __CUDA_ARCH__
  seen[0] = __CUDA_ARCH__;
#endif
  asm("mov.u32 %0, %%nsmid;" : "=r"(seen[1]));
}

/// Touches the last byte of its dynamic shared memory.
__global__ void fill(int bytes) {
  extern __shared__ char tile[];
  tile[bytes - 1] = 1;
}

void expect_launch(int bytes, cudaError_t expected) {
  fill<<<1, 1, bytes>>>(bytes);
  expect_equal(bytes, cudaGetLastError(), expected);
}

int blocks_per_sm(int threads, int smem) {
  int blocks;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, threads, smem));
  return blocks;
}

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  int clock, memory_clock, bus_bits;
  CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));
  CHECK(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0));
  CHECK(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, 0));
  std::printf("name %s\nsm %d%d\nsms %d at %d kHz\nl2 %d\nmemory %zu at %d kHz on %d bits\nclusters %d\n", device.name,
              device.major, device.minor, device.multiProcessorCount, clock, device.l2CacheSize, device.totalGlobalMem,
              memory_clock, bus_bits, device.clusterLaunch);

  int *seen, host[2];
  CHECK(cudaMalloc(&seen, sizeof host));
  look<<<1, 1>>>(seen);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, seen, sizeof host, cudaMemcpyDeviceToHost));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, look));
  std::printf("PTX %d\nnsmid %d\n", host[0], host[1]);
  expect_equal(0, attributes.ptxVersion, host[0] / 10);

  int optin, per_sm;
  CHECK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(cudaDeviceGetAttribute(&per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0));
  std::printf("shared memory %d of %d\n", optin, per_sm);
  constexpr auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  expect_launch(48 * 1024, cudaSuccess);
  expect_launch(48 * 1024 + 1, cudaErrorInvalidValue);
  expect_equal(1, cudaFuncSetAttribute(fill, attribute, optin + 1), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaFuncSetAttribute(fill, attribute, optin));
  expect_launch(optin, cudaSuccess);
  expect_launch(optin + 1, cudaErrorInvalidValue);

  std::printf("blocks of 32 threads %d, of 512 threads %d, of all shared memory %d\n", blocks_per_sm(32, 0),
              blocks_per_sm(512, 0), blocks_per_sm(32, optin));
  return passed();
}
