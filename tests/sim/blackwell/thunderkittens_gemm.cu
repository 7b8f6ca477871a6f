// One of ThunderKittens' kernels/gemm/*_b200 (SOURCE) with one of its configurations (CONFIG), at the sizes that are given. FORMAT: 0 BF16, 1 FP8,
// 2 MXFP8, 3 NVFP4. Values are small integers, scale factors are few powers of two: every sum is exact.
#define main main_of_the_benchmark
#include SOURCE
#undef main

#include <cmath>
#include <cstring>

#include "operands.h"

constexpr int format = FORMAT, k_per_factor = format == 3 ? 16 : format == 2 ? 32 : 0;

template <class T>
T* copied(const std::vector<T>& host) {
  T* device = nullptr;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

/// By rows; 128 rows by four scale factors are a tile of 512 bytes.
struct Operand {
  int rows, k;
  std::vector<int> values;
  std::vector<uint8_t> scales;

  Operand(int rows, int k, uint32_t seed)
      : rows(rows),
        k(k),
        values(integers(size_t(rows) * k, seed)),
        scales(k_per_factor ? size_t(rows) * k / k_per_factor : 0) {
    for (uint8_t& scale : scales) {
      seed = seed * 1664525u + 1013904223u;
      scale = uint8_t(format == 2 ? 126 + (seed >> 24) % 3 : 0x30 + 8 * ((seed >> 24) % 3));
    }
  }
  double value(int row, int column) const {
    const int whole = values[size_t(row) * k + column];
    if (!k_per_factor) return whole;
    const int factor = column / k_per_factor;
    const size_t tile = size_t(row) / 128 * (k / k_per_factor / 4) + factor / 4;
    const int bits = scales[tile * 512 + row % 32 * 16 + row / 32 % 4 * 4 + factor % 4];
    return std::ldexp(whole, format == 2 ? bits - 127 : bits / 8 - 7);
  }
  std::vector<float> all() const {
    std::vector<float> all(values.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = float(value(int(i / k), int(i % k)));
    return all;
  }
  /// BF16, E4M3, or two E2M1 to a byte.
  template <class T>
  T* elements() const {
    std::vector<uint8_t> bytes(values.size() * (format == 0 ? 2 : 1));
    for (size_t i = 0; i < values.size(); ++i) {
      const bf16 wide = __float2bfloat16(float(values[i]));
      const auto e4m3 = uint8_t(__nv_cvt_float_to_fp8(float(values[i]), __NV_SATFINITE, __NV_E4M3));
      const auto e2m1 = uint8_t(std::abs(values[i]) * 2 | (values[i] < 0 ? 8 : 0));
      if (format == 0)
        std::memcpy(&bytes[2 * i], &wide, 2);
      else if (format == 3)
        bytes[i / 2] |= uint8_t(e2m1 << i % 2 * 4);
      else
        bytes[i] = e4m3;
    }
    return reinterpret_cast<T*>(copied(bytes));
  }
  template <class T>
  T* factors() const {
    return reinterpret_cast<T*>(copied(scales));
  }
};

template <class Globals, class Kernel>
void launch(const Globals& of, Kernel kernel, int cluster) {
  auto globals = of;
  CUDACHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, globals.dynamic_shared_memory()));
  kittens::LaunchConfig<true, true> config(globals.grid(), globals.block(), globals.dynamic_shared_memory(), 0,
                                           cluster);
  CUDACHECK(cudaLaunchKernelEx(config, kernel, globals));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t m_size = std::atoi(argv[1]), n_size = std::atoi(argv[2]), k_size = std::atoi(argv[3]);
  const Operand a(int(m_size), int(k_size), 1), b(int(n_size), int(k_size), 2);
  std::vector<bf16> d(m_size * n_size, __float2bfloat16(-1.f));
  bf16* const device_d = copied(d);
#if FORMAT < 2
  using C = CONFIG;
  using G = globals<C>;
  using Element = std::conditional_t<format == 0, bf16, fp8e4m3>;
  launch(G{typename G::a_gl{a.elements<Element>(), nullptr, nullptr, m_size, k_size},
           typename G::b_gl{b.elements<Element>(), nullptr, nullptr, n_size, k_size},
           typename G::d_gl{device_d, nullptr, nullptr, m_size, n_size}},
         kernel<C>, C::CLUSTER_SIZE);
#elif FORMAT == 2
  using C = mxfp8_gemm::CONFIG;
  using G = mxfp8_gemm::globals<C>;
  launch(G{typename G::A_gl{a.elements<__nv_fp8_e4m3>(), nullptr, nullptr, m_size, k_size},
           typename G::A_sc_gl{a.factors<__nv_fp8_e8m0>(), m_size / 128, k_size / 128, nullptr, nullptr},
           typename G::B_gl{b.elements<__nv_fp8_e4m3>(), nullptr, nullptr, n_size, k_size},
           typename G::B_sc_gl{b.factors<__nv_fp8_e8m0>(), n_size / 128, k_size / 128, nullptr, nullptr},
           typename G::D_gl{device_d, nullptr, nullptr, m_size, n_size}},
         kernel_entrypoint<C>, C::CLUSTER_SIZE);
#else
  using C = nvfp4_gemm::CONFIG;
  using G = nvfp4_gemm::globals<C>;
  float* const one = copied(std::vector<float>{1.f});
  launch(G{typename G::A_fp4x2_gl{a.elements<__nv_fp4x2_e2m1>(), nullptr, nullptr, m_size, k_size / 2},
           typename G::A_sc_gl{a.factors<half>(), nullptr, m_size / 128, k_size / 64, nullptr},
           typename G::A_sc_global_gl{one, nullptr, nullptr, nullptr, nullptr},
           typename G::B_fp4x2_gl{b.elements<__nv_fp4x2_e2m1>(), nullptr, nullptr, n_size, k_size / 2},
           typename G::B_sc_gl{b.factors<half>(), nullptr, n_size / 128, k_size / 64, nullptr},
           typename G::B_sc_global_gl{copied(std::vector<float>{0.5f}), nullptr, nullptr, nullptr, nullptr},
           typename G::D_gl{device_d, nullptr, nullptr, m_size, n_size}},
         kernel_entrypoint<C>, C::CLUSTER_SIZE);
#endif
  if (cudaMemcpy(d.data(), device_d, d.size() * sizeof(bf16), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  const std::vector<float> rows = a.all(), columns = b.all();
  long wrong = 0;
  for (size_t m = 0; m < m_size; ++m)
    for (size_t n = 0; n < n_size; ++n) {
      float sum = 0;
      for (size_t k = 0; k < k_size; ++k) sum += rows[m * k_size + k] * columns[n * k_size + k];
      if (format == 3) sum /= 2;
      wrong += !(__bfloat162float(d[m * n_size + n]) == __bfloat162float(__float2bfloat16(sum)));
    }
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
