// Cooperative launches: blocks that wait for all others, by a counter in global memory, alone and in clusters; and what is refused.
#include <cuda_runtime.h>

#include "check.h"

__device__ unsigned arrived, left[1024];

/// Each block leaves a number, waits for everyone's, and adds them up: a block that has not started would keep all waiting.
__global__ void meet(unsigned* sums) {
  if (threadIdx.x == 0) {
    left[blockIdx.x] = blockIdx.x + 1;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived) : "memory");
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&arrived) : "memory");
    while (seen < gridDim.x);
  }
  __syncthreads();
  unsigned sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) sum += *static_cast<volatile unsigned*>(&left[block]);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// In clusters of two, each with a barrier of its own: odd clusters meet there once more than even ones. The right-hand block's number
/// comes from the left-hand one's shared memory.
__global__ void __cluster_dims__(2, 1, 1) meet_in_clusters(unsigned* sums) {
  __shared__ unsigned number;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const auto sync = [] { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); };
  if (threadIdx.x == 0) number = blockIdx.x + 1 - rank;
  sync();
  if (blockIdx.x / 2 % 2) sync();
  if (threadIdx.x == 0) {
    unsigned address, of_left, seen;
    asm("mapa.shared::cluster.u32 %0, %1, 0;"
        : "=r"(address)
        : "r"(static_cast<unsigned>(__cvta_generic_to_shared(&number))));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(of_left) : "r"(address) : "memory");
    left[blockIdx.x] = of_left + rank;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived) : "memory");
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&arrived) : "memory");
    while (seen < gridDim.x);
    unsigned sum = 0;
    for (unsigned block = 0; block < gridDim.x; ++block) sum += *static_cast<volatile unsigned*>(&left[block]);
    sums[blockIdx.x] = sum;
  }
  sync();
}

template <class Kernel>
cudaError_t by_attribute(Kernel meet, unsigned blocks, unsigned* sums) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = blocks;
  configuration.blockDim = 256;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  return cudaLaunchKernelEx(&configuration, meet, sums);
}

int main() {
  int sms, cooperative, per_sm;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, meet, 256, 0));
  expect_equal(0, cooperative, 1);
  unsigned* sums;
  CHECK(cudaMalloc(&sums, 1024 * sizeof *sums));
  const auto expect_sums = [&](unsigned blocks) {
    static unsigned got[1024];
    CHECK(cudaMemcpy(got, sums, blocks * sizeof *got, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < blocks; ++i) expect_equal(i, got[i], blocks * (blocks + 1) / 2);
    const unsigned zero = 0;
    CHECK(cudaMemcpyToSymbol(arrived, &zero, sizeof zero));
  };
  CHECK(by_attribute(meet, sms, sums));
  expect_sums(sms);
  CHECK(by_attribute(meet_in_clusters, sms, sums));
  expect_sums(sms);
  void* arguments[] = {&sums};
  CHECK(cudaLaunchCooperativeKernel(meet, dim3(70), dim3(256), arguments, 0, nullptr));
  expect_sums(70);
  if (by_attribute(meet, sms * per_sm + 1, sums) != cudaErrorCooperativeLaunchTooLarge ||
      by_attribute(meet_in_clusters, sms * per_sm + 2, sums) != cudaErrorCooperativeLaunchTooLarge) {
    std::printf("more blocks than can be resident were launched\n");
    return 1;
  }
  cudaGetLastError();
  return passed();
}
