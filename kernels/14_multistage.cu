// 14_multistage · several k tiles in flight, fragments one k step ahead
//
// Idea              Two k tiles are copied while a third is multiplied, and the fragments of the next step are loaded while
//                   this one is multiplied. Then a warp waits for neither:
//                   gmem -cp.async-> smem[write_stage] -ldmatrix-> rA, rB -mma-> acc
// Changed from 13   3 stages; rA[2], rB[2]; the copies of a k tile are spread over the steps of the one that is multiplied;
//                   256 x 128 results per block, one block per SM. A second tile of 128 x 128 for GPUs with less than 144 KB of
//                   shared memory per block
// Expect            no warp waits for a copy or a fragment. In addition to the mma, barriers, prologue and epilogue remain,
//                   7 % of the time: 1.28 times 13
// Limiter now       mma.sync and shared memory, which need about as many clocks; the start and end of a block
// New instructions  none
// Limits            tf32 (truncated), bf16, f16; sm_80 with 96 KB of shared memory per block; any M, N, K; rows a multiple
//                   of 16 bytes
// Run               ./run_all.sh run 14 4096 4096 4096 --type bf16
// Read              docs/14_multistage.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

template <int BLOCK_M, int WARP_N>
struct TileConfig {
  static constexpr int BM = BLOCK_M;      // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = WARP_N;       // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 3;      // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int COPY_STEPS = 3;  // the copies of a k tile are spread over this many k steps
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int COPIES = (BM + BN) / COPY_ROWS;         // per thread and k tile
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
  static_assert(BM % COPY_ROWS == 0 && BN % COPY_ROWS == 0, "one copy is of A or of B");
  static_assert(COPY_ROWS % 8 == 0, "all rows that a thread copies have the same row % 8");
  static_assert(K_STEPS % 2 == 0, "the fragments of a k tile's first step lie in rA[0] and rB[0]");
  static_assert(COPY_STEPS < K_STEPS, "all copies of a k tile are committed before the wait for the next one");
};
using Large = TileConfig<256, 64>;  // 144 KB of shared memory: A100, H100, H200
using Small = TileConfig<128, 32>;  // 96 KB: RTX 30, 40 and 50

/// Stores a warp's tile of C, whose first element is C[row][col]. Of every 16 x 8 results a lane has a pair of neighbours in
/// row g and one in row g + 8.
template <class Tile, class TC>
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

template <class Tile, Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int COPY_ROWS = Tile::COPY_ROWS, COPIES = Tile::COPIES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile

  // 2. set up. Past the last row or column, read the last one: its results are not stored. The tile
  // at the end of K comes first; it may be a residue tile.
  const int k_bytes = K * static_cast<int>(sizeof(T)), k_tiles = ceil_div(k_bytes, BK_BYTES);
  const int k_offset_bytes = (k_tiles - 1) * BK_BYTES;
  const unsigned char* cp_async_src[COPIES];  // what this thread copies next: rows of A, then columns of B
#pragma unroll
  for (int i = 0; i < COPIES; ++i) {
    const T* const start = i < BM / COPY_ROWS
                               ? A + static_cast<size_t>(min(block_row + copy_row + i * COPY_ROWS, M - 1)) * lda
                               : B + static_cast<size_t>(min(block_col + copy_row + i * COPY_ROWS - BM, N - 1)) * ldb;
    cp_async_src[i] = reinterpret_cast<const unsigned char*>(start) + k_offset_bytes + copy_chunk * 16;
  }
  int copy_k_tiles_left = k_tiles - 1;
  const auto next_k_tile = [&] {  // after the last one, copy it once more; the copy is never used
    const int back = copy_k_tiles_left-- > 0 ? BK_BYTES : 0;
#pragma unroll
    for (int i = 0; i < COPIES; ++i) cp_async_src[i] -= back;
  };

  // Copies this thread's 16-byte chunks [first, last) of a k tile. Where `bytes` is given, so many bytes of each chunk lie inside
  // the matrix, and the rest is filled with zeros. COPY_ROWS rows further down, a chunk has the same place in its row.
  const uint32_t cp_async_dst = shared_address(smem) + swizzle_128b(copy_row, copy_chunk);
  const auto copy = [&](uint32_t write_stage_bytes, int first, int last, auto... bytes) {
#pragma unroll
    for (int i = first; i < last; ++i)
      cp_async_cg_16(cp_async_dst + write_stage_bytes + i * COPY_ROWS * BK_BYTES, cp_async_src[i], bytes...);
  };

  // The row whose address this lane gives to ldmatrix, per k step, in stage 0. An ldmatrix loads four matrices of 8 rows of 16 bytes:
  // of A two below one another and two along k, of B two along k and two next to one another.
  uint32_t ldsm_a_addr[K_STEPS], ldsm_b_addr[K_STEPS];
#pragma unroll
  for (int k_step = 0; k_step < K_STEPS; ++k_step) {
    ldsm_a_addr[k_step] =
        shared_address(smem) + swizzle_128b(warp_row + ldsm_a(lane).row, k_step * 2 + ldsm_a(lane).col);
    ldsm_b_addr[k_step] =
        shared_address(smem) + BM * BK_BYTES + swizzle_128b(warp_col + ldsm_b(lane).row, k_step * 2 + ldsm_b(lane).col);
  }
  uint32_t rA[2][WM / 16][4];  // [k step % 2][16 rows][words of this lane: mma_a]
  uint32_t rB[2][WN / 16][4];  // [k step % 2][16 columns][words of this lane: mma_b of the first 8, then of the others]
  const auto load_fragments = [&](uint32_t stage_bytes, int k_step) {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
      ldmatrix_x4(rA[k_step % 2][i], ldsm_a_addr[k_step] + stage_bytes + i * 16 * BK_BYTES);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j)
      ldmatrix_x4(rB[k_step % 2][j], ldsm_b_addr[k_step] + stage_bytes + j * 16 * BK_BYTES);
  };

  // The first k tile may be a residue tile: zeros past K. If it is the only one, the main loop copies it again, unpredicated, and
  // these copies must stay inside the row.
  copy(0, 0, COPIES, min(max(k_bytes - k_offset_bytes - copy_chunk * 16, 0), 16));
  if (k_tiles == 1)
#pragma unroll
    for (int i = 0; i < COPIES; ++i) cp_async_src[i] -= copy_chunk * 16;
  cp_async_commit_group();
#pragma unroll
  for (int stage = 1; stage < STAGES - 1; ++stage) {
    next_k_tile();
    copy(stage * Tile::STAGE_BYTES, 0, COPIES);
    cp_async_commit_group();
  }
  // [first-wait]
  cp_async_wait_group<STAGES - 2>();
  __syncthreads();
  // [/first-wait]
  load_fragments(0, 0);

  // 3. main loop: gmem -cp.async-> smem[write stage]     smem[read stage] -ldmatrix-> registers -mma-> acc
  // Consumes one stage; returns the next one's offset.
  const auto multiply_k_tile = [&](uint32_t read_stage_bytes, float(&acc)[WM / 16][WN / 8][4]) {
    const uint32_t next_stage_bytes =
        read_stage_bytes + Tile::STAGE_BYTES == Tile::SMEM_BYTES ? 0 : read_stage_bytes + Tile::STAGE_BYTES;
    const uint32_t write_stage_bytes =
        (read_stage_bytes == 0 ? Tile::SMEM_BYTES : read_stage_bytes) - Tile::STAGE_BYTES;
    // [k-steps]
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      // [wait]
      if (k_step == K_STEPS - 1) {          // the next stage is needed
        cp_async_wait_group<STAGES - 2>();  // my copies into it have landed
        __syncthreads();                    // everyone's have, and everyone is done with this stage
      }
      // [/wait]
      load_fragments(k_step == K_STEPS - 1 ? next_stage_bytes : read_stage_bytes, (k_step + 1) % K_STEPS);
      if (k_step == 0) next_k_tile();
      if (k_step < Tile::COPY_STEPS)  // into the stage that everyone was done with at the last barrier
        copy(write_stage_bytes, COPIES * k_step / Tile::COPY_STEPS, COPIES * (k_step + 1) / Tile::COPY_STEPS);
      if (k_step == Tile::COPY_STEPS - 1) cp_async_commit_group();
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {
          const uint32_t b[2] = {rB[k_step % 2][j / 2][j % 2 * 2], rB[k_step % 2][j / 2][j % 2 * 2 + 1]};
          Operand<type>::mma(acc[i][j], rA[k_step % 2][i], b);
        }
    }
    // [/k-steps]
    return next_stage_bytes;
  };

  uint32_t read_stage_bytes = 0;
  float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]
#pragma unroll 1
  for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left)
    read_stage_bytes = multiply_k_tile(read_stage_bytes, acc);

  // 4. epilogue
  store_results<Tile>(acc, block_row + warp_row, block_col + warp_col, M, N, alpha, beta, C, ldc);
}

/// Calls `f` with the tile that the GPU has the shared memory for, the types and the kernel.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    return device_limits().smem_block_bytes >= Large::SMEM_BYTES
               ? f.template operator()<Large, type, TC>(gemm<Large, type, TC>)
               : f.template operator()<Small, type, TC>(gemm<Small, type, TC>);
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class Tile, Type type, class TC>(auto kernel) {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(),
                                                                  p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "14",
    .name = "multistage",
    .idea = "k tiles in three stages, fragments one step ahead",
    .predecessor = "13",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>(auto kernel) {
            return Resources{(const void*)kernel,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
    .constants = {{"Large",
                   {{"BM", Large::BM},
                    {"BN", Large::BN},
                    {"WM", Large::WM},
                    {"WN", Large::WN},
                    {"BK_BYTES", Large::BK_BYTES},
                    {"MMA_K_BYTES", Large::MMA_K_BYTES},
                    {"STAGES", Large::STAGES},
                    {"COPY_STEPS", Large::COPY_STEPS},
                    {"STAGE_BYTES", Large::STAGE_BYTES}}}},
}};

}  // namespace
