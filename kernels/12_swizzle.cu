// 12_swizzle · rows of 128 bytes with swizzled chunks: no bank conflicts, no padding
//
// Idea              The skew moves each row by 16 bytes, so that 8 rows begin in different banks. An XOR does the same
//                   inside the row: 16-byte chunk c of a row lies in place c ^ row % 8. No byte is wasted, and a row of
//                   the tile is one aligned 128-byte line of shared memory.
// Changed from 11   Tile::swizzle_128b(row, chunk) instead of pitch_linear(row, byte, pitch), for copies and for loads
// Expect            1.3 times 11 at most: by its banks no faster, and each load needs an address of its own. But 7 of 8
//                   skewed rows lie across two lines. If cp.async writes one line per wavefront, 11 takes 248
//                   wavefronts per k tile, this kernel 192. The block needs 64 KB instead of 72
// Limiter now       the instructions between two mma: a load for each, and its address
// New instructions  none
// Limits            tf32 (truncated), bf16, f16; sm_80 with 64 KB of shared memory per block; any M, N, K; rows
//                   a multiple of 16 bytes
// Run               ./run_all.sh run 12 4096 4096 4096 --type bf16
// Read              docs/12_swizzle.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = 64;           // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int COPIES = (BM + BN) / COPY_ROWS;         // per thread and k tile
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = 2 * STAGE_BYTES;
  static_assert(BM % COPY_ROWS == 0 && BN % COPY_ROWS == 0, "one copy is of A or of B");
  static_assert(COPY_ROWS % 8 == 0, "all rows that a thread copies have the same row % 8");

  // [place]
  // Byte of a tile at which chunk `chunk` (16 bytes along k) of row `row` lies. The XOR with the row's number sends the
  // same chunk of eight neighbouring rows to the eight different 16-byte columns of shared memory.
  static constexpr __host__ __device__ int swizzle_128b(int row, int chunk) {
    return row * BK_BYTES + (chunk ^ row % 8) * 16;
  }
  // [/place]
};

// The rungs after this one take it from common/layout.h, where the tests and the figures find it: it is the same
// function.
static_assert([] {
  for (int row = 0; row < Tile::BM; ++row)
    for (int chunk = 0; chunk < 8; ++chunk)
      if (Tile::swizzle_128b(row, chunk) != swizzle_128b(row, chunk)) return false;
  return true;
}());

/// Stores a warp's tile of C, whose first element is C[row][col]. Of every 16 x 8 results a lane has a pair of neighbours in
/// row g and one in row g + 8.
template <class TC>
__device__ void store_results(const float (&acc)[Tile::WM / 16][Tile::WN / 8][4], int row, int col, int M, int N,
                              float alpha, float beta, TC* C, int ldc) {
#pragma unroll
  for (int i = 0; i < Tile::WM / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; r += 2) {
      const auto [pair_row, pair_col] = mma_c(threadIdx.x % 32, r);
      const int m = row + i * 16 + pair_row;
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < Tile::WN / 8; ++j) {
        const int n = col + j * 8 + pair_col;
        TC* const gC = C + static_cast<size_t>(m) * ldc + n;
        float d[2] = {alpha * acc[i][j][r], alpha * acc[i][j][r + 1]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          if (n < N) d[0] += beta * to_float(gC[0]);
          if (n + 1 < N) d[1] += beta * to_float(gC[1]);
        }
        if (n + 2 <= N)
          store2(gC, d);
        else if (n < N)
          *gC = from_float<TC>(d[0]);  // the padding of C must stay as it is
      }
    }
  }
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks per SM
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int COPY_ROWS = Tile::COPY_ROWS, COPIES = Tile::COPIES;
  constexpr int MMA_K_BYTES = Tile::MMA_K_BYTES, K_STEPS = Tile::K_STEPS;
  extern __shared__ __align__(16) unsigned char smem[];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile

  // 2. set up. Past the last row or column, read the last one: its results are not stored. The tile
  // at the end of K comes first; it may be a residue tile.
  const int k_bytes = K * static_cast<int>(sizeof(T));
  int k_offset_bytes = (k_bytes - 1) / BK_BYTES * BK_BYTES;
  const unsigned char* cp_async_src[COPIES];  // what this thread copies next: rows of A, then columns of B
#pragma unroll
  for (int i = 0; i < COPIES; ++i) {
    const T* const start = i < BM / COPY_ROWS
                               ? A + static_cast<size_t>(min(block_row + copy_row + i * COPY_ROWS, M - 1)) * lda
                               : B + static_cast<size_t>(min(block_col + copy_row + i * COPY_ROWS - BM, N - 1)) * ldb;
    cp_async_src[i] = reinterpret_cast<const unsigned char*>(start) + k_offset_bytes + copy_chunk * 16;
  }
  float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]

  // Copies this thread's 16-byte chunks of a k tile. `bytes_left` bytes of the row from the chunk's first byte on are
  // inside the matrix; the rest of the chunk is filled with zeros. COPY_ROWS rows further down, the chunk has the same
  // place in its row.
  const uint32_t cp_async_dst = shared_address(smem) + Tile::swizzle_128b(copy_row, copy_chunk);
  const auto copy_tile = [&](int write_stage, int bytes_left) {
    const int copy_bytes = min(max(bytes_left, 0), 16);
#pragma unroll
    for (int i = 0; i < COPIES; ++i, cp_async_src[i - 1] -= BK_BYTES)
      cp_async_cg_16(cp_async_dst + write_stage * Tile::STAGE_BYTES + i * COPY_ROWS * BK_BYTES, cp_async_src[i],
                     copy_bytes);
    cp_async_commit_group();
  };
  copy_tile(0, k_bytes - k_offset_bytes - copy_chunk * 16);
  int read_stage = 0;

  // [main-loop]
  // 3. main loop: gmem -cp.async-> smem[read_stage ^ 1]     smem[read_stage] -loads-> registers -mma-> acc
  for (; k_offset_bytes >= 0; k_offset_bytes -= BK_BYTES) {
    cp_async_wait_group<0>();  // my copies have landed
    __syncthreads();           // everyone's have, and everyone has read the other stage
    if (k_offset_bytes > 0) copy_tile(read_stage ^ 1, 16);

    const unsigned char *const sA = smem + read_stage * Tile::STAGE_BYTES, *const sB = sA + BM * BK_BYTES;
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      uint32_t rA[WM / 16][4];  // [16 rows][words of this lane: mma_a]
      uint32_t rB[WN / 8][2];   // [8 columns][words of this lane: mma_b]
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const auto [row, word] = mma_a(lane, r);
          rA[i][r] = *reinterpret_cast<const uint32_t*>(
              &sA[Tile::swizzle_128b(warp_row + i * 16 + row, k_step * MMA_K_BYTES / 16 + word / 4) + word % 4 * 4]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const auto [col, word] = mma_b(lane, r);
          rB[j][r] = *reinterpret_cast<const uint32_t*>(
              &sB[Tile::swizzle_128b(warp_col + j * 8 + col, k_step * MMA_K_BYTES / 16 + word / 4) + word % 4 * 4]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) Operand<type>::mma(acc[i][j], rA[i], rB[j]);
    }
    read_stage ^= 1;
  }
  // [/main-loop]

  // 4. epilogue
  store_results(acc, block_row + warp_row, block_col + warp_col, M, N, alpha, beta, C, ldc);
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(gemm<type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    gemm<type, TC><<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda,
                                                                          p.B<T>(), p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "12",
    .name = "swizzle",
    .idea = "an XOR swizzle in place of the skew: no bank conflict and no wasted byte",
    .predecessor = "11",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_types(p, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
