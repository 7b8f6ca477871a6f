// 40_fp8_mma · the tensor cores multiply FP8: four elements of k in a register
//
// Idea              E4M3 has 8 bits. An mma.sync takes 32 bytes along k, whatever the type: 16 elements of BF16, 32 of E4M3. So all that
//                   counts bytes stays (k tile, copies, swizzle, ldmatrix, registers), and serves twice the products.
// Changed from 16   the type, its mma.sync (m16n8k32), and BF16 as its 16-bit result; one tile, 96 x 128, 48 x 32 per warp: with
//                   64 x 32 a Hopper has too few registers for what ptxas makes of an mma
// Expect            RTX 40 and RTX 50 have QMMA: twice the products of an HMMA in the same clocks, 2 times 16. Hopper has none. ptxas
//                   makes of each mma two HMMA and four FADD, and converts the fragments (F2FP): as many HMMA per product as 16,
//                   half of its copies (assumed), but 90 % of the issue slots taken at that rate, 1.0 times 16
// Limiter now       RTX 40 and RTX 50: as 16. Hopper: HMMA, and the issue slots
// New instructions  mma.sync.m16n8k32 of e4m3, and of e5m2 times e4m3
// Limits            e4m3, e5m2; sm_89 with 84 KB of shared memory per block; any M, N, K; rows a multiple of 16 bytes
// Run               ./run_all.sh run 40 4096 4096 4096
// Read              docs/40_fp8_mma.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = TUNABLE(BM, 96);   // rows of C per block
  static constexpr int BN = TUNABLE(BN, 128);  // columns of C per block
  static constexpr int WM = TUNABLE(WM, 48);   // rows of C per warp
  static constexpr int WN = TUNABLE(WN, 32);   // columns of C per warp
  static constexpr int BK_BYTES = 128;         // bytes along k per tile: 128 elements
  static constexpr int MMA_K_BYTES = 32;       // bytes along k per mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = TUNABLE(STAGES, 3);          // k tiles in shared memory: one multiplied, others copied
  static constexpr int COPY_STEPS = TUNABLE(COPY_STEPS, 3);  // the copies of a k tile are spread over this many k steps
  static constexpr int GROUP_SIZE_M = TUNABLE(GROUP_SIZE_M, 8);  // tile rows per group: 132 tiles are about 8 x 16
  static constexpr int BLOCKS_PER_SM = TUNABLE(BLOCKS_PER_SM, 1);
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int COPIES = (BM + BN) / COPY_ROWS;         // per thread and k tile
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
  static_assert(BM % COPY_ROWS == 0 && BN % COPY_ROWS == 0, "one copy is of A or of B");
  static_assert(COPY_ROWS % 8 == 0, "all rows that a thread copies have the same row % 8");
  static_assert(COPY_ROWS % 32 == 0 && WN % 32 == 0, "a thread's columns of B are COPY_ROWS apart, permuted or not");
  static_assert(K_STEPS % 2 == 0, "the fragments of a k tile's first step lie in rA[0] and rB[0]");
  static_assert(COPY_STEPS < K_STEPS, "all copies of a k tile are committed before the wait for the next one");
};

/// RESIDUE: the last k tile is a residue tile, so copies are predicated: each says how many of its bytes lie inside the matrix.
template <Type type, class TC, bool RESIDUE>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS_PER_SM)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int COPY_ROWS = Tile::COPY_ROWS, COPIES = Tile::COPIES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, SIZE = Vector<TC>::SIZE;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  // [who]
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile
  // [/who]

  // 2. set up
  const int k_bytes = K * static_cast<int>(sizeof(T)), k_tiles = ceil_div(k_bytes, BK_BYTES);
  // The copies run ahead of the mma: they have their own tile of C, and their own count of k tiles.
  int copy_c_tile = blockIdx.x, copy_k_tiles_left = k_tiles;
  const unsigned char* cp_async_src[COPIES];  // what this thread copies next: rows of A, then columns of B
  int copy_bytes = 16;                        // of each copy; the rest is filled with zeros
  const auto start_c_tile = [&] {
    // Past the last row or column, read the last one: its results are not stored. After the last tile of C, copy it once
    // more; the copies are never used. The tile at the end of K comes first; it may be a residue tile.
    const auto [tile_row, tile_col] = raster(min(copy_c_tile, c_tiles - 1), tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int block_row = tile_row * BM, block_col = tile_col * BN, copy_col = permuted_column(copy_row, SIZE);
    const int k_offset_bytes = (k_tiles - 1) * BK_BYTES;
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const T* const start = i < BM / COPY_ROWS
                                 ? A + static_cast<size_t>(min(block_row + copy_row + i * COPY_ROWS, M - 1)) * lda
                                 : B + static_cast<size_t>(min(block_col + copy_col + i * COPY_ROWS - BM, N - 1)) * ldb;
      cp_async_src[i] = reinterpret_cast<const unsigned char*>(start) + k_offset_bytes + copy_chunk * 16;
    }
    if (RESIDUE) copy_bytes = min(max(k_bytes - k_offset_bytes - copy_chunk * 16, 0), 16);
  };
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(min(c_tile, c_tiles - 1), tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int LINES = BN * sizeof(TC) / 128;  // of a row of the tile
#pragma unroll 1
    for (int i = threadIdx.x; i < BM * LINES; i += Tile::THREADS) {
      const int m = tile_row * BM + i / LINES, n = tile_col * BN + i % LINES * (BN / LINES);
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  const auto next_k_tile = [&] {
    if (--copy_k_tiles_left > 0) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) cp_async_src[i] -= BK_BYTES;
      if (RESIDUE) copy_bytes = 16;
    } else {
      if (beta != 0.0F) prefetch_c(copy_c_tile);
      copy_k_tiles_left = k_tiles;
      copy_c_tile += gridDim.x;
      start_c_tile();
    }
  };

  // [copy]
  // Copies this thread's 16-byte chunks [first, last) of a k tile. COPY_ROWS rows further down, a chunk has the same place in
  // its row.
  const uint32_t cp_async_dst = shared_address(smem) + swizzle_128b(copy_row, copy_chunk);
  const auto copy = [&](uint32_t write_stage_bytes, int first, int last) {
#pragma unroll
    for (int i = first; i < last; ++i) {
      const uint32_t dst = cp_async_dst + write_stage_bytes + i * COPY_ROWS * BK_BYTES;
      if (RESIDUE)
        cp_async_cg_16(dst, cp_async_src[i], copy_bytes);
      else
        cp_async_cg_16(dst, cp_async_src[i]);
    }
  };
  // [/copy]

  // [fragments]
  // The row whose address this lane gives to ldmatrix, per k step, in stage 0. An ldmatrix loads four matrices of 8 rows of 16 bytes:
  // of A two below one another and two along k, of B two along k and two next to one another.
  uint32_t ldsm_a_addr[K_STEPS], ldsm_b_addr[K_STEPS];
#pragma unroll
  for (int k_step = 0; k_step < K_STEPS; ++k_step) {
    ldsm_a_addr[k_step] =
        shared_address(smem) + swizzle_128b(warp_row + ldsm_a(lane).row, k_step * 2 + ldsm_a(lane).col);
    ldsm_b_addr[k_step] =
        shared_address(smem) + BM * BK_BYTES + swizzle_128b(warp_col + ldsm_b(lane).row, k_step * 2 + ldsm_b(lane).col);
    keep_in_register(ldsm_a_addr[k_step]), keep_in_register(ldsm_b_addr[k_step]);
  }
  uint32_t rA[2][WM / 16][4];  // [k step % 2][16 rows][words of this lane, four elements of k each: mma_a]
  uint32_t rB[2][WN / 16][4];  // [k step % 2][16 columns][words of this lane: mma_b of the first 8, then of the others]
  const auto load_fragments = [&](uint32_t stage_bytes, int k_step) {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
      ldmatrix_x4(rA[k_step % 2][i], ldsm_a_addr[k_step] + stage_bytes + i * 16 * BK_BYTES);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j)
      ldmatrix_x4(rB[k_step % 2][j], ldsm_b_addr[k_step] + stage_bytes + j * 16 * BK_BYTES);
  };
  // [/fragments]

  start_c_tile();
#pragma unroll 1
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage > 0) next_k_tile();
    copy(stage * Tile::STAGE_BYTES, 0, COPIES);
    cp_async_commit_group();
  }
  cp_async_wait_group<STAGES - 2>();
  __syncthreads();
  load_fragments(0, 0);

  // [main-loop]
  // 3. main loop: gmem -cp.async-> smem[write stage]     smem[read stage] -ldmatrix-> registers -mma-> acc
  // Consumes one stage; returns the next one's offset.
  const auto multiply_k_tile = [&](uint32_t read_stage_bytes, float(&acc)[WM / 16][WN / 8][4]) {
    const uint32_t next_stage_bytes =
        read_stage_bytes + Tile::STAGE_BYTES == Tile::SMEM_BYTES ? 0 : read_stage_bytes + Tile::STAGE_BYTES;
    const uint32_t write_stage_bytes =
        (read_stage_bytes == 0 ? Tile::SMEM_BYTES : read_stage_bytes) - Tile::STAGE_BYTES;
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      if (k_step == K_STEPS - 1) {          // the next stage is needed
        cp_async_wait_group<STAGES - 2>();  // my copies into it have landed
        __syncthreads();                    // everyone's have, and everyone is done with this stage
      }
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
    return next_stage_bytes;
  };
  // [/main-loop]

  uint32_t read_stage_bytes = 0;
  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left)
      read_stage_bytes = multiply_k_tile(read_stage_bytes, acc);

    // [epilogue]
    // 4. epilogue: of every 16 rows a lane holds VECTORS vectors of SIZE neighbouring results, alternately in rows g and g + 8
    constexpr int VECTORS = 2 * WN / (4 * SIZE), TOGETHER = 16 / SIZE;  // loads of C in flight together
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int first_row = tile_row * BM + warp_row + mma_c(lane, 0).row;
    const int first_col = tile_col * BN + warp_col + lane % 4 * SIZE;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
      const auto row = [&](int v) { return first_row + i * 16 + v % 2 * 8; };
      const auto col = [&](int v) { return first_col + v / 2 * 4 * SIZE; };
      const auto gC = [&](int v) { return C + static_cast<size_t>(row(v)) * ldc + col(v); };
      const auto columns_left = [&](int v) { return row(v) < M ? N - col(v) : 0; };  // of C, from here on
#pragma unroll
      for (int first = 0; first < VECTORS; first += TOGETHER) {
        Vector<TC> c[TOGETHER] = {};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
#pragma unroll
          for (int v = first; v < first + TOGETHER; ++v)
            if (columns_left(v) > 0) c[v - first].bits = *reinterpret_cast<const uint4*>(gC(v));
        }
#pragma unroll
        for (int v = first; v < first + TOGETHER; ++v) {
          Vector<TC> d;
#pragma unroll
          for (int e = 0; e < SIZE; ++e) {
            const float x = alpha * acc[i][v / 2 * SIZE / 2 + e / 2][v % 2 * 2 + e % 2];
            d.element[e] = from_float<TC>(beta == 0.0F ? x : x + beta * to_float(c[v - first].element[e]));
          }
          if (columns_left(v) >= SIZE) *reinterpret_cast<uint4*>(gC(v)) = d.bits;
          if (N % SIZE != 0) {  // then the last ones go one by one: the padding of C must stay as it is
#pragma unroll
            for (int e = 0; e < SIZE; ++e)
              if (e < columns_left(v) && columns_left(v) < SIZE) gC(v)[e] = d.element[e];
          }
        }
      }
    }
    // [/epilogue]
  }
}

/// Calls `f` with the types and the kernel.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    const bool residue = p.k % (Tile::BK_BYTES / Operand<type>::BYTES) != 0;
    return f.template operator()<type, TC>(residue ? gemm<type, TC, true> : gemm<type, TC, false>);
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<Type type, class TC>(auto kernel) {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks =
        min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), Tile::BLOCKS_PER_SM * device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(),
                                                                  p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "40",
    .name = "fp8_mma",
    .idea = "FP8 operands: a register holds four elements of k, an mma.sync 32",
    .predecessor = "16",
    .types = {Type::e4m3, Type::e5m2},
    .arch = "sm_89",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync_of<Fp8Types>,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<Type type, class TC>(auto kernel) {
            return Resources{(const void*)kernel,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
