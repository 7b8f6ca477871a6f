// Types, the device's own functions, and blocks that hand on what they have found.
#include <cooperative_groups.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "samples.h"

namespace cg = cooperative_groups;

namespace {

constexpr int threads = 256;
constexpr unsigned all = 0xffffffff;
int blocks_for(int n) { return (n + threads - 1) / threads; }
__device__ int global_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

template <class T>
__global__ void axpy(T factor, const T* x, T* y, int n) {
  for (int i = global_index(); i < n; i += static_cast<int>(gridDim.x * blockDim.x)) y[i] += factor * x[i];
}

template <class T>
void run_axpy() {
  const int n = 3000;
  const auto x = numbers<T>(n, 100);
  auto y = numbers<T>(n, 100, 2);
  const Array<T> dx(x), dy(y);
  axpy<T><<<3, threads>>>(T(3), dx, dy, n);
  launched();
  for (int i = 0; i < n; ++i) y[i] += T(3) * x[i];
  expect_all(dy.host(), y);
}

void templates() {
  run_axpy<float>();
  run_axpy<double>();
  run_axpy<int>();
  run_axpy<int64_t>();
}

__global__ void matrix_times_vector(const double* a, const double* x, double* y, int n) {
  const int row = static_cast<int>(blockIdx.x);
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) sum += a[row * n + i] * x[i];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (threadIdx.x == 0) y[row] = sum;
}

void matrix_vector() {
  const int n = 100;
  const auto a = numbers<double>(n * n, 50), x = numbers<double>(n, 50, 2);
  const Array<double> da(a), dx(x), dy(n);
  matrix_times_vector<<<n, 32>>>(da, dx, dy, n);
  launched();
  std::vector<double> expected(n);
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < n; ++i) expected[r] += a[r * n + i] * x[i];
  expect_all(dy.host(), expected);
}

/// The normal distribution by erfc: the device's own functions, which differ from the host's in the last digits.
__host__ __device__ double normal(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
__host__ __device__ double call_price(double price, double strike, double years) {
  const double rate = 0.02, volatility = 0.3, root = volatility * sqrt(years);
  const double d = (log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / root;
  return price * normal(d) - strike * exp(-rate * years) * normal(d - root);
}

__global__ void price_options(const double* price, double* out, int n) {
  const int i = global_index();
  if (i < n) out[i] = call_price(price[i] + 5, 50, 0.25 * (i % 8 + 1));
}

void black_scholes() {
  const int n = 500;
  const auto prices = numbers<double>(n, 100);
  const Array<double> from(prices), to(n);
  price_options<<<blocks_for(n), threads>>>(from, to, n);
  launched();
  const auto got = to.host();
  for (int i = 0; i < n; ++i)
    expect_equal(i, std::abs(got[i] - call_price(prices[i] + 5, 50, 0.25 * (i % 8 + 1))) < 1e-11, true);
}

__global__ void ticks(int64_t* out) {
  const int64_t begin = clock64();
  int sum = 0;
  for (int i = 0; i < 100; ++i) sum += i * static_cast<int>(threadIdx.x);
  out[threadIdx.x] = sum >= 0 && clock64() >= begin;
}

void clocks() {
  const Array<int64_t> out(64);
  ticks<<<1, 64>>>(out);
  launched();
  expect_all(out.host(), std::vector<int64_t>(64, 1));
}

// --- many values to few ---------------------------------------------------------------------------------------------------------

__device__ unsigned finished;

/// The last block to finish adds up what the others have left: its counter wraps to 0 for the next launch.
__global__ void sum_with_fence(const int* in, volatile int* parts, int* out, int n) {
  __shared__ int part[threads];
  __shared__ bool is_last;
  const int t = static_cast<int>(threadIdx.x);
  int own = 0;
  for (int i = static_cast<int>(blockIdx.x) * threads + t; i < n; i += static_cast<int>(gridDim.x) * threads)
    own += in[i];
  const auto add_up = [&] {
    part[t] = own;
    __syncthreads();
    for (int step = threads / 2; step; step /= 2) {
      if (t < step) part[t] += part[t + step];
      __syncthreads();
    }
  };
  add_up();
  if (t == 0) {
    parts[blockIdx.x] = part[0];
    __threadfence();
    is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  own = t < static_cast<int>(gridDim.x) ? parts[t] : 0;
  add_up();
  if (t == 0) *out = part[0];
}

void threadfence() {
  const int n = 20000, blocks = 24;
  const auto in = numbers<int>(n, 1000);
  const Array<int> from(in), parts(blocks), to(1);
  int sum = 0;
  for (const int value : in) sum += value;
  for (int repeat = 0; repeat < 3; ++repeat) {
    sum_with_fence<<<blocks, threads>>>(from, parts, to, n);
    launched();
    expect_equal(0, to.host()[0], sum);
  }
}

__device__ int scan_of_warp(int value) {
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(all, value, step);
    if (static_cast<int>(threadIdx.x % 32) >= step) value += below;
  }
  return value;
}

__device__ int scan_of_block(int value, int* sums) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  value = scan_of_warp(value);
  if (threadIdx.x % 32 == 31) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    const int of_warp = threadIdx.x < threads / 32 ? sums[threadIdx.x] : 0, scanned = scan_of_warp(of_warp);
    if (threadIdx.x < threads / 32) sums[threadIdx.x] = scanned;
  }
  __syncthreads();
  return value + (warp ? sums[warp - 1] : 0);
}

/// One pass over the whole array: each block takes the next part, and waits for the sum of those before it, which another block
/// has published with a flag.
__device__ unsigned next_part;

__global__ void scan_in_one_pass(const int* in, int* out, unsigned* flags, int* sums, int n) {
  __shared__ int of_warps[threads / 32];
  __shared__ int part, before;
  if (threadIdx.x == 0) part = static_cast<int>(atomicAdd(&next_part, 1));
  __syncthreads();
  const int i = part * threads + static_cast<int>(threadIdx.x);
  const int value = scan_of_block(i < n ? in[i] : 0, of_warps);
  if (threadIdx.x == threads - 1) {
    int sum = 0;
    if (part) {
      unsigned ready;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(flags + part - 1) : "memory");
      while (!ready);
      sum = sums[part - 1];
    }
    before = sum;
    sums[part] = sum + value;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags + part), "r"(1) : "memory");
  }
  __syncthreads();
  if (i < n) out[i] = before + value;
}

void scan_of_blocks_in_turn() {
  const int n = 10000, blocks = (n + threads - 1) / threads;
  const auto in = numbers<int>(n, 100);
  const Array<int> from(in), to(n), sums(blocks);
  const Array<unsigned> flags(blocks);
  scan_in_one_pass<<<blocks, threads>>>(from, to, flags, sums, n);
  launched();
  std::vector<int> expected(n);
  std::partial_sum(in.begin(), in.end(), expected.begin());
  expect_all(to.host(), expected);
}

/// Those that satisfy a condition, each warp's in one atomic addition; their order is left open.
__global__ void keep_odd(const int* in, int* out, unsigned* count, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n || in[i] % 2 == 0) return;
  const cg::coalesced_group group = cg::coalesced_threads();
  unsigned base = 0;
  if (group.thread_rank() == 0) base = atomicAdd(count, group.size());
  out[group.shfl(base, 0) + group.thread_rank()] = in[i];
}

void compaction() {
  const int n = 3000;
  const auto in = numbers<int>(n, 10000);
  const Array<int> from(in), to(n);
  const Array<unsigned> count(1);
  keep_odd<<<(n + threads - 1) / threads, threads>>>(from, to, count, n);
  launched();
  std::vector<int> expected, got = to.host();
  for (const int value : in)
    if (value % 2) expected.push_back(value);
  got.resize(count.host()[0]);
  std::sort(expected.begin(), expected.end());
  std::sort(got.begin(), got.end());
  expect_all(got, expected);
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"templates", templates},
                      {"matrix_vector", matrix_vector},
                      {"black_scholes", black_scholes},
                      {"clocks", clocks},
                      {"threadfence", threadfence},
                      {"scan_of_blocks_in_turn", scan_of_blocks_in_turn},
                      {"compaction", compaction}});
}
