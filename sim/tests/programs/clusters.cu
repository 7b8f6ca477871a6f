// Clusters by the launch's attribute and by the kernel's own dimensions: what can be launched, and what is refused.
#include <cuda_runtime.h>

#include "check.h"

__device__ int ranks[64];

__device__ void note_rank() {
  unsigned rank, size;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (threadIdx.x == 0) ranks[blockIdx.x] = static_cast<int>(100 * size + rank);
}
__global__ void free_size() { note_rank(); }
__global__ void __cluster_dims__(2, 1, 1) two() { note_rank(); }

template <class Kernel>
cudaError_t launch(Kernel kernel, unsigned grid, unsigned cluster) {
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = grid;
  configuration.blockDim = 32;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  const cudaError_t status = cudaLaunchKernelEx(&configuration, kernel);
  cudaGetLastError();
  return status;
}

void expect_ranks(int blocks, int cluster) {
  int got[64];
  CHECK(cudaMemcpyFromSymbol(got, ranks, sizeof got));
  for (int i = 0; i < blocks; ++i) expect_equal(i, got[i], 100 * cluster + i % cluster);
}

int main() {
  CHECK(launch(free_size, 12, 4));
  expect_ranks(12, 4);
  CHECK(launch(two, 6, 2));
  expect_ranks(6, 2);
  two<<<4, 32>>>();
  CHECK(cudaGetLastError());
  free_size<<<3, 32>>>();
  CHECK(cudaGetLastError());
  expect_ranks(3, 1);
  if (launch(free_size, 3, 2) == cudaSuccess || launch(two, 8, 4) == cudaSuccess ||
      launch(free_size, 16, 16) == cudaSuccess) {
    std::printf("a cluster that cannot be was launched\n");
    return 1;
  }
  CHECK(cudaFuncSetAttribute(free_size, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CHECK(launch(free_size, 16, 16));
  expect_ranks(16, 16);

  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, two));
  expect_equal(0, attributes.requiredClusterWidth, 2);
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = 132;
  configuration.blockDim = 1024;
  int clusters = 0;
  CHECK(cudaOccupancyMaxActiveClusters(&clusters, two, &configuration));
  if (clusters < 1) return 1;
  return passed();
}
