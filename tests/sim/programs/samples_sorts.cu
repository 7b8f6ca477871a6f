// Scans of Thrust. In CUB's one-pass algorithms blocks wait for what earlier ones publish.
#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>

#include "samples.h"

namespace {

constexpr int n = 6000;

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
  return run_samples(argc, argv, {{"thrust_scan_and_unique", thrust_scan_and_unique}});
}
