// Tensor copies: every swizzle, boxes that hang over each edge of the tensor, one to five dimensions, every fourth row; stores that are
// clipped, and that add; a multicast to a cluster of two; plain bulk copies; a map that CUTLASS has changed.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "check.h"

__device__ uint32_t address_of(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(arrivals) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes)
               : "memory");
}
__device__ void wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(
          address_of(barrier)),
      "r"(parity)
      : "memory");
}

/// Copies the box at (x, y), of `bytes` bytes, to `out`: as it lies in `smem_bytes` of shared memory, zeros in its gaps.
__global__ void load(const __grid_constant__ CUtensorMap map, int x, int y, int bytes, int smem_bytes, uint32_t* out) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ uint64_t barrier;
  for (int i = threadIdx.x; i < smem_bytes / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(tile)[i] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) init(&barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(&barrier, bytes);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(address_of(tile)),
        "l"(&map), "r"(x), "r"(y), "r"(address_of(&barrier))
        : "memory");
  }
  wait(&barrier, 0);
  for (int i = threadIdx.x; i < smem_bytes / 4; i += blockDim.x) out[i] = reinterpret_cast<uint32_t*>(tile)[i];
}

/// The box, in which each 32-bit word holds its place, to (x, y) of the tensor.
__global__ void store(const __grid_constant__ CUtensorMap map, int x, int y, int bytes, bool add) {
  extern __shared__ __align__(1024) unsigned char tile[];
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(tile)[i] = 1000 + i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    if (add)
      asm volatile(
          "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
          "r"(x), "r"(y), "r"(address_of(tile))
          : "memory");
    else
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                   "r"(x), "r"(y), "r"(address_of(tile))
                   : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

/// The upper left part, of 5 x 3 words, of a box of 8 x 4: the rest is never written.
__global__ void store_part(const __grid_constant__ CUtensorMap map, int x, int y) {
  __shared__ __align__(128) uint32_t tile[32];
  if (threadIdx.x < 15) tile[threadIdx.x / 5 * 8 + threadIdx.x % 5] = 1000 + threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
                 "r"(y), "r"(address_of(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

__global__ void load_3d(const __grid_constant__ CUtensorMap map, uint32_t* out) {
  __shared__ __align__(1024) uint32_t tile[4 * 3 * 8];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    init(&barrier, 1);
    expect(&barrier, sizeof tile);
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
            "r"(address_of(tile)),
        "l"(&map), "r"(4), "r"(-1), "r"(1), "r"(address_of(&barrier))
        : "memory");
  }
  __syncthreads();
  wait(&barrier, 0);
  if (threadIdx.x < 4 * 3 * 8) out[threadIdx.x] = tile[threadIdx.x];
}

/// Each block of the cluster loads one half of 1 KiB, for both.
__global__ void __cluster_dims__(2, 1, 1) multicast(const __grid_constant__ CUtensorMap map, uint32_t* out) {
  __shared__ __align__(1024) uint32_t tile[256];
  __shared__ uint64_t barrier;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) init(&barrier, 1);
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    expect(&barrier, sizeof tile);
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%2}], "
        "[%3], %4;" ::"r"(address_of(tile + 128 * rank)),
        "l"(&map), "r"(rank * 128), "r"(address_of(&barrier)), "h"(uint16_t{3})
        : "memory");
  }
  wait(&barrier, 0);
  out[blockIdx.x * 256 + threadIdx.x] = tile[threadIdx.x];
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Global to shared, to the other block's shared memory, and back to global memory. The other block may be first: its copy has
/// an mbarrier of its own.
__global__ void __cluster_dims__(2, 1, 1) bytes(const uint32_t* in, uint32_t* out) {
  __shared__ __align__(16) uint32_t mine[64], theirs[64];
  __shared__ uint64_t barrier, from_other;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    init(&barrier, 1);
    init(&from_other, 1);
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    expect(&barrier, sizeof mine);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     address_of(mine)),
                 "l"(in + rank * 64), "r"(256), "r"(address_of(&barrier))
                 : "memory");
    wait(&barrier, 0);
    expect(&from_other, sizeof theirs);
    asm volatile(
        "{\n.reg .b32 to, there;\nmapa.shared::cluster.u32 to, %0, %4;\nmapa.shared::cluster.u32 there, %3, %4;\n"
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to], [%1], %2, [there];\n}" ::"r"(
            address_of(theirs)),
        "r"(address_of(mine)), "r"(256), "r"(address_of(&from_other)), "r"(rank ^ 1)
        : "memory");
    wait(&from_other, 0);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + rank * 64),
                 "r"(address_of(theirs)), "r"(256)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

Encode encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result));
  return reinterpret_cast<Encode>(function);
}

CUresult make(CUtensorMap* map, void* address, std::vector<cuuint64_t> size, std::vector<cuuint64_t> strides,
              std::vector<cuuint32_t> box, CUtensorMapSwizzle swizzle, cuuint32_t row_step = 1) {
  std::vector<cuuint32_t> steps(size.size(), 1);
  if (size.size() > 1) steps[1] = row_step;
  return encode()(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, static_cast<cuuint32_t>(size.size()), address, size.data(),
                  strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

void must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::printf("cuTensorMapEncodeTiled: %d\n", static_cast<int>(result));
  std::exit(1);
}

constexpr int width = 40, height = 21, pitch = 44;  // of the tensor, in words

/// Bytes from row to row of a box in shared memory: a row narrower than the swizzle's span takes a whole span.
int span(int box, CUtensorMapSwizzle mode) {
  const int least = mode == CU_TENSOR_MAP_SWIZZLE_32B    ? 32
                    : mode == CU_TENSOR_MAP_SWIZZLE_64B  ? 64
                    : mode == CU_TENSOR_MAP_SWIZZLE_128B ? 128
                                                         : 0;
  return std::max(least, 4 * box);
}

/// Where word `i` of a box `box` words wide lies in shared memory (PTX ISA, "Swizzling Modes").
uint32_t swizzled(int i, int box, CUtensorMapSwizzle mode) {
  const uint32_t word = i / box * span(box, mode) / 4 + i % box;
  const uint32_t unit = word / 4, row = word / 32;  // of 16 bytes; of 128 bytes
  const uint32_t different = mode == CU_TENSOR_MAP_SWIZZLE_32B    ? 2
                             : mode == CU_TENSOR_MAP_SWIZZLE_64B  ? 4
                             : mode == CU_TENSOR_MAP_SWIZZLE_128B ? 8
                                                                  : 1;
  return (unit ^ row % different) * 4 + word % 4;
}

int main(int argc, char** argv) {
  const bool unaligned = argc > 1 && std::string_view(argv[1]) == "unaligned";
  uint32_t *tensor, *out;
  CHECK(cudaMalloc(&tensor, height * pitch * 4));
  CHECK(cudaMalloc(&out, 64 * 1024));
  std::vector<uint32_t> words(height * pitch), got(16 * 1024);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(7 * i + 1);
  CHECK(cudaMemcpy(tensor, words.data(), words.size() * 4, cudaMemcpyHostToDevice));
  CUtensorMap map;

  const struct {
    CUtensorMapSwizzle mode;
    int box;  // its width in words
  } cases[] = {{CU_TENSOR_MAP_SWIZZLE_NONE, 8},  {CU_TENSOR_MAP_SWIZZLE_NONE, 32}, {CU_TENSOR_MAP_SWIZZLE_32B, 8},
               {CU_TENSOR_MAP_SWIZZLE_64B, 16},  {CU_TENSOR_MAP_SWIZZLE_64B, 8},   {CU_TENSOR_MAP_SWIZZLE_128B, 32},
               {CU_TENSOR_MAP_SWIZZLE_128B, 16}, {CU_TENSOR_MAP_SWIZZLE_128B, 8}};
  const int corners[][2] = {{0, 0}, {4, 3}, {-4, 2}, {36, 17}, {4, -4}, {100, 0}};  // x: multiples of 16 bytes
  for (const auto& [mode, box] : cases) {
    must(make(&map, tensor, {width, height}, {pitch * 4}, {cuuint32_t(box), 16}, mode));
    const int smem_bytes = 16 * span(box, mode);
    if (unaligned) {  // the box begins in the middle of 16 bytes
      load<<<1, 64, smem_bytes>>>(map, 1, 0, box * 16 * 4, smem_bytes, out);
      CHECK(cudaDeviceSynchronize());
    }
    for (const auto& [x, y] : corners) {
      load<<<1, 64, smem_bytes>>>(map, x, y, box * 16 * 4, smem_bytes, out);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(got.data(), out, smem_bytes, cudaMemcpyDeviceToHost));
      for (int i = 0; i < box * 16; ++i) {
        const int column = x + i % box, row = y + i / box;
        const bool inside = column >= 0 && column < width && row >= 0 && row < height;
        expect_equal(i, got[swizzled(i, box, mode)], inside ? words[row * pitch + column] : 0U);
      }
    }
    for (const bool add : {false, true}) {
      store<<<1, 64, smem_bytes>>>(map, 36, 17, smem_bytes, add);
      CHECK(cudaGetLastError());
      std::vector<uint32_t> after(words.size());
      CHECK(cudaMemcpy(after.data(), tensor, words.size() * 4, cudaMemcpyDeviceToHost));
      for (int i = 0; i < box * 16; ++i) {
        const int column = 36 + i % box, row = 17 + i / box;
        if (column >= width || row >= height) continue;
        uint32_t& word = words[row * pitch + column];
        word = (add ? word : 0) + 1000 + swizzled(i, box, mode);
      }
      for (size_t i = 0; i < words.size(); ++i) expect_equal(i, after[i], words[i]);
    }
  }

  // Every fourth row, from row -3 on: a box of 32 rows has 8 of them.
  must(make(&map, tensor, {width, height}, {pitch * 4}, {32, 32}, CU_TENSOR_MAP_SWIZZLE_128B, 4));
  load<<<1, 64, 1024>>>(map, 4, -3, 1024, 1024, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got.data(), out, 1024, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; ++i) {
    const int column = 4 + i % 32, row = -3 + i / 32 * 4;
    expect_equal(i, got[swizzled(i, 32, CU_TENSOR_MAP_SWIZZLE_128B)],
                 row >= 0 && row < height ? words[row * pitch + column] : 0U);
  }

  // A tensor of 5 words less than the box needs there: 13 x 7, rows of 16 words.
  must(make(&map, tensor, {13, 7}, {64}, {8, 4}, CU_TENSOR_MAP_SWIZZLE_NONE));
  store_part<<<1, 64>>>(map, 8, 4);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got.data(), tensor, 7 * 64, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 15; ++i) words[(4 + i / 5) * 16 + 8 + i % 5] = 1000 + i;
  for (int i = 0; i < 7 * 16; ++i) {
    if (i % 16 >= 13 && i / 16 >= 4)
      words[i] = got[i];  // the last 16 bytes of a row are stored whole; nobody wrote them
    expect_equal(i, got[i], words[i]);
  }

  // CUTLASS clears bit 21 of the second word of the map of a tensor below 128 KiB. Here it is a bit of the tensor's address, too.
  char* large;
  CHECK(cudaMalloc(&large, 6 << 20));
  const uintptr_t end_of_bit_21 = (reinterpret_cast<uintptr_t>(large) | ((2 << 20) - 1)) + 1;
  uint32_t* const far = reinterpret_cast<uint32_t*>(end_of_bit_21 | 1 << 21);
  CHECK(cudaMemcpy(far, words.data(), words.size() * 4, cudaMemcpyHostToDevice));
  must(make(&map, far, {width, height}, {pitch * 4}, {8, 16}, CU_TENSOR_MAP_SWIZZLE_NONE));
  reinterpret_cast<uint64_t*>(&map)[1] &= ~(uint64_t{1} << 21);
  load<<<1, 64, 512>>>(map, 4, 3, 512, 512, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got.data(), out, 512, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i) expect_equal(i, got[i], words[(3 + i / 8) * pitch + 4 + i % 8]);

  // 10 x 3 x 2 words.
  must(make(&map, tensor, {10, 3, 2}, {64, 256}, {4, 3, 8}, CU_TENSOR_MAP_SWIZZLE_NONE));
  load_3d<<<1, 96>>>(map, out);
  CHECK(cudaMemcpy(got.data(), out, 384, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 96; ++i) {
    const int x = 4 + i % 4, y = i / 4 % 3 - 1, z = 1 + i / 12;
    expect_equal(i, got[i], y >= 0 && z < 2 ? words[z * 64 + y * 16 + x] : 0U);
  }

  must(make(&map, tensor, {256}, {1024}, {128}, CU_TENSOR_MAP_SWIZZLE_NONE));
  multicast<<<2, 256>>>(map, out);
  CHECK(cudaMemcpy(got.data(), out, 2048, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 512; ++i) expect_equal(i, got[i], words[i % 256]);

  bytes<<<2, 32>>>(tensor, out);
  CHECK(cudaMemcpy(got.data(), out, 512, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i) expect_equal(i, got[i], words[i ^ 64]);

  // Maps that are refused.
  const CUtensorMapSwizzle none = CU_TENSOR_MAP_SWIZZLE_NONE;
  const CUresult refused[] = {
      make(&map, tensor + 1, {width, height}, {pitch * 4}, {8, 8}, none),
      make(&map, tensor, {width, height}, {pitch * 4 + 4}, {8, 8}, none),
      make(&map, tensor, {width, height}, {pitch * 4}, {8, 257}, none),
      make(&map, tensor, {width, height}, {pitch * 4}, {0, 8}, none),
      make(&map, tensor, {width, height}, {pitch * 4}, {3, 8}, none),
      make(&map, tensor, {width, height}, {pitch * 4}, {16, 8}, CU_TENSOR_MAP_SWIZZLE_32B),
      make(&map, tensor, {0, height}, {pitch * 4}, {8, 8}, none),
  };
  for (size_t i = 0; i < std::size(refused); ++i)
    expect_equal(i, static_cast<int>(refused[i]), static_cast<int>(CUDA_ERROR_INVALID_VALUE));
  return passed();
}
