// Copies that arrive at barriers: cuda::barrier with memcpy_async, cuda::pipeline of a block, and cooperative_groups' memcpy_async.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_runtime.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#include <vector>

#include "check.h"

// The state's constructor is not run; make_pipeline initialises it.
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

constexpr int threads = 128, tiles = 8, stages = 3;

/// out = 2 * in, tile by tile, each thread with its neighbour's element. Word by word: cp.async and cp.async.mbarrier.arrive.
__global__ void with_barrier(int* out, const int* in) {
  __shared__ int tile[2][threads];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready[2];
  if (threadIdx.x < 2) init(&ready[threadIdx.x], threads);
  __syncthreads();
  const auto fetch = [&](int i) {
    cuda::memcpy_async(&tile[i % 2][threadIdx.x], &in[i * threads + threadIdx.x], sizeof(int), ready[i % 2]);
  };
  fetch(0);
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) fetch(i + 1);
    ready[i % 2].arrive_and_wait();
    out[i * threads + threadIdx.x] = 2 * tile[i % 2][threadIdx.x ^ 1];
    __syncthreads();
  }
}

/// The same by a pipeline of several stages, in which every thread produces and consumes.
__global__ void with_pipeline(int* out, const int* in) {
  __shared__ int tile[stages][threads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int fetched = 0;
  for (int i = 0; i < tiles; ++i) {
    for (; fetched < tiles && fetched < i + stages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, tile[fetched % stages], &in[fetched * threads], sizeof(int) * threads, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[i * threads + threadIdx.x] = 2 * tile[i % stages][threadIdx.x ^ 1];
    pipeline.consumer_release();
  }
}

/// The first warps produce, the others consume.
__global__ void with_roles(int* out, const int* in) {
  __shared__ int tile[stages][threads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  const auto block = cg::this_thread_block();
  const bool produces = threadIdx.x < threads / 2;
  auto pipeline =
      cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  const int mine = threadIdx.x % (threads / 2);
  for (int i = 0; i < tiles; ++i) {
    if (produces) {
      pipeline.producer_acquire();
      for (int j = mine; j < threads; j += threads / 2)
        cuda::memcpy_async(&tile[i % stages][j], &in[i * threads + j], sizeof(int), pipeline);
      pipeline.producer_commit();
    } else {
      pipeline.consumer_wait();
      for (int j = mine; j < threads; j += threads / 2) out[i * threads + j] = 2 * tile[i % stages][j ^ 1];
      pipeline.consumer_release();
    }
  }
}

__global__ void with_groups(int* out, const int* in) {
  __shared__ int tile[threads];
  const auto block = cg::this_thread_block();
  for (int i = 0; i < tiles; ++i) {
    cg::memcpy_async(block, tile, &in[i * threads], sizeof(int) * threads);
    cg::wait(block);
    out[i * threads + threadIdx.x] = 2 * tile[threadIdx.x ^ 1];
    block.sync();
  }
}

/// A planted fault: the barrier is arrived at, but not waited for.
__global__ void without_wait(int* out, const int* in) {
  __shared__ int tile[threads];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, threads);
  __syncthreads();
  cuda::memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int), ready);
  [[maybe_unused]] auto token = ready.arrive();
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

int main(int argc, char**) {
  constexpr int n = tiles * threads;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 3 * i + 1;
  int *from = nullptr, *to = nullptr;
  CHECK(cudaMalloc(&from, n * sizeof(int)));
  CHECK(cudaMalloc(&to, n * sizeof(int)));
  CHECK(cudaMemcpy(from, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  if (argc > 1) {
    without_wait<<<1, threads>>>(to, from);
    CHECK(cudaDeviceSynchronize());
    return passed();
  }
  for (const auto kernel : {with_barrier, with_pipeline, with_roles, with_groups}) {
    CHECK(cudaMemset(to, 0, n * sizeof(int)));
    kernel<<<1, threads>>>(to, from);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(out.data(), to, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) expect_equal(i, out[i], 2 * in[i ^ 1]);
  }
  return passed();
}
