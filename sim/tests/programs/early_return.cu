// Threads that return before a barrier: `if (t >= n) return; __syncthreads();`. The barrier waits for their end, so what they
// wrote to shared memory can be read after it.
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

constexpr int threads = 256;

/// Those that return first write what the others add up. `first` of them remain.
__global__ void leave_values(int first, int* sums) {
  __shared__ int values[threads];
  const int t = threadIdx.x;
  values[t] = t;
  if (t >= first) return;
  __syncthreads();
  int sum = 0;
  for (int i = t; i < threads; i += first) sum += values[i];
  sums[blockIdx.x * threads + t] = sum;
}

/// A reduction in which half of the threads return after each step.
__global__ void reduce(const int* in, int* out) {
  __shared__ int values[threads];
  const int t = threadIdx.x;
  values[t] = in[blockIdx.x * threads + t];
  for (int half = threads / 2; half > 0; half /= 2) {
    if (t >= 2 * half) return;
    __syncthreads();
    if (t < half) values[t] += values[t + half];
  }
  if (t == 0) out[blockIdx.x] = values[0];
}

/// The second warp of each block writes to the other block of its cluster, and returns.
__global__ void __cluster_dims__(2, 1, 1) leave_to_the_cluster(int* out) {
  __shared__ int values[32];
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned other = cluster.block_rank() ^ 1;
  cluster.sync();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x >= 32) {
    cluster.map_shared_rank(values, other)[lane] = 100 * blockIdx.x + lane;
    return;
  }
  cluster.sync();
  out[blockIdx.x * 32 + lane] = values[lane];
}

int main() {
  constexpr int blocks = 6;
  std::vector<int> in(blocks * threads), out(blocks * threads);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i % 1009);
  int *device_in, *device_out;
  CHECK(cudaMalloc(&device_in, in.size() * sizeof(int)));
  CHECK(cudaMalloc(&device_out, out.size() * sizeof(int)));
  CHECK(cudaMemcpy(device_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
  const auto results = [&](size_t count) {
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), device_out, count * sizeof(int), cudaMemcpyDeviceToHost));
  };

  for (const int first : {1, 31, 32, 100, 224, 256}) {
    leave_values<<<blocks, threads>>>(first, device_out);
    results(out.size());
    for (int b = 0; b < blocks; ++b)
      for (int t = 0; t < first; ++t) {
        int sum = 0;
        for (int i = t; i < threads; i += first) sum += i;
        expect_equal(t, out[b * threads + t], sum);
      }
  }

  reduce<<<blocks, threads>>>(device_in, device_out);
  results(blocks);
  for (int b = 0; b < blocks; ++b) {
    int sum = 0;
    for (int t = 0; t < threads; ++t) sum += in[b * threads + t];
    expect_equal(b, out[b], sum);
  }

  leave_to_the_cluster<<<blocks, 64>>>(device_out);
  results(blocks * 32);
  for (int i = 0; i < blocks * 32; ++i) expect_equal(i, out[i], 100 * (i / 32 ^ 1) + i % 32);
  return passed();
}
