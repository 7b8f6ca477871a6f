// Products of FP4 with scale factors on the tensor cores of sm_100a: NVFP4 (a UE4M3 per 16 of K), or with "mxfp4" MXFP4 (a UE8M0 per 32). TMA
// brings packed E2M1, bulk copies bring the scale factors, tcgen05.cp takes them to tensor memory. M, N and K as the tiles have them. With an
// argument it has one fault, which a kernel like it could have.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

enum Fault {
  none,
  scale_factor_id,
  other_half,
  scales_outside,
  scales_at_lane_16,
  scales_not_copied,
  scales_of_a_for_b,
  other_scale_type,
  k_96,
  type_of_f8f6f4,
  transposed,
  one_factor,
  copy_without_multicast,
  scales_stored_unfenced,
  scales_overwritten,
  copied_after_the_products,
  k_offset_of_fp8,
  fault_count
};
const char* const fault_names[] = {"none",
                                   "scale_factor_id",
                                   "other_half",
                                   "scales_outside",
                                   "scales_at_lane_16",
                                   "scales_not_copied",
                                   "scales_of_a_for_b",
                                   "other_scale_type",
                                   "k_96",
                                   "type_of_f8f6f4",
                                   "transposed",
                                   "one_factor",
                                   "copy_without_multicast",
                                   "scales_stored_unfenced",
                                   "scales_overwritten",
                                   "copied_after_the_products",
                                   "k_offset_of_fp8"};
static_assert(sizeof fault_names / sizeof *fault_names == fault_count);

constexpr int BM = 128, BN = 128, BK = 256, stages = 2, columns = 256;
constexpr int tile_bytes = 128 * BK / 2;  // of A, and of B
/// 128 rows by four scale factors: a row's four side by side, rows 32 apart after each other.
constexpr int scale_tile_bytes = 512;
template <int K_PER_FACTOR>
constexpr int scale_tiles = BK / (4 * K_PER_FACTOR);  // of one operand and stage
template <int K_PER_FACTOR>
constexpr int stage_bytes = 2 * tile_bytes + 2 * scale_tiles<K_PER_FACTOR>* scale_tile_bytes;

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

__device__ void wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(
          address_of(barrier)),
      "r"(parity)
      : "memory");
}

__device__ void load_tile(const CUtensorMap* map, const void* to, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          address_of(to)),
      "l"(map), "r"(x), "r"(y), "r"(address_of(barrier))
      : "memory");
}

__device__ void load_bytes(const void* from, const void* to, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(to)),
      "l"(from), "r"(bytes), "r"(address_of(barrier))
      : "memory");
}

__device__ void commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address_of(barrier))
               : "memory");
}

/// Rows of 128 bytes with 128-byte swizzling, K contiguous.
__device__ uint64_t tile_descriptor(uint32_t address) {
  return uint64_t{address >> 4} | uint64_t{8 * 128 >> 4} << 32 | uint64_t{1} << 46 | uint64_t{2} << 61;
}
/// 32 rows of 16 bytes, eight of them side by side.
__device__ uint64_t scale_descriptor(uint32_t address) {
  return uint64_t{address >> 4} | uint64_t{8 * 16 >> 4} << 32 | uint64_t{1} << 46;
}

__device__ void copy_scales(uint32_t to, uint32_t from, int fault) {
  if (fault == copy_without_multicast)
    asm volatile("tcgen05.cp.cta_group::1.4x256b [%0], %1;" ::"r"(to), "l"(scale_descriptor(from)) : "memory");
  else
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(scale_descriptor(from)) : "memory");
}

template <int K_PER_FACTOR>
__device__ void multiply_add(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, uint32_t scale_a, uint32_t scale_b,
                             bool add) {
  if constexpr (K_PER_FACTOR == 16)
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(
            d),
        "l"(a), "l"(b), "r"(shape), "r"(scale_a), "r"(scale_b), "r"(int(add))
        : "memory");
  else
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
        "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d),
        "l"(a), "l"(b), "r"(shape), "r"(scale_a), "r"(scale_b), "r"(int(add))
        : "memory");
}

template <int K_PER_FACTOR>
__global__ void __launch_bounds__(192)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             const uint8_t* scales_a, const uint8_t* scales_b, float* d, int n_size, int k_size, int fault) {
  constexpr int tiles = scale_tiles<K_PER_FACTOR>;
  extern __shared__ __align__(1024) unsigned char smem[];
  __shared__ uint64_t full[stages], empty[stages], done;
  __shared__ uint32_t tensor_address;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, k_tiles = k_size / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full[i])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&empty[i])));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&done)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 5) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address_of(&tensor_address)),
                 "n"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  __syncthreads();

  if (warp == 4 && lane == 0) {
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % stages;
      wait(&empty[stage], i / stages % 2 ^ 1);
      unsigned char* const tile = smem + stage * stage_bytes<K_PER_FACTOR>;
      unsigned char* const scales = tile + 2 * tile_bytes;
      constexpr int scale_bytes = tiles * scale_tile_bytes;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&full[stage])),
                   "r"(stage_bytes<K_PER_FACTOR>)
                   : "memory");
      load_tile(&map_a, tile, i * BK / 2, blockIdx.y * BM, &full[stage]);
      load_tile(&map_b, tile + tile_bytes, i * BK / 2, blockIdx.x * BN, &full[stage]);
      load_bytes(scales_a + (blockIdx.y * k_tiles + i) * scale_bytes, scales, scale_bytes, &full[stage]);
      load_bytes(scales_b + (blockIdx.x * k_tiles + i) * scale_bytes, scales + scale_bytes, scale_bytes, &full[stage]);
    }
  } else if (warp == 5 && lane == 0) {
    const uint32_t type = fault == type_of_f8f6f4 ? 5 : 1, ue8m0 = (K_PER_FACTOR == 32) != (fault == other_scale_type);
    const uint32_t shape = type << 7 | type << 10 | uint32_t(fault == transposed) << 15 | BN / 8 << 17 | ue8m0 << 23 |
                           BM / 128 << 27 | uint32_t(fault == k_96) << 31;
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % stages;
      wait(&full[stage], i / stages % 2);
      asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
      unsigned char* const tile = smem + stage * stage_bytes<K_PER_FACTOR>;
      const uint32_t a = address_of(tile), b = a + tile_bytes, scales = b + tile_bytes;
      if (fault == scales_stored_unfenced) *reinterpret_cast<volatile int*>(tile + 2 * tile_bytes) = 0x38383838;
      const uint32_t to_a = tensor_address + BN, to_b = to_a + 4 * tiles;
      const auto copy = [&] {
        for (int t = 0; t < tiles; ++t) {
          copy_scales(to_a + 4 * t, scales + t * scale_tile_bytes, fault);
          copy_scales(to_b + 4 * t, scales + (fault == scales_of_a_for_b ? t : tiles + t) * scale_tile_bytes, fault);
        }
      };
      if (fault != scales_not_copied && fault != copied_after_the_products) copy();
      for (int k = 0; k < BK / 64; ++k) {
        // Two bytes of a column for each 64 of K, or all four.
        const uint32_t factors = k * 64 / K_PER_FACTOR;
        uint32_t id = factors % 4;
        if (fault == scale_factor_id) id = K_PER_FACTOR == 32 ? id + 1 : 2;
        if (fault == other_half) id ^= 2;
        uint32_t scale_a = to_a + factors / 4 * 4, scale_b = to_b + factors / 4 * 4;
        if (fault == scales_outside) scale_b += columns;
        if (fault == scales_at_lane_16) scale_a |= 16 << 16;
        if (fault == one_factor) scale_a = to_a;
        const int step = fault == k_offset_of_fp8 ? 64 : 32;
        multiply_add<K_PER_FACTOR>(tensor_address, tile_descriptor(a + step * k), tile_descriptor(b + 32 * k),
                                   shape | id << 29 | id << 4, scale_a, scale_b, i + k != 0);
      }
      if (fault == copied_after_the_products) copy();
      if (fault == scales_overwritten) *reinterpret_cast<volatile int*>(tile + 2 * tile_bytes) = 0;
      commit(&empty[stage]);
    }
    commit(&done);
  } else if (warp < 4) {
    wait(&done, 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int n = 0; n < BN; n += 8) {
      float v[8];
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                   : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
                   : "r"(tensor_address + (warp << 21) + n));
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      for (int i = 0; i < 8; ++i) d[size_t(blockIdx.y * BM + threadIdx.x) * n_size + blockIdx.x * BN + n + i] = v[i];
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  __syncthreads();
  if (warp == 5) {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor_address), "n"(columns));
  }
}

template <class T>
T* copied(const std::vector<T>& host) {
  T* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

/// Rows of packed E2M1 and their scale factors, which are few powers of two: every sum is exact in FP32.
struct Operand {
  int rows, k, k_per_factor;
  std::vector<uint8_t> bytes, scales;

  Operand(int rows, int k, int k_per_factor, uint32_t seed)
      : rows(rows), k(k), k_per_factor(k_per_factor), bytes(rows * k / 2), scales(rows * k / k_per_factor) {
    const auto next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 16; };
    for (uint8_t& byte : bytes) byte = uint8_t(next());
    for (uint8_t& scale : scales) scale = uint8_t(k_per_factor == 16 ? 0x30 + 8 * (next() % 3) : 126 + next() % 3);
  }
  double value(int row, int column) const {
    constexpr double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const int bits = bytes[(size_t(row) * k + column) / 2] >> column % 2 * 4 & 15;
    const int factor = column / k_per_factor, tile = row / 128 * (k / k_per_factor / 4) + factor / 4;
    const int scale = scales[tile * scale_tile_bytes + row % 32 * 16 + row / 32 % 4 * 4 + factor % 4];
    return magnitudes[bits & 7] * (bits & 8 ? -1 : 1) *
           (k_per_factor == 16 ? std::ldexp(1.0, scale / 8 - 7) : std::ldexp(1.0, scale - 127));
  }
  CUtensorMap map() const {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    const cuuint64_t size[] = {cuuint64_t(k) / 2, cuuint64_t(rows)}, stride[] = {cuuint64_t(k) / 2};
    const cuuint32_t box[] = {BK / 2, 128}, step[] = {1, 1};
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
    expect_equal(0,
                 int(encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, copied(bytes), size, stride, box, step,
                            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)),
                 int(CUDA_SUCCESS));
    return map;
  }
};

template <int K_PER_FACTOR>
int run(int fault) {
  const int m_size = 256, n_size = 128, k_size = 1280;
  const Operand a(m_size, k_size, K_PER_FACTOR, 1), b(n_size, k_size, K_PER_FACTOR, 2);
  float* device_d;
  CHECK(cudaMalloc(&device_d, m_size * n_size * 4));
  constexpr int bytes = stages * stage_bytes<K_PER_FACTOR>;
  CHECK(cudaFuncSetAttribute(multiply<K_PER_FACTOR>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply<K_PER_FACTOR><<<dim3(n_size / BN, m_size / BM), 192, bytes>>>(
      a.map(), b.map(), copied(a.scales), copied(b.scales), device_d, n_size, k_size, fault);
  CHECK(cudaGetLastError());
  std::vector<float> d(m_size * n_size);
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * 4, cudaMemcpyDeviceToHost));
  for (int m = 0; m < m_size; ++m)
    for (int n = 0; n < n_size; ++n) {
      double sum = 0;
      for (int k = 0; k < k_size; ++k) sum += a.value(m, k) * b.value(n, k);
      expect_equal(m * n_size + n, d[m * n_size + n], float(sum));
    }
  return passed();
}

int main(int argc, char** argv) {
  int fault = none;
  bool mxfp4 = false;
  for (int arg = 1; arg < argc; ++arg) {
    mxfp4 |= !std::strcmp(argv[arg], "mxfp4");
    for (int i = 0; i < fault_count; ++i)
      if (!std::strcmp(argv[arg], fault_names[i])) fault = i;
  }
  return mxfp4 ? run<32>(fault) : run<16>(fault);
}
