// Calls one of learn-cuda's 02e matmul functions (FUNCTION) with small integers and compares every element of C = A B^T, which is exact.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using bf16 = __nv_bfloat16;
void FUNCTION(const bf16* a, const bf16* b, bf16* c, int m, int n, int k);

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int m_size = std::atoi(argv[1]), n_size = std::atoi(argv[2]), k_size = std::atoi(argv[3]);
  uint32_t state = 1;
  const auto matrix = [&](int rows) {
    std::vector<int> values(size_t(rows) * k_size);
    for (int& value : values) {
      state = state * 1664525u + 1013904223u;
      value = int(state >> 24) % 5 - 2;
    }
    return values;
  };
  const auto on_device = [](const std::vector<int>& values) {
    std::vector<bf16> host(values.size());
    for (size_t i = 0; i < values.size(); ++i) host[i] = __float2bfloat16(float(values[i]));
    bf16* device = nullptr;
    cudaMalloc(&device, host.size() * sizeof(bf16));
    cudaMemcpy(device, host.data(), host.size() * sizeof(bf16), cudaMemcpyHostToDevice);
    return device;
  };
  const std::vector<int> a = matrix(m_size), b = matrix(n_size);
  std::vector<bf16> c(size_t(m_size) * n_size);
  bf16* device_c = nullptr;
  cudaMalloc(&device_c, c.size() * sizeof(bf16));
  cudaMemset(device_c, 0xff, c.size() * sizeof(bf16));
  FUNCTION(on_device(a), on_device(b), device_c, m_size, n_size, k_size);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(status));
    return 1;
  }
  cudaMemcpy(c.data(), device_c, c.size() * sizeof(bf16), cudaMemcpyDeviceToHost);
  long wrong = 0;
  for (int m = 0; m < m_size; ++m)
    for (int n = 0; n < n_size; ++n) {
      int sum = 0;
      for (int k = 0; k < k_size; ++k) sum += a[size_t(m) * k_size + k] * b[size_t(n) * k_size + k];
      wrong += !(__bfloat162float(c[size_t(m) * n_size + n]) == __bfloat162float(__float2bfloat16(float(sum))));
    }
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
