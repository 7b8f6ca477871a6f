// Many values to few: reductions, scans, histograms, compaction, from the simplest way to the quickest.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "samples.h"

namespace cg = cooperative_groups;

namespace {

constexpr int threads = 256;
constexpr unsigned all = 0xffffffff;

// --- seven ways to add up a block -------------------------------------------------------------------------------------------------

enum Way { modulo, strided, halves, add_while_loading, last_warp, shuffles, groups };

template <Way way>
__global__ void sums_of_blocks(const int* in, int* out, int n) {
  __shared__ int part[threads];
  const int t = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x) * threads * (way >= add_while_loading ? 2 : 1) + t;
  int own = i < n ? in[i] : 0;
  if (way >= add_while_loading && i + threads < n) own += in[i + threads];

  if constexpr (way == shuffles || way == groups) {
    if constexpr (way == shuffles) {
      for (int step = 16; step; step /= 2) own += __shfl_down_sync(all, own, step);
    } else {
      own = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), own, cg::plus<int>());
    }
    if (t % 32 == 0) part[t / 32] = own;
    __syncthreads();
    if (t >= 32) return;
    own = t < threads / 32 ? part[t] : 0;
    for (int step = 4; step; step /= 2) own += __shfl_down_sync(all, own, step);
    if (t == 0) out[blockIdx.x] = own;
    return;
  }

  part[t] = own;
  __syncthreads();
  if constexpr (way == modulo) {
    for (int step = 1; step < threads; step *= 2) {
      if (t % (2 * step) == 0) part[t] += part[t + step];
      __syncthreads();
    }
  } else if constexpr (way == strided) {
    for (int step = 1; step < threads; step *= 2) {
      const int at = 2 * step * t;
      if (at < threads) part[at] += part[at + step];
      __syncthreads();
    }
  } else {
    for (int step = threads / 2; step > (way == last_warp ? 32 : 0); step /= 2) {
      if (t < step) part[t] += part[t + step];
      __syncthreads();
    }
    if constexpr (way == last_warp) {
      if (t >= 32) return;
      int sum = part[t] + part[t + 32];
      for (int step = 16; step; step /= 2) {
        __syncwarp();
        part[t] = sum;
        __syncwarp();
        sum += part[(t + step) % 32];
      }
      __syncwarp();
      part[t] = sum;
    }
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

template <Way way>
void reduce_by() {
  const int n = 5000, per_block = threads * (way >= add_while_loading ? 2 : 1),
            blocks = (n + per_block - 1) / per_block;
  const auto in = numbers<int>(n, 1000);
  const Array<int> from(in), to(blocks);
  sums_of_blocks<way><<<blocks, threads>>>(from, to, n);
  launched();
  std::vector<int> expected(blocks);
  for (int i = 0; i < n; ++i) expected[i / per_block] += in[i];
  expect_all(to.host(), expected);
}

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

__global__ void sum_by_atomics(const int* in, unsigned long long* sum, int* least, int* most, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  atomicAdd(sum, static_cast<unsigned long long>(in[i]));
  atomicMin(least, in[i]);
  atomicMax(most, in[i]);
}

void atomics() {
  const int n = 3000;
  const auto in = numbers<int>(n, 100000);
  const Array<int> from(in), least(std::vector<int>{1 << 30}), most(1);
  const Array<unsigned long long> sum(1);
  sum_by_atomics<<<(n + threads - 1) / threads, threads>>>(from, sum, least, most, n);
  launched();
  unsigned long long expected = 0;
  for (const int value : in) expected += static_cast<unsigned long long>(value);
  expect_equal(0, sum.host()[0], expected);
  expect_equal(1, least.host()[0], *std::min_element(in.begin(), in.end()));
  expect_equal(2, most.host()[0], *std::max_element(in.begin(), in.end()));
}

/// FP16 products, added in FP32: whole numbers, so that the order does not matter.
__global__ void dot_of_halves(const __half2* a, const __half2* b, float* out, int pairs) {
  __shared__ float part[threads / 32];
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < pairs; i += threads) {
    const float2 product = __half22float2(__hmul2(a[i], b[i]));
    sum += product.x + product.y;
  }
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(all, sum, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int i = 1; i < threads / 32; ++i) sum += part[i];
  *out = sum;
}

void dot_fp16() {
  const int n = 4000;
  const auto a = numbers<float>(n, 30), b = numbers<float>(n, 30, 2);
  std::vector<__half> ha(n), hb(n);
  float expected = 0;
  for (int i = 0; i < n; ++i) {
    ha[i] = __float2half(a[i]);
    hb[i] = __float2half(b[i]);
    expected += a[i] * b[i];
  }
  const Array<__half> da(ha), db(hb);
  const Array<float> out(1);
  dot_of_halves<<<1, threads>>>(reinterpret_cast<__half2*>(+da), reinterpret_cast<__half2*>(+db), out, n / 2);
  launched();
  expect_equal(0, out.host()[0], expected);
}

struct Place {
  int value, index;
};

__global__ void find_largest(const int* in, Place* out, int n) {
  Place best{-1, -1};
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32)
    if (in[i] > best.value) best = {in[i], i};
  for (int step = 16; step; step /= 2) {
    const Place other{__shfl_xor_sync(all, best.value, step), __shfl_xor_sync(all, best.index, step)};
    if (other.value > best.value || (other.value == best.value && other.index < best.index)) best = other;
  }
  if (threadIdx.x == 0) *out = best;
}

void largest() {
  const auto in = numbers<int>(1000, 500);
  const Array<int> from(in);
  const Array<Place> out(1);
  find_largest<<<1, 32>>>(from, out, 1000);
  launched();
  const auto expected = std::max_element(in.begin(), in.end());
  expect_equal(0, out.host()[0].value, *expected);
  expect_equal(1, out.host()[0].index, static_cast<int>(expected - in.begin()));
}

// --- scans -----------------------------------------------------------------------------------------------------------------------

std::vector<int> running_sums(const std::vector<int>& in, bool inclusive) {
  std::vector<int> out(in.size());
  int sum = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    out[i] = sum + (inclusive ? in[i] : 0);
    sum += in[i];
  }
  return out;
}

/// Hillis and Steele: two copies in turn.
__global__ void scan_doubling(const int* in, int* out) {
  __shared__ int copy[2][threads];
  const int t = static_cast<int>(threadIdx.x);
  int now = 0;
  copy[0][t] = in[t];
  for (int step = 1; step < threads; step *= 2, now ^= 1) {
    __syncthreads();
    copy[now ^ 1][t] = copy[now][t] + (t >= step ? copy[now][t - step] : 0);
  }
  out[t] = copy[now][t];
}

/// Blelloch: up the tree and down again, exclusive.
__global__ void scan_tree(const int* in, int* out) {
  __shared__ int part[2 * threads];
  const int t = static_cast<int>(threadIdx.x);
  part[2 * t] = in[2 * t];
  part[2 * t + 1] = in[2 * t + 1];
  int step = 1;
  for (int active = threads; active; active /= 2, step *= 2) {
    __syncthreads();
    if (t < active) part[step * (2 * t + 2) - 1] += part[step * (2 * t + 1) - 1];
  }
  __syncthreads();
  if (t == 0) part[2 * threads - 1] = 0;
  for (int active = 1; active <= threads; active *= 2) {
    step /= 2;
    __syncthreads();
    if (t < active) {
      const int left = step * (2 * t + 1) - 1, right = step * (2 * t + 2) - 1, kept = part[left];
      part[left] = part[right];
      part[right] += kept;
    }
  }
  __syncthreads();
  out[2 * t] = part[2 * t];
  out[2 * t + 1] = part[2 * t + 1];
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

__global__ void scan_shuffles(const int* in, int* out) {
  __shared__ int sums[threads / 32];
  out[threadIdx.x] = scan_of_block(in[threadIdx.x], sums);
}

void scans() {
  const auto in = numbers<int>(2 * threads, 100);
  const std::vector<int> half(in.begin(), in.begin() + threads);
  const Array<int> from(in), to(threads), all_of_it(2 * threads);
  scan_doubling<<<1, threads>>>(from, to);
  launched();
  expect_all(to.host(), running_sums(half, true));
  scan_tree<<<1, threads>>>(from, all_of_it);
  launched();
  expect_all(all_of_it.host(), running_sums(in, false));
  scan_shuffles<<<1, threads>>>(from, to);
  launched();
  expect_all(to.host(), running_sums(half, true));
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
  expect_all(to.host(), running_sums(in, true));
}

// --- histograms, compaction --------------------------------------------------------------------------------------------------------

constexpr int bins = 64;

__global__ void count_globally(const int* in, unsigned* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd(&out[in[i]], 1);
}

__global__ void count_in_shared(const int* in, unsigned* out, int n) {
  __shared__ unsigned own[bins];
  if (threadIdx.x < bins) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x))
    atomicAdd(&own[in[i]], 1);
  __syncthreads();
  if (threadIdx.x < bins) atomicAdd(&out[threadIdx.x], own[threadIdx.x]);
}

/// The lanes with the same bin find one another, and one of them adds for all.
__global__ void count_by_match(const int* in, unsigned* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), bin = i < n ? in[i] : -1;
  const unsigned same = __match_any_sync(all, bin);
  if (bin >= 0 && static_cast<int>(threadIdx.x % 32) == __ffs(static_cast<int>(same)) - 1)
    atomicAdd(&out[bin], static_cast<unsigned>(__popc(same)));
}

void histograms() {
  const int n = 5000;
  const auto in = numbers<int>(n, bins);
  std::vector<unsigned> expected(bins);
  for (const int value : in) ++expected[value];
  for (const auto kernel : {count_globally, count_in_shared, count_by_match}) {
    const Array<int> from(in);
    const Array<unsigned> to(bins);
    kernel<<<(n + threads - 1) / threads, threads>>>(from, to, n);
    launched();
    expect_all(to.host(), expected);
  }
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

/// Sums of neighbours with the same key, by ballots: a warp per row.
__global__ void sum_by_key(const int* keys, const int* values, int* sums) {
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x), key = keys[i];
  const int before = __shfl_up_sync(all, key, 1);
  const bool is_first = threadIdx.x == 0 || before != key;
  const unsigned heads = __ballot_sync(all, is_first);
  const unsigned later = heads & ~((2u << threadIdx.x) - 1);
  const int end = later ? __ffs(static_cast<int>(later)) - 1 : 32;
  int sum = values[i];
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_down_sync(all, sum, step);
    if (static_cast<int>(threadIdx.x) + step < end) sum += other;
  }
  sums[i] = is_first ? sum : 0;
}

void segments() {
  const int n = 32 * 8;
  auto keys = numbers<int>(n, 40);
  std::sort(keys.begin(), keys.end());
  const auto values = numbers<int>(n, 100, 2);
  const Array<int> dk(keys), dv(values), sums(n);
  sum_by_key<<<n / 32, 32>>>(dk, dv, sums);
  launched();
  std::vector<int> expected(n);
  int head = 0;
  for (int i = 0; i < n; ++i) {
    if (i % 32 == 0 || keys[i] != keys[i - 1]) head = i;
    expected[head] += values[i];
  }
  expect_all(sums.host(), expected);
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"reduce_modulo", reduce_by<modulo>},
                      {"reduce_strided", reduce_by<strided>},
                      {"reduce_halves", reduce_by<halves>},
                      {"reduce_add_while_loading", reduce_by<add_while_loading>},
                      {"reduce_last_warp", reduce_by<last_warp>},
                      {"reduce_shuffles", reduce_by<shuffles>},
                      {"reduce_groups", reduce_by<groups>},
                      {"threadfence", threadfence},
                      {"atomics", atomics},
                      {"dot_fp16", dot_fp16},
                      {"largest", largest},
                      {"scans", scans},
                      {"scan_of_blocks_in_turn", scan_of_blocks_in_turn},
                      {"histograms", histograms},
                      {"compaction", compaction},
                      {"segments", segments}});
}
