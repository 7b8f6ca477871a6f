// Tiles of more than a warp: cooperative groups keep their barriers in the shared memory that is reserved for the system.
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

/// Each thread reads what one of the tile's next warp has written before the tile's barrier.
template <int Size>
__global__ void exchange(int* in, int* out) {
  __shared__ cg::block_tile_memory<256> scratch;
  const cg::thread_block block = cg::this_thread_block(scratch);
  const auto tile = cg::tiled_partition<Size>(block);
  const int first = blockIdx.x * blockDim.x + threadIdx.x / Size * Size, rank = tile.thread_rank();
  for (int round = 1; round <= 4; ++round) {
    in[first + rank] = round * (first + rank);
    tile.sync();
    out[first + rank] = in[first + (rank + 32) % Size];
    tile.sync();
  }
}

/// What is not the system's is still checked: one word past the block's own memory.
__global__ void past_the_end(int* out) {
  extern __shared__ int words[];
  unsigned reserved;
  asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(reserved));
  words[threadIdx.x] = static_cast<int>(reserved);
  out[threadIdx.x] = words[threadIdx.x];
}

int main(int count, char**) {
  constexpr int blocks = 3, threads = 256;
  int *in, *out;
  CHECK(cudaMalloc(&in, blocks * threads * sizeof(int)));
  CHECK(cudaMalloc(&out, blocks * threads * sizeof(int)));
  if (count > 1) {
    past_the_end<<<1, 33, 128>>>(out);
    CHECK(cudaDeviceSynchronize());
    return passed();
  }
  const auto check = [&](int size) {
    CHECK(cudaGetLastError());
    std::vector<int> got(blocks * threads);
    CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks * threads; ++i) expect_equal(i, got[i], 4 * (i / size * size + (i + 32) % size));
  };
  exchange<64><<<blocks, threads>>>(in, out);
  check(64);
  exchange<128><<<blocks, threads>>>(in, out);
  check(128);
  exchange<256><<<blocks, threads>>>(in, out);
  check(256);
  return passed();
}
