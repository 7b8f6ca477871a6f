// Invalid launches: each returns the runtime's own error, the kernel does not run, and later calls succeed.
#include "check.h"

__device__ int runs;

__global__ void plain() { ++runs; }
__global__ void __launch_bounds__(64) bounded() { ++runs; }
__global__ void __cluster_dims__(2) pairs() { ++runs; }

void expect(const char* what, cudaError_t expected) {
  const cudaError_t status = cudaGetLastError();
  if (status == expected) return;
  std::printf("%s: got %s, expected %s\n", what, cudaGetErrorName(status), cudaGetErrorName(expected));
  std::exit(1);
}

/// `blocks` blocks of `kernel` in clusters of `size`.
void launch_clusters(void (*kernel)(), int blocks, int size) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = blocks;
  configuration.blockDim = 32;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  cudaLaunchKernelEx(&configuration, kernel);
}

int main() {
  plain<<<0, 32>>>();
  expect("no blocks", cudaErrorInvalidValue);
  plain<<<1, 0>>>();
  expect("no threads", cudaErrorInvalidValue);
  plain<<<1, 2048>>>();
  expect("2048 threads", cudaErrorInvalidValue);
  plain<<<1, dim3(1, 1, 65)>>>();
  expect("65 deep", cudaErrorInvalidValue);
  plain<<<dim3(1, 65536), 1>>>();
  expect("65536 high", cudaErrorInvalidValue);
  plain<<<1, 32, 48 * 1024 + 4>>>();
  expect("shared memory that was not asked for", cudaErrorInvalidValue);
  plain<<<1, 32, 1 << 20>>>();
  expect("more shared memory than there is", cudaErrorInvalidValue);
  bounded<<<1, 65>>>();
  expect("more threads than __launch_bounds__", cudaErrorInvalidValue);
  if (cudaFuncSetAttribute(plain, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024) != cudaErrorInvalidValue)
    return 1;
  expect("an attribute beyond the device", cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(plain, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  plain<<<1, 1, 227 * 1024>>>();
  expect("all shared memory", cudaSuccess);
  int count;
  CHECK(cudaMemcpyFromSymbol(&count, runs, sizeof count));
  expect_equal(0, count, 1);

  launch_clusters(plain, 3, 2);
  expect("three blocks in clusters of two", cudaErrorInvalidClusterSize);
  launch_clusters(plain, 9, 9);
  expect("a cluster of nine", cudaErrorInvalidClusterSize);
  launch_clusters(plain, 4, 0);
  expect("clusters of no block", cudaErrorInvalidClusterSize);
  launch_clusters(pairs, 4, 4);
  expect("other clusters than __cluster_dims__", cudaErrorInvalidClusterSize);
  pairs<<<3, 32>>>();
  expect("three blocks of __cluster_dims__(2)", cudaErrorInvalidClusterSize);
  launch_clusters(plain, 16, 16);
  expect("a cluster of sixteen", cudaErrorInvalidClusterSize);
  CHECK(cudaFuncSetAttribute(plain, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  launch_clusters(plain, 16, 16);
  expect("a cluster of sixteen, allowed", cudaSuccess);
  launch_clusters(plain, 17, 17);
  expect("a cluster of seventeen", cudaErrorInvalidClusterSize);

  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, bounded));
  expect_equal(0, attributes.maxThreadsPerBlock, 64);
  int blocks;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
  expect_equal(0, blocks, 8);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 32, 100 * 1024));
  expect_equal(0, blocks, 2);
  return passed();
}
