// The sorts and scans of CUB and Thrust. In CUB's one-pass algorithms blocks wait for what earlier ones publish. Whole numbers
// with a key of their own are sorted by radix, everything else by merging.
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>

#include "samples.h"

namespace {

constexpr int n = 6000;

/// Asks how much memory the algorithm needs, then runs it.
template <class Algorithm>
void run_cub(Algorithm algorithm) {
  size_t bytes = 0;
  CHECK(algorithm(nullptr, bytes));
  const Array<uint8_t> scratch(bytes + 1);
  CHECK(algorithm(static_cast<void*>(+scratch), bytes));
  launched();
}

std::vector<int> order_of(const std::vector<unsigned>& keys) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  return order;
}

void radix_keys() {
  auto keys = numbers<unsigned>(n, 1 << 24);
  const Array<unsigned> in(keys), out(n);
  run_cub([&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, static_cast<unsigned*>(in), static_cast<unsigned*>(out), n);
  });
  std::sort(keys.begin(), keys.end());
  expect_all(out.host(), keys);
}

struct Less {
  __host__ __device__ bool operator()(float a, float b) const { return a < b; }
};

void thrust_sorts() {
  auto keys = numbers<float>(n, 1 << 20);
  thrust::device_vector<float> device(keys.begin(), keys.end());
  thrust::sort(device.begin(), device.end(), Less{});
  launched();
  std::sort(keys.begin(), keys.end());
  std::vector<float> got(keys.size());
  thrust::copy(device.begin(), device.end(), got.begin());
  expect_all(got, keys);
}

void thrust_by_key() {
  const auto keys = numbers<unsigned>(n, 300);
  const auto order = order_of(keys);
  thrust::device_vector<unsigned> device(keys.begin(), keys.end());
  thrust::device_vector<int> values(keys.size());
  thrust::sequence(values.begin(), values.end());
  thrust::stable_sort_by_key(device.begin(), device.end(), values.begin());
  std::vector<int> got(keys.size());
  thrust::copy(values.begin(), values.end(), got.begin());
  expect_all(got, order);

  thrust::device_vector<unsigned> groups(keys.size());
  thrust::device_vector<int> sums(keys.size());
  const auto end = thrust::reduce_by_key(device.begin(), device.end(), values.begin(), groups.begin(), sums.begin());
  const size_t count = static_cast<size_t>(end.first - groups.begin());
  std::vector<unsigned> expected_groups;
  std::vector<int> expected_sums, got_sums(count);
  for (const int i : order) {
    if (expected_groups.empty() || expected_groups.back() != keys[i]) {
      expected_groups.push_back(keys[i]);
      expected_sums.push_back(0);
    }
    expected_sums.back() += i;
  }
  thrust::copy(sums.begin(), sums.begin() + static_cast<long>(count), got_sums.begin());
  expect_all(got_sums, expected_sums);
}

void thrust_scan_and_unique() {
  auto values = numbers<int>(n, 50);
  thrust::device_vector<int> device(values.begin(), values.end()), out(n);
  thrust::inclusive_scan(device.begin(), device.end(), out.begin());
  std::vector<int> got(n), expected(n);
  thrust::copy(out.begin(), out.end(), got.begin());
  std::partial_sum(values.begin(), values.end(), expected.begin());
  expect_all(got, expected);
  for (int i = 0; i < n; ++i) values[i] = i / 7 % 100;
  device.assign(values.begin(), values.end());
  const auto end = thrust::unique(device.begin(), device.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  got.resize(static_cast<size_t>(end - device.begin()));
  thrust::copy(device.begin(), end, got.begin());
  expect_all(got, values);
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"radix_keys", radix_keys},
                      {"thrust_sorts", thrust_sorts},
                      {"thrust_by_key", thrust_by_key},
                      {"thrust_scan_and_unique", thrust_scan_and_unique}});
}
