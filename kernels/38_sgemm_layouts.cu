// 38_sgemm_layouts · A and B as BLAS has them, stored as they are or transposed
//
// Idea              The consumers read k step by k step: sA[BK][BM], sB[BK][BN]. If an operand's rows lie across k, TMA copies it there, as B
//                   in 37. If B's lie along k (K-major), TMA copies them as they are: a consumer loads four k steps of a column at once,
//                   and goes column by column through its FMAs. If A's alone do (nn), A and B change places: C^T = B^T A^T, stored by
//                   columns. If both do (nt), producer warps transpose A, as in 37, or B, whichever has fewer rows in a tile.
//                   Tiles of 16 and 32 rows are compiled in every layout with this change of places, for few columns of C, and
//                   without it, for few rows. Where both operands then lie along k, or A alone, warps transpose A.
// Changed from 37   whether A is transposed, how B lies in shared memory, and how C is stored, are parameters of the kernel;
//                   few rows in all layouts (common/few_rows.h); for nt, tiles of 64 x 128
// Expect            1.01 times 37 in nn and tt: of 1024 FFMAs at most 27 conflict in a register bank, not 59; tn, with 20, 1 % more; nt 1 %
//                   less: 64 wavefronts of shared memory per 1024 elements of A that are transposed
// Limiter now       issue slots, and the register file's two banks
// New instructions  none
// Limits            sm_90a; f32; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 38 4096 4096 4096 --layout nt
// Read              docs/38_sgemm_layouts.md
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/few_rows.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/exit.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/semaphore.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/rung.h"
#include "common/split_k.h"
#include "common/stream_k.h"

using namespace ladder;

namespace {

/// A configuration: the tile of a block of eight warps that multiply. If it is too small for all of them, they also divide the k tile
/// (sliced-K, CUTLASS's word for a split among the warps of one block). TRANSPOSE_A, B_ALONG_K: the operand's rows lie along k.
/// EVERY_FOURTH: TMA copies B along k as sB[4][BN / 4][32], every fourth row in a copy of its own. Then four neighbouring columns are as
/// many rows of sB apart as eight lanes are not: no bank conflicts, and stores of 16 bytes to C.
template <int BM_, int BN_, int BK_, int WM_, int SLICES_, int MOST_STAGES, bool TRANSPOSE_A_, bool B_ALONG_K_,
          bool SWAPPED_, bool EVERY_FOURTH_ = false>
struct Tile {
  static constexpr int BM = BM_;          // rows of C per block
  static constexpr int BN = BN_;          // columns of C per block
  static constexpr int BK = BK_;          // elements along k per tile: between two waits of a consumer
  static constexpr int WM = WM_;          // rows of C per consumer warp
  static constexpr int WN = 64;           // columns of C per consumer warp
  static constexpr int SLICES = SLICES_;  // of a k tile: each has its own warps
  // If swapped, A and B have changed places, and what is said of A, B, C, M and N is said of the product of the transposed matrices.
  static constexpr bool TRANSPOSE_A = TRANSPOSE_A_, B_ALONG_K = B_ALONG_K_, SWAPPED = SWAPPED_,
                        EVERY_FOURTH = EVERY_FOURTH_;

  static constexpr int TM = WM / 4;            // rows of C per thread
  static constexpr int TN = WN / 8;            // columns of C per thread
  static constexpr int K_STEPS = BK / SLICES;  // of a slice

  static constexpr int UNROLL = TUNABLE(UNROLL, 8);               // k steps per basic block, for the instruction cache
  static constexpr int GROUP_SIZE_M = TUNABLE(GROUP_SIZE_M, 16);  // rows of tiles: 132 blocks are about 16 x 8
  static constexpr int PRODUCERS = 128;  // threads: a warp that issues copies, and those that transpose
  static constexpr int TRANSPOSERS = PRODUCERS / 32 - 1;        // warps
  static constexpr int CONSUMERS = BM / TM * BN / TN * SLICES;  // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  // tn of 128 x 64 would spill with 216. Its producers transpose nothing.
  static constexpr bool MORE_REGISTERS = !TRANSPOSE_A && !B_ALONG_K && SLICES == 4 && TM == 16;
  static constexpr int PRODUCER_REGISTERS = TUNABLE(PRODUCER_REGISTERS, (MORE_REGISTERS ? 56 : 72));
  static constexpr int CONSUMER_REGISTERS = TUNABLE(CONSUMER_REGISTERS, (MORE_REGISTERS ? 224 : 216));
  static constexpr int LANE_ROWS = WM / TM;  // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;  // lanes across it
  // Neighbouring columns of a thread: by the banks of its loads.
  static constexpr int RUN = B_ALONG_K && !EVERY_FOURTH ? 2 : 4;
  static constexpr int STORE = SWAPPED ? 4 : RUN;  // neighbours in memory: elements of a store to C
  // Rows and columns of a 16-byte store of sums. With two slices, QM = 4 makes ptxas put acc into the wrong banks.
  static constexpr int QM = SWAPPED && SLICES != 2 ? 4 : B_ALONG_K ? 2 : 1, QN = 4 / QM;
  static constexpr int MOST_PARTS = SWAPPED ? 1 : 4 / QM;  // swapped, a thread stores four rows at once
  static constexpr int PARTS =
      SLICES < MOST_PARTS ? SLICES : MOST_PARTS;  // of four rows of a thread: a slice reduces one part
  static constexpr int RM = TM / PARTS;           // rows of C per thread, once the slices are reduced
  static constexpr int RN = TN * PARTS / SLICES;  // columns, likewise
  static constexpr int SUMS_BYTES = SLICES > 1 ? CONSUMERS * 4 * TN * 4 : 0;  // four rows of each thread's results
  // [slots]
  // sRows: what is to be transposed, A as it lies in memory. A slot has 16 KB at most.
  static constexpr int SLOT_ROWS = BM < 4096 / BK ? BM : 4096 / BK;
  static constexpr int SLOT_BYTES = SLOT_ROWS * BK * 4, SLOT = TRANSPOSE_A ? SLOT_BYTES + 16 : 0;
  static constexpr int LEAST_SLOTS = TUNABLE(LEAST_SLOTS, 2);
  static constexpr int STAGE = BK * (BM + BN) * 4 + 16;  // a k tile for the consumers, and its mbarriers
  static constexpr int FITTING_STAGES = (232448 - SUMS_BYTES - LEAST_SLOTS * SLOT) / STAGE;
  static constexpr int STAGES =
      FITTING_STAGES < MOST_STAGES ? FITTING_STAGES : MOST_STAGES;  // k tiles in shared memory
  static constexpr int SLOTS = SLOT == 0 ? 1 : (232448 - SUMS_BYTES - STAGES * STAGE) / SLOT;
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int SMEM_BYTES = SUMS_BYTES + STAGES * STAGE + SLOTS * SLOT;
  // [/slots]
  static_assert(CONSUMERS == 256);
  static_assert(BK % 32 == 0 && K_STEPS % UNROLL == 0,
                "blocks of 32 x 32 elements are transposed; whole unrolled blocks");
  static_assert(!B_ALONG_K || (UNROLL == 8 && 32 % K_STEPS == 0), "two chunks of 16 bytes; a row of sB has 32 k steps");
  static_assert(PRODUCERS * PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= 65536 / THREADS / 8 * 8 * THREADS,
                "no more registers than the block starts with");
};

// [lane-map]
/// Row and column of a lane in the grid of a warp's thread tiles. The row's bits are lane bits 0 ^ 2 and 1 ^ 3, the column's 0, 1
/// and 4. So neither the lanes l and l ^ 1 nor l and l ^ 2 load the same 16 bytes, of A or of B: nothing merges, and each load
/// writes one register per clock.
__host__ __device__ constexpr int lane_row(int lane) { return (lane ^ lane >> 2) & 3; }
__host__ __device__ constexpr int lane_col(int lane) { return lane / 16 * 4 + lane % 4; }
// [/lane-map]

/// `partials` and `locks`: of the blocks that store partial sums of a tile.
template <class Tile>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
          const __grid_constant__ CUtensorMap map_b, float beta, float* __restrict__ C, int ldc,
          const __grid_constant__ Schedule schedule, float* partials, unsigned* locks) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNROLL = Tile::UNROLL;
  constexpr int SLICES = Tile::SLICES, K_STEPS = Tile::K_STEPS, RM = Tile::RM, RN = Tile::RN;
  constexpr int RUN = Tile::RUN, STORE = Tile::STORE, QM = Tile::QM, QN = Tile::QN;
  // Partial sums of a store. Stores of 16 bytes to C alone would put acc[i][j] into the bank of rA[i].
  constexpr int WIDTH = SLICES == 1 && STORE == 4 && Tile::B_ALONG_K ? 4 : 1;
  constexpr bool EVERY_FOURTH = Tile::EVERY_FOURTH, SWAPPED = Tile::SWAPPED, TRANSPOSE_A = Tile::TRANSPOSE_A,
                 B_ALONG_K = Tile::B_ALONG_K;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k. With B along k: sB[STAGES * BK / 32][BN][32].
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES;
  const uint32_t sRows = sB + Tile::B_BYTES, sSums = sRows + (Tile::SLOT ? Tile::SLOTS * Tile::SLOT_BYTES : 0);
  const uint32_t full = sSums + Tile::SUMS_BYTES,
                 empty = full + STAGES * 8;  // mbarriers: the stage has landed; it has been read
  const uint32_t rows_full = empty + STAGES * 8, rows_empty = rows_full + Tile::SLOTS * 8;  // likewise, of a slot
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8,
                    1 + TRANSPOSE_A * 32 * Tile::TRANSPOSERS);  // the issuer of copies; the transposers
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS);
    }
    for (int slot = 0; slot < (Tile::SLOT ? Tile::SLOTS : 0); ++slot) {
      mbarrier_init(rows_full + slot * 8, 1);
      mbarrier_init(rows_empty + slot * 8, 32 * Tile::TRANSPOSERS);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();

  // Stage and phase of the next k tile, for producer and consumers. Not a PipelineState: with it the largest tile's loop has 1082
  // instructions per pass, without it 1080.
  int stage = 0;
  uint32_t phase = 0;

  // [transpose]
  // Producer warps transpose what TMA loads with rows along k, in pieces of 1024 elements in the order of the slots. A lane moves two
  // blocks of 4 x 4 elements per piece. TMA has swizzled each row's chunks of 16 bytes. Neighbouring lanes take different chunks of
  // different rows, so that neither their loads nor their stores have bank conflicts.
  PipelineState<Tile::SLOTS> slot;  // the next one, for the producer and for those who transpose
  /// Slots of ROWS rows into `to`[BK][EXTENT]. `piece`: my next one, from this slot's first.
  const auto transpose = [&](uint32_t to, int& piece) {
    constexpr int EXTENT = BM, ROWS = Tile::SLOT_ROWS;
    constexpr int HEIGHT = ROWS < 32 ? ROWS : 32, GROUPS = ROWS / HEIGHT, PIECES = ROWS * BK / 1024;
    const int j = lane % (HEIGHT / 4), q = lane / (HEIGHT / 4);
    const int chunk = (j / 2 * (32 / HEIGHT)) ^ q % 4;  // of 8 in a box of 32 columns: my first one; the second is ^ 4
#pragma unroll 1
    for (int first = 0; first < EXTENT; first += ROWS) {
      mbarrier_sleep_parity(rows_full + slot.index * 8, slot.phase);
#pragma unroll 1
      for (; piece < PIECES; piece += Tile::TRANSPOSERS) {
        const int row = piece % GROUPS * HEIGHT + j * 4, box = piece / GROUPS * (32 / HEIGHT) + q / 4;
        const uint32_t from = sRows + slot.index * Tile::SLOT_BYTES + (box * ROWS + row) * 128;
        const uint32_t at = to + (box * 32 * EXTENT + first + row) * 4;
        float x[2][4][4];  // [chunk][row][column]
#pragma unroll
        for (int second = 0; second < 2; ++second)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            load4_shared(x[second][i], from + i * 128 + (chunk ^ second * 4 ^ (j % 2 * 4 + i)) * 16);
#pragma unroll
        for (int second = 0; second < 2; ++second)
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            const float(&r)[4][4] = x[second];
            store4_shared(at + ((chunk ^ second * 4) * 4 + k) * EXTENT * 4, {r[0][k], r[1][k], r[2][k], r[3][k]});
          }
      }
      piece -= PIECES;
      mbarrier_arrive(rows_empty + slot.index * 8);
      ++slot;
    }
  };
  // [/transpose]
  if (warp > 0 && warp <= Tile::TRANSPOSERS) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if constexpr (TRANSPOSE_A) {
      int k_tiles = 0;
      for (int i = 0, more; (more = work_unit_of(schedule, blockIdx.x, i).k_tiles) > 0; ++i) k_tiles += more;
      PipelineState<STAGES> state;
      int piece = warp - 1;
      // This warp may have no piece of a k tile. It waits on every stage all the same, or the phases desynchronise.
#pragma unroll 1
      for (; k_tiles > 0; --k_tiles) {
        mbarrier_sleep_parity(empty + state.index * 8, state.phase ^ 1);  // the phase before: at first there is none
        transpose(sA + state.index * BK * BM * 4, piece);
        mbarrier_arrive(full + state.index * 8);
        ++state;
      }
    }
    return;
  }
  // [producer]
  if (warp == 0) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (lane == 0) {
      /// BM rows of A from `row` on into slots, BK elements of each from `k` on.
      const auto copy_rows = [&](int k, int row) {
        constexpr int EXTENT = BM, ROWS = Tile::SLOT_ROWS;
#pragma unroll 1
        for (int first = 0; first < EXTENT; first += ROWS) {
          mbarrier_sleep_parity(rows_empty + slot.index * 8, slot.phase ^ 1);
          mbarrier_arrive_expect_tx(rows_full + slot.index * 8, ROWS * BK * 4);
          for (int box = 0; box < BK / 32; ++box)
            cp_async_bulk_tensor_2d(sRows + slot.index * Tile::SLOT_BYTES + box * ROWS * 128, map_a, k + box * 32,
                                    row + first, rows_full + slot.index * 8);
          ++slot;
        }
      };
      WorkUnit work_unit;
#pragma unroll 1
      for (int i_unit = 0; (work_unit = work_unit_of(schedule, blockIdx.x, i_unit)).k_tiles > 0; ++i_unit) {
        const auto [tile_row, tile_col] = raster(work_unit.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
#pragma unroll 1
        for (int k_tile = work_unit.first; k_tile < work_unit.first + work_unit.k_tiles; ++k_tile) {
          if constexpr (TRANSPOSE_A) copy_rows(k_tile * BK, tile_row * BM);
          mbarrier_sleep_parity(empty + stage * 8, phase ^ 1);  // the phase before: at first there is none
          mbarrier_arrive_expect_tx(full + stage * 8, BK * (!TRANSPOSE_A * BM + BN) * 4);
          if constexpr (!TRANSPOSE_A)
            cp_async_bulk_tensor_2d(sA + stage * BK * BM * 4, map_a, tile_row * BM, k_tile * BK, full + stage * 8);
          if constexpr (B_ALONG_K) {
#pragma unroll 1
            for (int k = 0; k < BK; k += 32)
              for (int first = 0; first < (EVERY_FOURTH ? 4 : 1); ++first)
                cp_async_bulk_tensor_2d(sB + ((stage * BK + k) * 4 + first * 32) * BN, map_b, k_tile * BK + k,
                                        tile_col * BN + first, full + stage * 8);
          } else {
            cp_async_bulk_tensor_2d(sB + stage * BK * BN * 4, map_b, tile_col * BN, k_tile * BK, full + stage * 8);
          }
          if (++stage == STAGES) stage = 0, phase ^= 1;
        }
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  constexpr int WARPS = BM / WM * (BN / WN);      // of a slice
  const auto first_of = [](int warp, int lane) {  // a thread's first element in sA and sB
    const auto [warp_row, warp_col] = row_major((warp - Tile::PRODUCERS / 32) % WARPS, BN / WN);
    return Coord{warp_row * WM + lane_row(lane) * 4, warp_col * WN + lane_col(lane) * RUN};
  };
  const int slice = SLICES == 1 ? 0 : (warp - Tile::PRODUCERS / 32) / WARPS;
  const auto [row, col] = first_of(warp, lane);
  uint32_t a_addr = sA + (slice * K_STEPS * BM + row) * 4;  // in the first of UNROLL k steps
  // Likewise. With B along k, these are two of the eight chunks of 16 bytes in a row of sB. TMA has swizzled them. With pairs of
  // columns, col is even: the second chunk of my even columns lies after the first, and that of the odd ones before it.
  uint32_t b_addr = sB + (B_ALONG_K ? slice * K_STEPS / 32 * BN * 128 +
                                          swizzle_128b(EVERY_FOURTH ? col / 4 : col, slice * K_STEPS % 32 / 4)
                                    : (slice * K_STEPS * BN + col) * 4);
  const auto column = [](int j) { return j / RUN * RUN * LANE_COLS + j % RUN; };  // my j-th, from my first one on

  // [fragments]
  // Of this k step and of the next: [k % 2][row or column]. With B along k, of four k steps: rB[column][k % 4].
  float rA[2][TM], rB[B_ALONG_K ? TN : 2][B_ALONG_K ? 4 : TN];
  const auto load_a = [&](int buffer, int k, int i) {
    load4_shared(&rA[buffer][i], a_addr + (k * BM + spread(0, i, LANE_ROWS)) * 4);
  };
  const auto load_column = [&](int k, int j) {
    if constexpr (EVERY_FOURTH)  // all my columns' chunks are at the same place of their rows
      load4_shared(rB[j], (k / 4 ? b_addr ^ 16 : b_addr) + (j % 4 * (BN / 4) + j / 4 * LANE_COLS) * 128);
    else
      load4_shared(rB[j], b_addr + column(j) * 128 + (k / 4 ^ j % 2) * 16);
  };
  const auto load_fragments = [&](int buffer, int k) {
#pragma unroll
    for (int i = TM - 4; i >= 0; i -= 4) load_a(buffer, k, i);
    if constexpr (B_ALONG_K) {
#pragma unroll
      for (int j = 0; j < TN; ++j) load_column(k, j);
    } else {
#pragma unroll
      for (int j = TN - 4; j >= 0; j -= 4) load4_shared(&rB[buffer][j], b_addr + (k * BN + column(j)) * 4);
    }
  };
  // [/fragments]
  mbarrier_wait_parity(full, 0);
  load_fragments(0, 0);

  WorkUnit work_unit = work_unit_of(schedule, blockIdx.x, 0);
#pragma unroll 1
  for (int i_unit = 0; work_unit.k_tiles > 0; ++i_unit) {
    float acc[TM][TN] = {};
    const bool last = work_unit_of(schedule, blockIdx.x, i_unit + 1).k_tiles == 0;

    // [main-loop]
    // 3. main loop: A, B -TMA-> sA, sB, or A -TMA-> sRows -transposers-> sA     sA, sB -loads-> rA, rB -> acc
#pragma unroll 1
    for (int k_tiles_left = work_unit.k_tiles; k_tiles_left > 0; --k_tiles_left) {
      // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
      const int this_stage = stage;
      if (k_tiles_left > 1 || !last)
        if (++stage == STAGES) stage = 0, phase ^= 1;
      // Bytes from the last UNROLL k steps to the next tile: in the array with the shorter rows, or in sA.
      constexpr int LESS = B_ALONG_K || BM < BN ? BM : BN;
      const int next_tile = ((stage - this_stage) * BK - (K_STEPS - UNROLL)) * LESS * 4;
      const int next_b = (stage - this_stage) * BK * BN * 4;  // with B along k
      mbarrier_wait_parity(full + stage * 8, phase);
#pragma unroll 1
      for (int k_left = K_STEPS; k_left > 0; k_left -= UNROLL) {
        const int step = k_left > UNROLL ? UNROLL * LESS * 4 : next_tile;  // likewise, to the next UNROLL k steps
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
          if (k == UNROLL - 1) {
            a_addr += step * (BM / LESS);
            if constexpr (B_ALONG_K)  // chunks 0, 2, 4, 6 and 0 again, but for the swizzle
              b_addr = (b_addr ^ (K_STEPS == 8                        ? 0
                                  : K_STEPS == 32 && k_left % 16 != 0 ? 96
                                                                      : 32)) +
                       (k_left > UNROLL ? 0 : next_b);
            else
              b_addr += step * (BN / LESS);
          }
          if constexpr (B_ALONG_K) {
            // Along k, all of a k step's rB lie in one bank of the register file. Column by column, rB is reused, and what changes from
            // FFMA to FFMA are rA and acc.
            // [columns]
#pragma unroll
            for (int j = 0; j < TN; ++j) {
              if (j % 2 == 0 && j * 2 < TM) load_a((k + 1) % 2, (k + 1) % UNROLL, j * 2);
#pragma unroll
              for (int i = 0; i < TM; ++i) {
                // A turn is in an even row in an even k step, where rB[j] is in the even bank and acc is not; else in an odd one.
                const int x = j % 2 ? i : TM - 1 - i;
                const int i_serpentine = k % 2 == 0 ? (x < TM - 2 ? x : 2 * TM - 3 - x) : (x < 2 ? 1 - x : x);
                acc[i_serpentine][j] += rA[k % 2][i_serpentine] * rB[j][k % 4];
              }
              if (k % 4 == 3) load_column((k + 1) % UNROLL, j);
              exit_if_negative(M);  // else ptxas mixes the FMAs of all k steps in registers, and the banks conflict
            }
            // [/columns]
          } else {
            exit_if_negative(M);  // else ptxas mixes the FMAs of two k steps
            load_fragments((k + 1) % 2, (k + 1) % UNROLL);
#pragma unroll
            for (int i = TM - 1; i >= 0; --i) {
              if (i % 2 && i < TM - 1) exit_if_negative(M);  // nor those of other rows than these two
#pragma unroll
              for (int j = 0; j < TN; ++j) {
                // Consecutive FFMAs share an operand: fewer register reads. With slices, acc of the turn is not in the bank of rA[i].
                const int j_serpentine = i % 2 == (SLICES > 1) ? TN - 1 - j : j;
                acc[i][j_serpentine] += rA[k % 2][i] * rB[k % 2][j_serpentine];
              }
            }
          }
        }
      }
      mbarrier_arrive(empty + this_stage * 8);
    }
    // [/main-loop]

    // [slices]
    // Sliced-K: the slices' sums are reduced through shared memory, four rows of each thread at a time. Each slice reduces a part of them
    // and continues with that: acc[RM][RN].
    const int consumer = threadIdx.x - Tile::PRODUCERS;
    uint32_t thread = threadIdx.x;
    if constexpr (SLICES > 1)
      keep_in_register(thread);  // else what follows is computed before the main loop, which has no registers for it
    const int warp = thread / 32, lane = thread % 32;
    constexpr int PART_ROWS = 4 / Tile::PARTS;
    const int slice = SLICES == 1 ? 0 : (warp - Tile::PRODUCERS / 32) / WARPS;
    const int part_row = slice % Tile::PARTS * PART_ROWS, part_j = slice / Tile::PARTS * RN;
    const auto [tile_m, tile_n] = first_of(warp, lane);
    const int my_row = tile_m + part_row, my_col = tile_n + column(part_j);
    // Element `e` of four that are stored together. The stores make acc lie so in registers: in the bank that rB[j] is not in, or rA[i]
    // with B along k.
    const auto element = [&](int i, int j, int e) -> float& { return acc[i + (e ^ 1) % QM][j + (e ^ 1) / QM]; };
    if constexpr (SLICES > 1) {
#pragma unroll
      for (int i = 0; i < TM; i += 4) {
        const auto sums = [&](int slice, int r, int j) {  // sSums[slice][warp][r / QM][j / QN][lane], of four floats
          const int first = (slice * WARPS + (warp - Tile::PRODUCERS / 32) % WARPS) * TN;
          return sSums + ((first + r / QM * (TN / QN) + j / QN) * 32 + lane) * 16;
        };
#pragma unroll
        for (int r = 0; r < 4; r += QM)
#pragma unroll
          for (int j = 0; j < TN; j += QN)
            store4_shared(sums(slice, r, j),
                          {element(i + r, j, 0), element(i + r, j, 1), element(i + r, j, 2), element(i + r, j, 3)});
        bar_sync(1, Tile::CONSUMERS);
#pragma unroll
        for (int r = 0; r < PART_ROWS; r += QM)
#pragma unroll
          for (int j = 0; j < RN; j += QN)
#pragma unroll
            for (int s = 0; s < SLICES; ++s) {
              float x[4];
              load4_shared(x, sums(s, part_row + r, part_j + j));
#pragma unroll
              for (int e = 0; e < 4; ++e) {
                float& sum = element(i / Tile::PARTS + r, j, e);
                sum = s == 0 ? x[e] : sum + x[e];
              }
            }
        bar_sync(1, Tile::CONSUMERS);
      }
    }
    // [/slices]

    // [fix-up]
    // A stream-K tile: its last block adds the partial sums of the others. Every thread reads those of the same thread index.
    const auto partials_of = [&](int block) {
      return partials + static_cast<size_t>(block) * (BM * BN) + consumer * WIDTH;
    };
    const auto partial_of = [](int i, int j, int e) {
      return ((i / QM * (RN / QN) + j / QN) * 4 + e / WIDTH * WIDTH) * Tile::CONSUMERS + e % WIDTH;
    };
    const auto lock_of = [&](int block) { return locks + block * (Tile::CONSUMERS / 32) + consumer / 32; };
    const WorkUnit done = work_unit;
    work_unit = work_unit_of(schedule, blockIdx.x, i_unit + 1);
    if (done.first + done.k_tiles < schedule.k_tiles) {
      float* const partial = partials_of(blockIdx.x);  // CONSUMERS apart; a block stores one tile's at most
#pragma unroll
      for (int i = 0; i < RM; i += QM)
#pragma unroll
        for (int j = 0; j < RN; j += QN)
#pragma unroll
          for (int e = 0; e < 4; e += WIDTH)
            if constexpr (WIDTH == 4)
              *reinterpret_cast<float4*>(partial + partial_of(i, j, 0)) = {element(i, j, 0), element(i, j, 1),
                                                                           element(i, j, 2), element(i, j, 3)};
            else
              partial[partial_of(i, j, e)] = element(i, j, e);
      __syncwarp();  // all lanes have written
      if (lane == 0) st_release_gpu(lock_of(blockIdx.x), 1);
      continue;
    }
    if (done.first > 0) {
#pragma unroll 1
      for (int first = first_block_of(schedule, done.c_tile); first < blockIdx.x; first += 32) {
        const int others = min(32, blockIdx.x - first);  // each lane waits for one of them
        while (__any_sync(~0U, lane < others && ld_acquire_gpu(lock_of(first + lane)) != 1)) {
        }
        __syncwarp();  // what one lane has acquired, all may read
#pragma unroll SLICES
        for (int block = first; block < first + others; ++block) {
          const float* const partial = partials_of(block);
#pragma unroll
          for (int i = 0; i < RM; i += QM)
#pragma unroll
            for (int j = 0; j < RN; j += QN)
#pragma unroll
              for (int e = 0; e < 4; ++e) element(i, j, e) += partial[partial_of(i, j, e)];
        }
        __syncwarp();                                   // all lanes have read
        if (lane < others) *lock_of(first + lane) = 0;  // for the next launch
      }
    }
    // [/fix-up]

    // [epilogue]
    // 4. epilogue
    const auto [tile_row, tile_col] = raster(done.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const auto row_of = [&](int i) { return spread(0, i / PART_ROWS * 4 + i % PART_ROWS, LANE_ROWS); };
    // C in memory has lines of neighbouring elements: the tile's rows or, with swapped operands, its columns. My x-th line, and place
    // in it, from my first ones on.
    constexpr int LINES = SWAPPED ? RN : RM, PLACES = SWAPPED ? RM : RN;
    const auto line = [&](int x) { return SWAPPED ? column(x) : row_of(x); };
    const auto place = [&](int x) { return SWAPPED ? row_of(x) : column(x); };
    const auto scaled = [&](int i, int j) { return alpha * (SWAPPED ? acc[j][i] : acc[i][j]); };
    const int first_row = tile_row * BM + my_row, first_col = tile_col * BN + my_col;
    float* const c = C + static_cast<size_t>(SWAPPED ? first_col : first_row) * ldc + (SWAPPED ? first_row : first_col);
    const int lines = SWAPPED ? N - first_col : M - first_row,  // how many C has from there on
        places = SWAPPED ? M - first_row : N - first_col;
    using Vector = std::conditional_t<STORE == 2, float2, float4>;
    const auto vector = [&](int i, int j) {
      if constexpr (STORE == 2)
        return float2{scaled(i, j), scaled(i, j + 1)};
      else
        return float4{scaled(i, j), scaled(i, j + 1), scaled(i, j + 2), scaled(i, j + 3)};
    };
    if (beta == 0.0F && (tile_row + 1) * BM <= M && (tile_col + 1) * BN <= N) {  // few instructions for most tiles
#pragma unroll
      for (int i = 0; i < LINES; ++i)
#pragma unroll
        for (int j = 0; j < PLACES; j += STORE)
          *reinterpret_cast<Vector*>(c + static_cast<size_t>(line(i)) * ldc + place(j)) = vector(i, j);
      continue;
    }
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
      float* const c_line = c + static_cast<size_t>(line(i)) * ldc;
      if (line(i) >= lines) continue;
      Vector old[PLACES / STORE] = {};
#pragma unroll
      for (int j = 0; j < PLACES; j += STORE)
        if (beta != 0.0F && place(j) < places)  // beta = 0 must not read C: it may hold NaN
          old[j / STORE] = *reinterpret_cast<const Vector*>(c_line + place(j));
#pragma unroll
      for (int j = 0; j < PLACES; j += STORE) {
        Vector d = vector(i, j);
        const Vector o = old[j / STORE];
        d.x += beta * o.x, d.y += beta * o.y;
        if constexpr (STORE == 4) d.z += beta * o.z, d.w += beta * o.w;
        const int left = places - place(j);
        float* const to = c_line + place(j);
        if (left >= STORE) {
          *reinterpret_cast<Vector*>(to) = d;
        } else {  // the padding of C must stay as it is
          if (left > 0) to[0] = d.x;
          if constexpr (STORE == 4) {
            if (left > 1) to[1] = d.y;
            if (left > 2) to[2] = d.z;
          }
        }
      }
    }
    // [/epilogue]
  }
}

/// What the parts of a launch cost, in clocks of an H200's SM, as SplitCosts and StreamKCosts have them. Fitted to a sweep.
struct Clocks {
  double start, k_tile, work_tile, fix_up, other;
  double transpose;  // a k tile in addition, where A is transposed
};

/// The same product as C^T = B^T A^T: A and B change places; but C stays as it is stored.
Problem swapped(Problem p) {
  const auto transposed = [](MatrixLayout layout) {
    return layout == MatrixLayout::row_major ? MatrixLayout::col_major : MatrixLayout::row_major;
  };
  std::swap(p.m, p.n), std::swap(p.a, p.b), std::swap(p.lda, p.ldb), std::swap(p.layout_a, p.layout_b);
  p.layout_a = transposed(p.layout_a), p.layout_b = transposed(p.layout_b);
  return p;
}

/// How TMA loads A and B.
struct Maps {
  CUtensorMap a, b;
};

/// A Tile, for the host.
struct Kernel {
  const void* kernel = nullptr;  // null: not compiled
  int smem_bytes;
  Maps (*maps)(const Problem&);
  void (*launch)(const Problem&, const Schedule&, const Maps&);
};

/// Tiles of one shape.
struct Configuration {
  TileShape shape;
  int threads;
  Clocks clocks;
  Kernel kernels[2][2][2];  // by whether A and B have changed places, and then lie along k
  Kernel every_fourth[2];   // with B along k, not swapped: by whether A lies along k

  /// Of the problem as it has it.
  const Kernel& kernel(const Problem& p, bool swapped) const {
    const bool a_along_k = p.layout_a == MatrixLayout::row_major, b_along_k = p.layout_b == MatrixLayout::col_major;
    // EVERY_FOURTH saves about 1500 clocks per tile of C, and costs about 90 per k tile: 16 k tiles break even.
    if (const Kernel& found = every_fourth[a_along_k]; found.kernel && b_along_k && !swapped && p.k < 16 * shape.k)
      return found;
    return kernels[swapped][a_along_k][b_along_k];
  }
};

template <class Tile>
Maps maps(const Problem& p);
template <class Tile>
void launch_tile(const Problem& p, const Schedule& schedule, const Maps& maps);

template <class Tile>
Kernel kernel() {
  return {(const void*)sgemm<Tile>, Tile::SMEM_BYTES, maps<Tile>, launch_tile<Tile>};
}

template <int BM, int BN, int BK, int WM, int SLICES, int STAGES>
Configuration configuration(const Clocks& clocks) {
  Configuration c = {{BM, BN, BK}, 0, clocks, {}, {}};
  if constexpr (TUNABLE(COMPILED, true)) {  // bench/sweep.py compiles one at a time
    using Tn = Tile<BM, BN, BK, WM, SLICES, STAGES, false, false, false>;
    using Tt = Tile<BM, BN, BK, WM, SLICES, STAGES, false, true, false>;
    using Nn = Tile<BM, BN, BK, WM, SLICES, STAGES, false, true, true>;
    using Nt = Tile<BM, BN, BK, WM, SLICES, STAGES, true, true, false>;
    using NtSwapped = Tile<BM, BN, BK, WM, SLICES, STAGES, true, true, true>;
    c.threads = Nt::THREADS;
    // In the other layouts 128 x 64 does as well. In nt it has twice the rows to transpose.
    if constexpr (BM != 64 || BN != 128)
      c.kernels[0][0][0] = kernel<Tn>(), c.kernels[0][0][1] = kernel<Tt>(), c.kernels[1][0][1] = kernel<Nn>();
    c.kernels[0][1][1] = kernel<Nt>();
    // BN is 64 at least. So few rows of C need a tile that is not swapped, few columns one that is, in each layout.
    if constexpr (BM <= 32) {
      c.kernels[0][1][0] = kernel<Tile<BM, BN, BK, WM, SLICES, STAGES, true, false, false>>();
      c.kernels[1][0][0] = kernel<Tile<BM, BN, BK, WM, SLICES, STAGES, false, false, true>>();
      c.kernels[1][1][0] = kernel<Tile<BM, BN, BK, WM, SLICES, STAGES, true, false, true>>();
    }
    if constexpr (BM < BN) c.kernels[1][1][1] = kernel<NtSwapped>();  // else as many rows or more are transposed
    if constexpr (SLICES == 1) {
      c.every_fourth[0] = kernel<Tile<BM, BN, BK, WM, SLICES, STAGES, false, true, false, true>>();
      c.every_fourth[1] = kernel<Tile<BM, BN, BK, WM, SLICES, STAGES, true, true, false, true>>();
    }
  }
  return c;
}

// [configurations]
const Configuration configurations[] = {
    configuration<128, 256, 32, 64, 1, 4>({9360, 9180, 4080, 17120, 3250, 230}),
    configuration<256, 64, 32, 64, 2, 3>({12580, 4720, 5770, 12330, 920, 510}),
    configuration<64, 128, 32, 64, 4, 6>({9840, 2430, 4290, 14350, 0, 40}),  // nt alone; fitted: `transpose` alone
    configuration<64, 256, 32, 64, 2, 4>({9670, 4730, 5660, 15430, 1020, 20}),
    configuration<128, 64, 32, 64, 4, 6>({9840, 2430, 4290, 14350, 0, 230}),
    configuration<32, 128, 64, 32, 4, 4>({10980, 2570, 2810, 9640, 390, 100}),
    configuration<32, 64, 64, 32, 8, 7>({10430, 1370, 2550, 9300, 200, 170}),
    configuration<16, 64, 64, 16, 8, 9>({10870, 850, 1790, 8420, 120, 120}),
};
// [/configurations]

/// A configuration, its best schedule and what that is expected to take.
struct Choice {
  const Configuration* configuration;
  const Kernel* kernel;
  bool swapped;
  SchedulePlan plan;

  /// Of C as it is stored.
  TileShape tile() const {
    const TileShape& t = configuration->shape;
    return swapped ? TileShape{t.n, t.m, t.k} : t;
  }
};

// [choice]
/// All that there are for this problem.
std::vector<Choice> choices(const Problem& stored) {
  const int sms = device_limits().sms;
  std::vector<Choice> found;
  for (const Configuration& c : configurations)
    for (const bool swap : {false, true}) {
      const Problem p = swap ? swapped(stored) : stored;
      const Kernel& kernel = c.kernel(p, swap);
      if (!kernel.kernel) continue;
      const double k_tile = c.clocks.k_tile + (p.layout_a == MatrixLayout::row_major) * c.clocks.transpose;
      // Parallel split-K is ruled out: its reduction kernel costs 1e30.
      const SplitCosts costs = {c.clocks.start, k_tile, c.clocks.work_tile, 1e30, 0, 0};
      TiledProduct t = tiled(p, c.shape, sms);
      t.sms = min(sms, t.c_tiles * t.k_tiles);  // a block has at least one k tile
      found.push_back({&c, &kernel, swap, best_schedule(costs, {k_tile, c.clocks.fix_up, c.clocks.other}, t)});
    }
  return found;
}

/// The one with the fewest clocks.
Choice choose(const Problem& p) {
  return std::ranges::min(choices(p), {}, [](const Choice& c) { return c.plan.clocks; });
}
// [/choice]

/// Whether common/few_rows.h multiplies: half of the smallest tile would not be in C. It takes A and B as they are stored.
bool has_few_rows(const Problem& p) { return p.m <= TUNABLE(FEW_ROWS, 8); }

std::string explain(const Problem& p) {
  if (has_few_rows(p)) return "* few rows, " + explain_few_rows(p);
  const Choice chosen = choose(p);
  std::string text;
  for (const Choice& c : choices(p)) {
    const TileShape tile = c.tile();
    text += std::string(c.kernel == chosen.kernel ? "* " : "  ") + std::to_string(tile.m) + " x " +
            std::to_string(tile.n) + (c.swapped ? " swapped, " : ", ") + explain_schedule(c.plan);
  }
  return text;
}

/// Of blocks that may store partial sums.
size_t partial_bytes(const Configuration& c, const Schedule& s) {
  return 4 * static_cast<size_t>(s.stream_k_tiles > 0 ? s.blocks : 0) * c.shape.m * c.shape.n;
}

/// Locks by which blocks wait for partial sums of others, one per consumer warp.
int lock_count(const Schedule& s) { return s.stream_k_tiles > 0 ? s.blocks * 8 : 0; }

template <class Tile>
Maps maps(const Problem& p) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK;
  return {Tile::TRANSPOSE_A ? tensor_map<float>(p.a, p.m, p.k, p.lda, {Tile::SLOT_ROWS})
                            : tensor_map<float>(p.a, p.k, p.m, p.lda, {BK, BM * 4, false}),
          Tile::B_ALONG_K ? tensor_map<float>(p.b, p.n, p.k, p.ldb, {BN, 128, true, Tile::EVERY_FOURTH ? 4 : 1})
                          : tensor_map<float>(p.b, p.k, p.n, p.ldb, {BK, BN * 4, false})};
}

template <class Tile>
void launch_tile(const Problem& p, const Schedule& schedule, const Maps& maps) {
  cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = schedule.stream_k_tiles > 0;
  cudaLaunchConfig_t config{};
  config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES;
  config.stream = p.stream, config.attrs = &resident, config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, sgemm<Tile>, p.m, p.n, p.k, p.alpha, maps.a, maps.b, p.beta, p.C<float>(),
                                p.ldc, schedule, static_cast<float*>(p.workspace), p.locks));
}

/// A launch for this problem, whose pointers, factors and stream may change. What depends on its size is worked out here, and
/// the maps whenever A or B lie elsewhere.
std::function<void(const Problem&)> prepare(const Problem& p) {
  if (has_few_rows(p)) return launch_few_rows;
  const Choice chosen = choose(p);
  const Kernel& kernel = *chosen.kernel;
  cuda_check(cudaFuncSetAttribute(kernel.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.smem_bytes));
  return [&kernel, swap = chosen.swapped, schedule = chosen.plan.schedule, maps = Maps{},
          a = static_cast<const void*>(nullptr), b = static_cast<const void*>(nullptr)](Problem p) mutable {
    if (swap) p = swapped(p);
    if (p.a != a || p.b != b) maps = kernel.maps(p), a = p.a, b = p.b;
    kernel.launch(p, schedule, maps);
  };
}

/// What the fit takes from here.
std::vector<Constants> constants() {
  std::vector<Constants> groups;
  for (const auto& [shape, threads, clocks, kernels, every_fourth] : configurations)
    groups.push_back({std::to_string(shape.m) + "x" + std::to_string(shape.n),
                      {{"bk", shape.k},
                       {"start", clocks.start},
                       {"k_tile", clocks.k_tile},
                       {"work_tile", clocks.work_tile},
                       {"fix_up", clocks.fix_up},
                       {"other", clocks.other},
                       {"transpose", clocks.transpose}}});
  return groups;
}

const Registration registration{{
    .number = "38",
    .name = "sgemm_layouts",
    .idea = "any layout: one operand along k is read as it is stored; of two, warps transpose one",
    .predecessor = "37",
    .types = {Type::f32},
    .arch = "sm_90a",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .any_layout = true,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          if (has_few_rows(p)) return few_rows_plan(p).resources;
          const Choice chosen = choose(p);
          const Configuration& c = *chosen.configuration;
          const Schedule& schedule = chosen.plan.schedule;
          return Resources{chosen.kernel->kernel,      c.threads,           chosen.kernel->smem_bytes, chosen.tile(),
                           partial_bytes(c, schedule), lock_count(schedule)};
        },
    .launch = [](const Problem& p) { prepare(p)(p); },
    .explain = explain,
    .constants = constants(),
    .prepare = prepare,
}};

}  // namespace
