// 35_transpose · producer warps transpose A, consumers only multiply
//
// Idea              In 34 all warps stop multiplying to transpose a tile of A. Its producer's warpgroup has three idle warps: here these
//                   transpose the tiles ahead. The consumers meet nowhere, and only load fragments and multiply.
// Changed from 34  three transposer warps; two stages for rows of A, with mbarriers of their own, and four for what is multiplied;
//                   a lane map by which no shared load merges; registers for the transposers
// Expect            1.03 times 34: a tile of A takes 256 wavefronts and two latencies, together 350 clocks of 9700, in which no warp of
//                   34 multiplies. The transposers take 1 % of the issue slots
// Limiter now       issue slots, and the register file's two banks; the last wave
// New instructions  none
// Limits            as 34
// Run               ./run_all.sh run 35 4096 4096 4096
// Read              docs/35_transpose.md
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;    // rows of C per block
  static constexpr int BN = 256;    // columns of C per block
  static constexpr int BK = 32;     // elements along k per tile: between two waits of a consumer
  static constexpr int WM = 64;     // rows of C per consumer warp
  static constexpr int WN = 64;     // columns of C per consumer warp
  static constexpr int STAGES = 4;  // k tiles in shared memory

  static constexpr int TM = 16;                      // rows of C per thread
  static constexpr int TN = 8;                       // columns of C per thread
  static constexpr int UNROLL = TUNABLE(UNROLL, 8);  // k steps per basic block, for the instruction cache
  static constexpr int PRODUCERS = 128;              // threads: a warp that issues copies, and those that transpose A
  static constexpr int TRANSPOSERS = PRODUCERS / 32 - 1;  // warps
  static constexpr int CONSUMERS = BM / TM * BN / TN;     // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  static constexpr int PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216;
  static constexpr int LANE_ROWS = WM / TM;  // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;  // lanes across it
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int ROWS_BYTES = BM * BK * 4;  // a tile of A as it lies in memory
  static constexpr int PIECES = BM / 32;          // of 32 rows of a tile of A: a warp transposes one at a time
  static constexpr int ROWS_STAGES = TUNABLE(ROWS_STAGES, 2);
  static constexpr int SMEM_BYTES = A_BYTES + B_BYTES + 2 * STAGES * 8 + ROWS_STAGES * (ROWS_BYTES + 16);
  static_assert(BK == 32 && BK % UNROLL == 0, "TMA swizzles rows of 128 bytes; whole unrolled blocks");
};

// [lane-map]
/// Row and column of a lane in the grid of a warp's thread tiles. The row's bits are lane bits 0 ^ 2 and 1 ^ 3, the column's 0, 1
/// and 4. So neither the lanes l and l ^ 1 nor l and l ^ 2 load the same 16 bytes, of A or of B: nothing merges, and each load
/// writes one register per clock.
__host__ __device__ constexpr int lane_row(int lane) { return (lane ^ lane >> 2) & 3; }
__host__ __device__ constexpr int lane_col(int lane) { return lane / 16 * 4 + lane % 4; }
// [/lane-map]

/// Four floats with one 16-byte instruction; `p` is a multiple of 16 bytes.
__device__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
          const __grid_constant__ CUtensorMap map_b, float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNROLL = Tile::UNROLL;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k; sRows[ROWS_STAGES][BM][BK], A as it lies in memory
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES;
  const uint32_t sRows = sB + Tile::B_BYTES;
  const uint32_t full = sRows + Tile::ROWS_STAGES * Tile::ROWS_BYTES,
                 empty = full + STAGES * 8;  // mbarriers: the stage has landed; it has been read
  const uint32_t rows_full = empty + STAGES * 8, rows_empty = rows_full + Tile::ROWS_STAGES * 8;  // likewise, of sRows
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1 + 32 * Tile::TRANSPOSERS);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS);
    }
    for (int stage = 0; stage < Tile::ROWS_STAGES; ++stage) {
      mbarrier_init(rows_full + stage * 8, 1);
      mbarrier_init(rows_empty + stage * 8, 32 * Tile::TRANSPOSERS);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile
  PipelineState<Tile::ROWS_STAGES> rows_state;

  // [transpose]
  // TMA loads A row-major; producer warps transpose it, in pieces of 1024 elements in the order of the ring. A lane moves two of 34's
  // blocks of 4 x 4 elements per piece.
  if (warp > 0 && warp <= Tile::TRANSPOSERS) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    int piece = warp - 1;
    const int j = lane % 8, chunk = j / 2 ^ lane / 8;  // of 8 in a row: my first one; the second is ^ 4
    // Each warp waits on every stage: one that left out a phase would take the next for it.
#pragma unroll 1
    for (int k_offset = 0; k_offset < K; k_offset += BK) {
      mbarrier_sleep_parity(rows_full + rows_state.index * 8, rows_state.phase);
      mbarrier_sleep_parity(empty + state.index * 8, state.phase ^ 1);  // the phase before: at first there is none
#pragma unroll 1
      for (; piece < Tile::PIECES; piece += Tile::TRANSPOSERS) {
        const int row = piece * 32 + j * 4;
        const uint32_t from = sRows + rows_state.index * Tile::ROWS_BYTES + row * 128;
        const uint32_t to = sA + (state.index * BK * BM + row) * 4;
        float a[2][4][4];  // [chunk][row][column]
#pragma unroll
        for (int second = 0; second < 2; ++second)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            load4_shared(a[second][i], from + i * 128 + (chunk ^ second * 4 ^ (j % 2 * 4 + i)) * 16);
#pragma unroll
        for (int second = 0; second < 2; ++second)
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            const float(&r)[4][4] = a[second];
            store4_shared(to + ((chunk ^ second * 4) * 4 + k) * BM * 4, {r[0][k], r[1][k], r[2][k], r[3][k]});
          }
      }
      mbarrier_arrive(rows_empty + rows_state.index * 8);
      mbarrier_arrive(full + state.index * 8);
      piece -= Tile::PIECES;
      ++state;
      ++rows_state;
    }
    return;
  }
  // [/transpose]
  // [producer]
  if (warp == 0) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (elect_sync()) {
#pragma unroll 1
      for (int k_offset = 0; k_offset < K; k_offset += BK) {
        mbarrier_sleep_parity(rows_empty + rows_state.index * 8, rows_state.phase ^ 1);
        mbarrier_arrive_expect_tx(rows_full + rows_state.index * 8, Tile::ROWS_BYTES);
        cp_async_bulk_tensor_2d(sRows + rows_state.index * Tile::ROWS_BYTES, map_a, k_offset, block_row,
                                rows_full + rows_state.index * 8);
        ++rows_state;
        mbarrier_sleep_parity(empty + state.index * 8, state.phase ^ 1);  // the phase before: at first there is none
        mbarrier_arrive_expect_tx(full + state.index * 8, BK * BN * 4);
        cp_async_bulk_tensor_2d(sB + state.index * BK * BN * 4, map_b, block_col, k_offset, full + state.index * 8);
        ++state;
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  const auto [warp_row, warp_col] = row_major(warp - Tile::PRODUCERS / 32, BN / WN);
  const int row = warp_row * WM + lane_row(lane) * 4, col = warp_col * WN + lane_col(lane) * 4;
  uint32_t a_addr = sA + row * 4;  // in the first of UNROLL k steps
  uint32_t b_addr = sB + col * 4;  // likewise

  // [fragments]
  float rA[2][TM], rB[2][TN];  // [k % 2][row or column]: fragments of this k step and of the next
  const auto load_fragments = [&](int buffer, int k) {
#pragma unroll
    for (int i = TM - 4; i >= 0; i -= 4) load4_shared(&rA[buffer][i], a_addr + (k * BM + spread(0, i, LANE_ROWS)) * 4);
#pragma unroll
    for (int j = TN - 4; j >= 0; j -= 4) load4_shared(&rB[buffer][j], b_addr + (k * BN + spread(0, j, LANE_COLS)) * 4);
  };
  // [/fragments]
  mbarrier_wait_parity(full, 0);
  load_fragments(0, 0);
  float acc[TM][TN] = {};

  // [main-loop]
  // 3. main loop: A -TMA-> sRows -transposers-> sA     B -TMA-> sB     sA, sB -loads-> rA, rB -> acc
#pragma unroll 1
  for (int k_tiles_left = ceil_div(K, BK); k_tiles_left > 0; --k_tiles_left) {
    // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
    const int this_stage = state.index;
    if (k_tiles_left > 1) ++state;
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    // k steps from the last UNROLL ones to the next tile.
    const int next_tile = (state.index - this_stage) * BK - (BK - UNROLL);
#pragma unroll 1
    for (int k_left = BK; k_left > 0; k_left -= UNROLL) {
      const int step = k_left > UNROLL ? UNROLL : next_tile;
#pragma unroll
      for (int k = 0; k < UNROLL; ++k) {
        if (k == UNROLL - 1) a_addr += step * BM * 4, b_addr += step * BN * 4;
        load_fragments((k + 1) % 2, (k + 1) % UNROLL);
#pragma unroll
        for (int i = TM - 1; i >= 0; --i) {
#pragma unroll
          for (int j = 0; j < TN; ++j) {
            const int j_serpentine =
                i % 2 ? j : TN - 1 - j;  // consecutive FFMAs share an operand: fewer register reads
            acc[i][j_serpentine] += rA[k % 2][i] * rB[k % 2][j_serpentine];
          }
        }
      }
    }
    mbarrier_arrive(empty + this_stage * 8);
  }
  // [/main-loop]

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = block_row + warp_row * WM + spread(lane_row(lane), i, LANE_ROWS);
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int n = block_col + warp_col * WN + spread(lane_col(lane), j, LANE_COLS);
      float* gC = C + static_cast<size_t>(m) * ldc + n;
      float4 c = {};
      if (beta != 0.0F && n < N) c = load4(gC);  // beta = 0 must not read C: it may hold NaN
      const float4 d = {alpha * acc[i][j] + beta * c.x, alpha * acc[i][j + 1] + beta * c.y,
                        alpha * acc[i][j + 2] + beta * c.z, alpha * acc[i][j + 3] + beta * c.w};
      if (n + 4 <= N) {
        store4(gC, d);
      } else {  // the padding of C must stay as it is
        if (n < N) gC[0] = d.x;
        if (n + 1 < N) gC[1] = d.y;
        if (n + 2 < N) gC[2] = d.z;
      }
    }
  }
}

void launch(const Problem& p) {
  cuda_check(cudaFuncSetAttribute(sgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
      p.m, p.n, p.k, p.alpha, tensor_map<float>(p.a, p.m, p.k, p.lda, {Tile::BM}),
      tensor_map<float>(p.b, p.k, p.n, p.ldb, {Tile::BK, Tile::BN * 4}), p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "35",
    .name = "transpose",
    .idea = "three producer warps transpose A; the consumers only load fragments and multiply",
    .predecessor = "34",
    .types = {Type::f32},
    .arch = "sm_90a",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, Tile::BK}};
        },
    .launch = launch,
}};

}  // namespace
