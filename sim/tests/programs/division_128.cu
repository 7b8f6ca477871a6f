// Division of 128-bit integers, which nvcc builds from sub.cc, addc and others that share one carry flag.
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "check.h"

using u128 = unsigned __int128;
using i128 = __int128;

struct Results {
  u128 quotient, rest;
  i128 signed_quotient, signed_rest;
  u128 product;
};

__global__ void divide(const u128* a, const u128* b, Results* results, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  results[i] = {a[i] / b[i], a[i] % b[i], static_cast<i128>(a[i]) / static_cast<i128>(b[i]),
                static_cast<i128>(a[i]) % static_cast<i128>(b[i]), a[i] * b[i]};
}

int main() {
  // Numbers of every length, and those at which a carry or a borrow runs through all words.
  std::vector<u128> a, b;
  std::mt19937_64 random(1);
  const auto number = [&] { return (u128(random()) << 64 | random()) >> random() % 128; };
  const u128 edges[] = {
      1,           2, 3, 0xffffffff, u128(1) << 32, ~uint64_t{0}, u128(1) << 64, (u128(1) << 64) + 1, u128(1) << 127,
      ~u128(0) - 1};
  for (const u128 x : edges)
    for (const u128 y : edges) a.push_back(x), b.push_back(y);
  while (a.size() < 2000) a.push_back(number()), b.push_back(number() | 1);

  const int n = static_cast<int>(a.size());
  u128 *device_a, *device_b;
  Results* device_results;
  CHECK(cudaMalloc(&device_a, n * sizeof(u128)));
  CHECK(cudaMalloc(&device_b, n * sizeof(u128)));
  CHECK(cudaMalloc(&device_results, n * sizeof(Results)));
  CHECK(cudaMemcpy(device_a, a.data(), n * sizeof(u128), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), n * sizeof(u128), cudaMemcpyHostToDevice));
  divide<<<(n + 127) / 128, 128>>>(device_a, device_b, device_results, n);
  CHECK(cudaGetLastError());
  std::vector<Results> results(n);
  CHECK(cudaMemcpy(results.data(), device_results, n * sizeof(Results), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    const i128 x = static_cast<i128>(a[i]), y = static_cast<i128>(b[i]);
    expect_equal(i, results[i].quotient == a[i] / b[i], true);
    expect_equal(i, results[i].rest == a[i] % b[i], true);
    expect_equal(i, results[i].signed_quotient == x / y, true);
    expect_equal(i, results[i].signed_rest == x % y, true);
    expect_equal(i, results[i].product == a[i] * b[i], true);
  }
  return passed();
}
