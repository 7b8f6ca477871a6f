// wgmma in each type, with operands that tensor copies bring in each swizzle, K-contiguous or not, and with A in registers;
// the results are compared with those of FP64.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "check.h"

constexpr int m_size = 64, n_size = 16;

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

#define WGMMA(shape, types, tail)                                                                               \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\nwgmma.mma_async.sync.aligned." shape "." types        \
               " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, " tail ";\n}"                                     \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
               : "l"(a), "l"(b), "r"(add))

/// How A and B lie in shared memory: `Trans` of 16-bit types: M and N are contiguous, not K.
template <class T, bool Trans>
__device__ void wgmma(float (&d)[8], uint64_t a, uint64_t b, int add) {
  if constexpr (std::is_same_v<T, float>)
    WGMMA("m64n16k8", "f32.tf32.tf32", "1, -1");
  else if constexpr (std::is_same_v<T, __half> && Trans)
    WGMMA("m64n16k16", "f32.f16.f16", "1, -1, 1, 1");
  else if constexpr (std::is_same_v<T, __half>)
    WGMMA("m64n16k16", "f32.f16.f16", "1, -1, 0, 0");
  else if constexpr (Trans)
    WGMMA("m64n16k16", "f32.bf16.bf16", "1, -1, 1, 1");
  else
    WGMMA("m64n16k16", "f32.bf16.bf16", "1, -1, 0, 0");
}

__device__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride, int swizzle) {
  const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 | mode << 62;
}

__device__ void load(const CUtensorMap* map, const void* to, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          address_of(to)),
      "l"(map), "r"(x), "r"(y), "r"(address_of(barrier))
      : "memory");
}

/// D = -A B, A of 64 rows and B of 16 columns, `Swizzle` bytes of K (32 where it is 0), or with Trans 32 of K. One
/// warpgroup.
template <class T, int Swizzle, bool Trans>
__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* out) {
  __shared__ __align__(1024) unsigned char a[8192], b[4096];
  __shared__ uint64_t barrier;
  constexpr int wide = Swizzle ? Swizzle : 16, k_bytes = Trans ? 16 * int(sizeof(T)) : Swizzle ? Swizzle : 32;
  constexpr int k_size = k_bytes / int(sizeof(T)), per_box = wide / int(sizeof(T));
  constexpr int a_box = (Trans ? k_size : m_size) * wide, b_box = (Trans ? k_size : n_size) * wide;
  constexpr int a_boxes = (Trans ? m_size : k_size) / per_box ? (Trans ? m_size : k_size) / per_box : 1;
  constexpr int b_boxes = (Trans ? n_size : k_size) / per_box ? (Trans ? n_size : k_size) / per_box : 1;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&barrier)),
                 "r"(a_boxes * a_box + b_boxes * b_box)
                 : "memory");
    for (int i = 0; i < a_boxes; ++i) load(&map_a, a + i * a_box, i * per_box, 0, &barrier);
    for (int i = 0; i < b_boxes; ++i) load(&map_b, b + i * b_box, i * per_box, 0, &barrier);
  }
  __syncthreads();
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(
          address_of(&barrier))
      : "memory");

  float d[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int step = 0; step < k_bytes / 32 || step == 0; ++step) {
    const uint32_t at = Trans ? 0 : step * 32;
    // Bytes from one box to the next, and from 8 rows to the next.
    const uint64_t da =
        descriptor(address_of(a) + at, Trans && !Swizzle ? 128 : a_box, Trans && !Swizzle ? a_box : 8 * wide, Swizzle);
    const uint64_t db =
        descriptor(address_of(b) + at, Trans && !Swizzle ? 128 : b_box, Trans && !Swizzle ? b_box : 8 * wide, Swizzle);
    wgmma<T, Trans>(d, da, db, step);
  }
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    out[row * n_size + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
  }
}

/// A from registers, D in FP16: D += A B twice, the second time with the sum of the first.
__global__ void __launch_bounds__(128) multiply_registers(const __half* a, const __half* b, __half* out) {
  __shared__ __align__(1024) __half tile[n_size * 16];  // no swizzle: 8 x 8 matrices; the two along K are adjacent
  for (int i = threadIdx.x; i < n_size * 16; i += 128) {
    const int n = i / 16, k = i % 16;
    tile[k / 8 * 128 + n * 8 + k % 8] = b[i];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  uint32_t fragment[4], d[4] = {0, 0, 0, 0};
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 4; ++i) memcpy(&fragment[i], a + (row + i % 2 * 8) * 16 + column + i / 2 * 8, 4);
  const uint64_t db = descriptor(address_of(tile), 256, 128, 0);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < 2; ++i)
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %9, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0;\n}"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(fragment[0]), "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3]), "l"(db), "r"(i));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) memcpy(out + (row + i % 2 * 8) * n_size + column + i / 2 * 8, &d[i], 4);
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

template <class T>
CUtensorMap tensor(const T* address, int wide, int high, int box_bytes, int swizzle) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result));
  const cuuint64_t size[] = {cuuint64_t(wide), cuuint64_t(high)}, stride[] = {cuuint64_t(wide) * sizeof(T)};
  const cuuint32_t box[] = {cuuint32_t(box_bytes / sizeof(T)), cuuint32_t(high)}, ones[] = {1, 1};
  CUtensorMap map;
  const CUresult status = reinterpret_cast<Encode>(function)(
      &map,
      std::is_same_v<T, float>    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
      : std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                  : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      2, const_cast<T*>(address), size, stride, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
      : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
      : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                      : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    std::printf("cuTensorMapEncodeTiled: %d\n", static_cast<int>(status));
    std::exit(1);
  }
  return map;
}

uint32_t state = 12345;
double random_value() {
  state = state * 1664525 + 1013904223;
  return static_cast<int>(state >> 16) / 65536.0 - 0.5;
}

/// What the tensor core reads of it: TF32 has 10 bits of fraction, the other bits are ignored.
double seen(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits &= 0xffffe000;
  std::memcpy(&x, &bits, 4);
  return x;
}
double seen(__half x) { return __half2float(x); }
double seen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
T* device_copy(const std::vector<T>& host) {
  T* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

void compare(size_t i, double got, double expected, double bound) {
  if (!(std::fabs(got - expected) <= bound)) expect_equal(i, got, expected);
}

template <class T, int Swizzle, bool Trans = false>
void check() {
  const int k_bytes = Trans ? 16 * int(sizeof(T)) : Swizzle ? Swizzle : 32, k_size = k_bytes / int(sizeof(T));
  const int wide = Swizzle ? Swizzle : 16;
  std::vector<T> a(m_size * k_size), b(n_size * k_size);
  for (T& x : a) x = T(float(random_value()));
  for (T& x : b) x = T(float(random_value()));
  const T *const device_a = device_copy(a), *const device_b = device_copy(b);
  float* const out = device_copy(std::vector<float>(m_size * n_size));
  const CUtensorMap map_a =
      Trans ? tensor(device_a, m_size, k_size, wide, Swizzle) : tensor(device_a, k_size, m_size, wide, Swizzle);
  const CUtensorMap map_b =
      Trans ? tensor(device_b, n_size, k_size, wide, Swizzle) : tensor(device_b, k_size, n_size, wide, Swizzle);
  multiply<T, Swizzle, Trans><<<1, 128>>>(map_a, map_b, out);
  CHECK(cudaGetLastError());
  std::vector<float> got(m_size * n_size);
  CHECK(cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost));
  for (int m = 0; m < m_size; ++m)
    for (int n = 0; n < n_size; ++n) {
      double sum = 0, size = 0;
      for (int k = 0; k < k_size; ++k) {
        const double product =
            seen(a[Trans ? k * m_size + m : m * k_size + k]) * seen(b[Trans ? k * n_size + n : n * k_size + k]);
        sum -= product;
        size += std::fabs(product);
      }
      compare(m * n_size + n, got[m * n_size + n], sum, size * std::ldexp(k_size, -23));
    }
}

int main() {
  check<__nv_bfloat16, 128>();
  check<__nv_bfloat16, 64>();
  check<__nv_bfloat16, 32>();
  check<__nv_bfloat16, 0>();
  check<__half, 128>();
  check<__half, 0>();
  check<float, 128>();
  check<float, 64>();
  check<float, 32>();
  check<float, 0>();
  check<__nv_bfloat16, 32, true>();
  check<__half, 32, true>();
  check<__half, 0, true>();

  std::vector<__half> a(m_size * 16), b(n_size * 16);
  for (__half& x : a) x = __float2half(float(random_value()));
  for (__half& x : b) x = __float2half(float(random_value()));
  __half* const out = device_copy(std::vector<__half>(m_size * n_size));
  multiply_registers<<<1, 128>>>(device_copy(a), device_copy(b), out);
  std::vector<__half> got(m_size * n_size);
  CHECK(cudaMemcpy(got.data(), out, got.size() * 2, cudaMemcpyDeviceToHost));
  for (int i = 0; i < m_size * n_size; ++i) {
    double sum = 0;
    for (int k = 0; k < 16; ++k) sum += 2 * seen(a[i / n_size * 16 + k]) * seen(b[i % n_size * 16 + k]);
    compare(i, seen(got[i]), sum, 4e-3);
  }
  return passed();
}
