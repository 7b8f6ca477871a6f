// Threads that work together: cooperative groups, grid-wide barriers, cuda::barrier and cuda::pipeline, sorting networks.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <algorithm>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
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

/// One launch for the sum of all: parts by block, then one block adds the parts.
__global__ void sum_of_grid(const int* in, int* parts, int* out, int n) {
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  __shared__ int of_warp[8];
  const auto add_up = [&](int own) {
    own = cg::reduce(warp, own, cg::plus<int>());
    if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = own;
    block.sync();
    int sum = 0;
    for (unsigned i = 0; i < warp.meta_group_size(); ++i) sum += of_warp[i];
    block.sync();
    return sum;
  };
  int own = 0;
  for (unsigned long long i = grid.thread_rank(); i < static_cast<unsigned long long>(n); i += grid.size())
    own += in[i];
  const int sum = add_up(own);
  if (block.thread_rank() == 0) parts[blockIdx.x] = sum;
  grid.sync();
  if (blockIdx.x) return;
  const int total = add_up(block.thread_rank() < gridDim.x ? parts[block.thread_rank()] : 0);
  if (block.thread_rank() == 0) *out = total;
}

void grid_reduction() {
  const int n = 30000, blocks = 40;
  const auto in = numbers<int>(n, 1000);
  const Array<int> from(in), parts(blocks), out(1);
  launch_cooperatively(sum_of_grid, blocks, 256, from, parts, out, n);
  int expected = 0;
  for (const int value : in) expected += value;
  expect_equal(0, out.host()[0], expected);
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

__global__ void votes(const int* in, unsigned* out) {
  const int i = static_cast<int>(threadIdx.x);
  const bool odd = in[i] % 2;
  out[i] = __ballot_sync(all, odd) + (__any_sync(all, in[i] > 98) ? 1 : 0) + (__all_sync(all, in[i] >= 0) ? 2 : 0) +
           static_cast<unsigned>(__reduce_max_sync(all, static_cast<unsigned>(in[i])));
}

void warp_votes() {
  const int n = 96;
  const auto in = numbers<int>(n, 100);
  const Array<int> from(in);
  const Array<unsigned> to(n);
  votes<<<1, n>>>(from, to);
  launched();
  std::vector<unsigned> expected(n);
  for (int i = 0; i < n; ++i) {
    unsigned most = 0, ballot = 0;
    for (int j = 0; j < 32; ++j) {
      const unsigned value = static_cast<unsigned>(in[i / 32 * 32 + j]);
      ballot |= value % 2 << j;
      most = std::max(most, value);
    }
    expected[i] = ballot + (most > 98 ? 1 : 0) + 2 + most;
  }
  expect_all(to.host(), expected);
}

// --- copies in the background ------------------------------------------------------------------------------------------------------------

constexpr int part = 64;

/// Two stages: the next part is on its way while this one is used. Each thread waits for its own copies.
__global__ void copy_by_pipeline(const int* in, int* out, int parts) {
  __shared__ int stages[2][part];
  const int t = static_cast<int>(threadIdx.x);
  auto pipe = cuda::make_pipeline();
  const auto fetch = [&](int which) {
    pipe.producer_acquire();
    if (which < parts) cuda::memcpy_async(&stages[which % 2][t], &in[which * part + t], sizeof(int), pipe);
    pipe.producer_commit();
  };
  fetch(0);
  for (int now = 0; now < parts; ++now) {
    fetch(now + 1);
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    __syncthreads();
    out[now * part + t] = stages[now % 2][part - 1 - t] * 2;
    __syncthreads();
    pipe.consumer_release();
  }
}

/// The same by the group's own copy of a whole part.
__global__ void copy_by_group(const int* in, int* out, int parts) {
  __shared__ int stages[2][part];
  const cg::thread_block block = cg::this_thread_block();
  const int t = static_cast<int>(threadIdx.x);
  cg::memcpy_async(block, stages[0], in, sizeof stages[0]);
  for (int now = 0; now < parts; ++now) {
    if (now + 1 < parts) {
      cg::memcpy_async(block, stages[(now + 1) % 2], in + (now + 1) * part, sizeof stages[0]);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    out[now * part + t] = stages[now % 2][part - 1 - t] * 2;
    block.sync();
  }
}

void background_copies() {
  const int parts = 7;
  const auto in = numbers<int>(parts * part, 1000);
  std::vector<int> expected(parts * part);
  for (int p = 0; p < parts; ++p)
    for (int t = 0; t < part; ++t) expected[p * part + t] = 2 * in[p * part + part - 1 - t];
  for (const auto kernel : {copy_by_pipeline, copy_by_group}) {
    const Array<int> from(in), to(parts * part);
    kernel<<<1, part>>>(from, to, parts);
    launched();
    expect_all(to.host(), expected);
  }
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

// --- sorting networks, butterflies ---------------------------------------------------------------------------------------------------------

constexpr int length = 512;

__global__ void sort_bitonic(int* values) {
  __shared__ int part_of[length];
  const int t = static_cast<int>(threadIdx.x);
  part_of[t] = values[blockIdx.x * length + threadIdx.x];
  for (int size = 2; size <= length; size *= 2)
    for (int step = size / 2; step; step /= 2) {
      __syncthreads();
      const int other = t ^ step;
      if (other < t) continue;
      const int a = part_of[t], b = part_of[other];
      if ((a > b) == ((t & size) == 0)) {
        part_of[t] = b;
        part_of[other] = a;
      }
    }
  __syncthreads();
  values[blockIdx.x * length + threadIdx.x] = part_of[t];
}

/// Each thread finds where its value goes among those of the other sorted half.
__global__ void merge_halves(const int* in, int* out, int half) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), own = i % half, value = in[i];
  const bool is_left = i / half % 2 == 0;
  const int* const others = in + (is_left ? i / half + 1 : i / half - 1) * half;
  int low = 0, high = half;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (is_left ? others[middle] < value : others[middle] <= value)
      low = middle + 1;
    else
      high = middle;
  }
  out[i / (2 * half) * 2 * half + own + low] = value;
}

void merge_sort() {
  const int n = 4 * length;
  auto values = numbers<int>(n, 5000);
  const Array<int> a(values), b(n);
  sort_bitonic<<<4, length>>>(a);
  merge_halves<<<n / 128, 128>>>(a, b, length);
  merge_halves<<<n / 128, 128>>>(b, a, 2 * length);
  launched();
  std::sort(values.begin(), values.end());
  expect_all(a.host(), values);
}

/// Bit by bit, each time those with a 0 before those with a 1.
__global__ void sort_by_bits(unsigned* values, int bits) {
  __shared__ unsigned keys[256];
  __shared__ int zeros_of_warp[8];
  const int t = static_cast<int>(threadIdx.x), warp = t / 32;
  keys[t] = values[t];
  for (int bit = 0; bit < bits; ++bit) {
    __syncthreads();
    const unsigned key = keys[t], one = key >> bit & 1, zeros = ~__ballot_sync(all, one);
    if (t % 32 == 0) zeros_of_warp[warp] = __popc(zeros);
    __syncthreads();
    int before = __popc(zeros & ((1u << t % 32) - 1)), total = 0;
    for (int w = 0; w < 8; ++w) {
      if (w < warp) before += zeros_of_warp[w];
      total += zeros_of_warp[w];
    }
    keys[one ? total + t - before : before] = key;
  }
  __syncthreads();
  values[t] = keys[t];
}

void radix_sort() {
  auto values = numbers<unsigned>(256, 1 << 12);
  const Array<unsigned> device(values);
  sort_by_bits<<<1, 256>>>(device, 12);
  launched();
  std::sort(values.begin(), values.end());
  expect_all(device.host(), values);
}

/// The Walsh-Hadamard transform: the butterflies of an FFT with factors of 1.
__global__ void butterflies(const int* in, int* out) {
  __shared__ int values[length];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = in[t];
  values[t + length / 2] = in[t + length / 2];
  for (int step = 1; step < length; step *= 2) {
    __syncthreads();
    const int low = t % step, at = 2 * (t - low) + low, a = values[at], b = values[at + step];
    values[at] = a + b;
    values[at + step] = a - b;
  }
  __syncthreads();
  out[t] = values[t];
  out[t + length / 2] = values[t + length / 2];
}

void walsh_transform() {
  auto values = numbers<int>(length, 100);
  const Array<int> from(values), to(length);
  butterflies<<<1, length / 2>>>(from, to);
  launched();
  for (int step = 1; step < length; step *= 2)
    for (int i = 0; i < length; ++i)
      if (!(i & step)) {
        const int a = values[i], b = values[i + step];
        values[i] = a + b;
        values[i + step] = a - b;
      }
  expect_all(to.host(), values);
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"grid_sync", grid_sync},
                      {"grid_reduction", grid_reduction},
                      {"tiles", tiles},
                      {"partitions", partitions},
                      {"warp_votes", warp_votes},
                      {"background_copies", background_copies},
                      {"barriers", barriers},
                      {"locks", locks},
                      {"merge_sort", merge_sort},
                      {"radix_sort", radix_sort},
                      {"walsh_transform", walsh_transform}});
}
