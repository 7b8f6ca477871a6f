// A product of small integers in BF16, which is exact: its operands, and the check of every element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using bf16 = __nv_bfloat16;

/// D (m x n) = A (m x k) B^T, B (n x k), all by rows.
struct Sizes {
  int m, n, k;
};

/// From -2 to 2.
inline std::vector<int> integers(size_t count, uint32_t seed) {
  std::vector<int> values(count);
  for (int& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = int(seed >> 24) % 5 - 2;
  }
  return values;
}

/// Of E2M1.
inline int e2m1_bits(int value) { return std::abs(value) * 2 | (value < 0 ? 8 : 0); }

template <class T>
T* copied(const std::vector<T>& host) {
  T* device = nullptr;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

inline bf16* on_device(const std::vector<int>& values) {
  std::vector<bf16> host(values.size());
  for (size_t i = 0; i < values.size(); ++i) host[i] = __float2bfloat16(float(values[i]));
  return copied(host);
}

/// The program's exit status: `multiply` gets the sizes of the command line, A, B and D.
inline int check_product(int argc, char** argv, const std::function<void(Sizes, bf16*, bf16*, bf16*)>& multiply) {
  if (argc != 4) return 2;
  const Sizes size{std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])};
  const std::vector<int> a = integers(size_t(size.m) * size.k, 1), b = integers(size_t(size.n) * size.k, 2);
  std::vector<bf16> d(size_t(size.m) * size.n);
  bf16* device_d = nullptr;
  cudaMalloc(&device_d, d.size() * sizeof(bf16));
  cudaMemset(device_d, 0xff, d.size() * sizeof(bf16));
  multiply(size, on_device(a), on_device(b), device_d);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(status));
    return 1;
  }
  cudaMemcpy(d.data(), device_d, d.size() * sizeof(bf16), cudaMemcpyDeviceToHost);
  long wrong = 0;
  for (int m = 0; m < size.m; ++m)
    for (int n = 0; n < size.n; ++n) {
      int sum = 0;
      for (int k = 0; k < size.k; ++k) sum += a[size_t(m) * size.k + k] * b[size_t(n) * size.k + k];
      wrong += !(__bfloat162float(d[size_t(m) * size.n + n]) == __bfloat162float(__float2bfloat16(float(sum))));
    }
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
