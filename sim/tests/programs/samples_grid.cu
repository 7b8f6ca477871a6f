// Threads that work together: cooperative groups, a barrier of the whole grid, cuda::barrier, a lock.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <tuple>

#include "samples.h"

namespace cg = cooperative_groups;

namespace {

constexpr unsigned all = 0xffffffff;

template <class... Parameters, class... Arguments>
void launch_cooperatively(void (*kernel)(Parameters...), int blocks, int threads, const Arguments&... given) {
  std::tuple<Parameters...> values(given...);
  std::apply(
      [&](Parameters&... each) {
        void* arguments[] = {&each...};
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads), arguments,
                                          0, nullptr));
      },
      values);
  launched();
}

// --- the whole grid ------------------------------------------------------------------------------------------------------------------

/// Jacobi's iteration: each step needs all of the last one.
__global__ void smooth(int* a, int* b, int n, int steps) {
  const cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < steps; ++step) {
    for (int i = static_cast<int>(grid.thread_rank()); i < n; i += static_cast<int>(grid.size()))
      b[i] = a[(i + n - 1) % n] + a[i] + a[(i + 1) % n];
    grid.sync();
    int* const swapped = a;
    a = b;
    b = swapped;
  }
}

void grid_sync() {
  const int n = 3000, steps = 7;
  auto values = numbers<int>(n, 100);
  const Array<int> a(values), b(n);
  launch_cooperatively(smooth, 12, 64, a, b, n, steps);
  for (int step = 0; step < steps; ++step) {
    std::vector<int> next(n);
    for (int i = 0; i < n; ++i) next[i] = values[(i + n - 1) % n] + values[i] + values[(i + 1) % n];
    values = next;
  }
  expect_all(b.host(), values);
}

// --- groups within a block -------------------------------------------------------------------------------------------------------------

__global__ void by_tiles(const int* in, int* sums, int* scans) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int sum = in[i];
  for (unsigned step = tile.size() / 2; step; step /= 2) sum += tile.shfl_xor(sum, step);
  sums[i] = sum;
  scans[i] = cg::inclusive_scan(tile, in[i]) + static_cast<int>(tile.any(in[i] > 90)) * 1000;
}

void tiles() {
  const int n = 256;
  const auto in = numbers<int>(n, 100);
  const Array<int> from(in), sums(n), scans(n);
  by_tiles<<<2, n / 2>>>(from, sums, scans);
  launched();
  std::vector<int> sum(n), scan(n);
  for (int i = 0; i < n; ++i) {
    bool any = false;
    for (int j = i / 8 * 8; j < i / 8 * 8 + 8; ++j) {
      sum[i] += in[j];
      if (j <= i) scan[i] += in[j];
      any = any || in[j] > 90;
    }
    scan[i] += any ? 1000 : 0;
  }
  expect_all(sums.host(), sum);
  expect_all(scans.host(), scan);
}

/// Lanes by a predicate: the two halves count and add up for themselves.
__global__ void split(const int* in, int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = static_cast<int>(threadIdx.x);
  const auto side = cg::binary_partition(warp, in[i] % 3 == 0);
  out[i] = cg::reduce(side, in[i], cg::plus<int>()) * 100 + static_cast<int>(side.size());
}

void partitions() {
  const int n = 64;
  const auto in = numbers<int>(n, 100);
  const Array<int> from(in), to(n);
  split<<<1, n>>>(from, to);
  launched();
  std::vector<int> expected(n);
  for (int i = 0; i < n; ++i)
    for (int j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
      if ((in[i] % 3 == 0) == (in[j] % 3 == 0)) expected[i] += 100 * in[j] + 1;
  expect_all(to.host(), expected);
}

/// Arrive, work on something else, wait: the sums of one warp are read by another one after the barrier.
__global__ void split_barrier(const int* in, int* out, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  __shared__ int sums[4];
  const int t = static_cast<int>(threadIdx.x), warp = t / 32;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int mine = 0;
  for (int round = 0; round < rounds; ++round) {
    int sum = in[round * 128 + t];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(all, sum, step);
    if (t % 32 == 0) sums[warp] = sum;
    Barrier::arrival_token token = barrier.arrive();
    mine = mine * 3 + round;  // what needs no other thread
    barrier.wait(std::move(token));
    mine += sums[(warp + 1) % 4];
    barrier.arrive_and_wait();
  }
  out[t] = mine;
}

void barriers() {
  const int rounds = 5;
  const auto in = numbers<int>(rounds * 128, 100);
  const Array<int> from(in), to(128);
  split_barrier<<<1, 128>>>(from, to, rounds);
  launched();
  std::vector<int> expected(128);
  for (int t = 0; t < 128; ++t)
    for (int round = 0; round < rounds; ++round) {
      expected[t] = expected[t] * 3 + round;
      for (int j = 0; j < 32; ++j) expected[t] += in[round * 128 + (t / 32 + 1) % 4 * 32 + j];
    }
  expect_all(to.host(), expected);
}

// --- atomics as locks --------------------------------------------------------------------------------------------------------------------

__device__ cuda::atomic<int, cuda::thread_scope_device> lock{0};
__device__ int guarded[2];

/// One thread of each block enters, one after another.
__global__ void take_turns() {
  if (threadIdx.x) return;
  for (int expected = 0; !lock.compare_exchange_weak(expected, 1, cuda::std::memory_order_acquire); expected = 0)
    __nanosleep(100);
  const volatile int* const seen = guarded;
  const int a = seen[0], b = seen[1];
  guarded[0] = a + 1;
  guarded[1] = b + 2 * a;
  lock.store(0, cuda::std::memory_order_release);
}

void locks() {
  take_turns<<<50, 64>>>();
  launched();
  int got[2];
  CHECK(cudaMemcpyFromSymbol(got, guarded, sizeof got));
  expect_equal(0, got[0], 50);
  expect_equal(1, got[1], 50 * 49);
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"grid_sync", grid_sync},
                      {"tiles", tiles},
                      {"partitions", partitions},
                      {"barriers", barriers},
                      {"locks", locks}});
}
