// 37_sgemm_hopper · seven tiles: the warps that multiply always number eight
//
// Idea              36's tile of 128 x 256 suits large products. Small ones have too few such tiles for all SMs. Seven tiles, down to
//                   16 x 64, are compiled; the host takes the one with the fewest predicted clocks (27). A tile that is too small for
//                   eight warps is computed by all of them, each with a slice of every k tile (sliced-K). C of eight rows or less
//                   needs no tiles: common/few_rows.h.
// Changed from 36  the tile becomes a parameter, with the slices of a k tile; slices are reduced through shared memory; clocks per
//                   configuration, and the choice; whole tiles are stored without tests
// Expect            between 1.11 and 1.20 of cuBLAS at 4096 x 4096 x 4096, as 36: 94 % of the consumers' instructions are FMAs, and the
//                   last wave costs 0.1 %
// Limiter now       issue slots, and the register file's two banks
// New instructions  none
// Limits            sm_90a; f32; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 37 4096 4096 4096
// Read              docs/37_sgemm_hopper.md
#include <optional>
#include <string>

#include "common/few_rows.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
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
/// (sliced-K, CUTLASS's word for a split among the warps of one block).
template <int BM_, int BN_, int BK_, int WM_, int SLICES_, int STAGES_>
struct Tile {
  static constexpr int BM = BM_;          // rows of C per block
  static constexpr int BN = BN_;          // columns of C per block
  static constexpr int BK = BK_;          // elements along k per tile: between two waits of a consumer
  static constexpr int WM = WM_;          // rows of C per consumer warp
  static constexpr int WN = 64;           // columns of C per consumer warp
  static constexpr int SLICES = SLICES_;  // of a k tile: each has its own warps
  static constexpr int STAGES = STAGES_;  // k tiles in shared memory

  static constexpr int TM = WM / 4;            // rows of C per thread
  static constexpr int TN = WN / 8;            // columns of C per thread
  static constexpr int K_STEPS = BK / SLICES;  // of a slice

  static constexpr int UNROLL = TUNABLE(UNROLL, 8);               // k steps per basic block, for the instruction cache
  static constexpr int GROUP_SIZE_M = TUNABLE(GROUP_SIZE_M, 16);  // rows of tiles: 132 blocks are about 16 x 8
  static constexpr int PRODUCERS = 128;  // threads: a warp that issues copies, and those that transpose A
  static constexpr int TRANSPOSERS = PRODUCERS / 32 - 1;        // warps
  static constexpr int CONSUMERS = BM / TM * BN / TN * SLICES;  // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  static constexpr int PRODUCER_REGISTERS = TUNABLE(PRODUCER_REGISTERS, 72);
  static constexpr int CONSUMER_REGISTERS = TUNABLE(CONSUMER_REGISTERS, 216);
  static constexpr int LANE_ROWS = WM / TM;              // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;              // lanes across it
  static constexpr int PIECES = BM * BK / 1024;          // of a tile of A: a warp transposes one at a time
  static constexpr int PARTS = SLICES < 4 ? SLICES : 4;  // of four rows of a thread: a slice reduces one part
  static constexpr int RM = TM / PARTS;                  // rows of C per thread, once the slices are reduced
  static constexpr int RN = SLICES == 8 ? 4 : TN;        // columns, likewise
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int SUMS_BYTES = SLICES > 1 ? CONSUMERS * 4 * TN * 4 : 0;  // four rows of each thread's results
  static constexpr int PART_BYTES = A_BYTES + B_BYTES + SUMS_BYTES + 2 * STAGES * 8;  // of shared memory
  static constexpr int ROWS_BYTES = BM * BK * 4;  // a tile of A as it lies in memory
  static constexpr int MOST_ROWS_STAGES = (232448 - PART_BYTES) / (ROWS_BYTES + 16);
  static constexpr int ROWS_STAGES = TUNABLE(ROWS_STAGES, MOST_ROWS_STAGES < 4 ? MOST_ROWS_STAGES : 4);
  static constexpr int SMEM_BYTES = PART_BYTES + ROWS_STAGES * (ROWS_BYTES + 16);
  static_assert(CONSUMERS == 256 && SMEM_BYTES <= 232448);
  static_assert(BK % 32 == 0 && K_STEPS % UNROLL == 0,
                "blocks of 32 x 32 elements are transposed; whole unrolled blocks");
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
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES;
  const uint32_t sRows = sB + Tile::B_BYTES, sSums = sRows + Tile::ROWS_STAGES * Tile::ROWS_BYTES;
  const uint32_t full = sSums + Tile::SUMS_BYTES,
                 empty = full + STAGES * 8;  // mbarriers: the stage has landed; it has been read
  const uint32_t rows_full = empty + STAGES * 8, rows_empty = rows_full + Tile::ROWS_STAGES * 8;  // likewise, of sRows
  if (threadIdx.x == 0) {
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

  // Stage and phase of the next k tile, for producer and consumers. Not a PipelineState: with it the largest tile's loop has 1082
  // instructions per pass, without it 1080.
  int stage = 0;
  uint32_t phase = 0;

  // [own-tiles]
  // TMA loads A row-major; producer warps transpose it, in pieces of 1024 elements in the order of the ring. A lane moves two blocks of
  // 4 x 4 elements per piece. TMA has swizzled each row's chunks of 16 bytes. Neighbouring lanes take different chunks of different
  // rows, so that neither their loads nor their stores have bank conflicts.
  const auto transpose_tiles = [&](int piece) {
    constexpr int ROWS = BM < 32 ? BM : 32, GROUPS = BM / ROWS;  // rows of a piece; such groups in a tile
    const int j = lane % (ROWS / 4), q = lane / (ROWS / 4);
    const int chunk = (j / 2 * (32 / ROWS)) ^ q % 4;  // of 8 in a box of 32 columns: my first one; the second is ^ 4
    int k_tiles = 0;
    for (int i = 0, more; (more = work_unit_of(schedule, blockIdx.x, i).k_tiles) > 0; ++i) k_tiles += more;
    PipelineState<STAGES> state;
    PipelineState<Tile::ROWS_STAGES> rows_state;
    // This warp may have no piece of a k tile. It waits on every stage all the same, or the phases desynchronise.
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) {
      mbarrier_sleep_parity(rows_full + rows_state.index * 8, rows_state.phase);
      mbarrier_sleep_parity(empty + state.index * 8, state.phase ^ 1);  // the phase before: at first there is none
#pragma unroll 1
      for (; piece < Tile::PIECES; piece += Tile::TRANSPOSERS) {
        const int row = piece % GROUPS * ROWS + j * 4, box = piece / GROUPS * (32 / ROWS) + q / 4;
        const uint32_t from = sRows + rows_state.index * Tile::ROWS_BYTES + (box * BM + row) * 128;
        const uint32_t to = sA + ((state.index * BK + box * 32) * BM + row) * 4;
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
  };
  // [/own-tiles]
  if (warp > 0 && warp <= Tile::TRANSPOSERS) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    transpose_tiles(warp - 1);
    return;
  }
  // [producer]
  if (warp == 0) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (lane == 0) {
      PipelineState<Tile::ROWS_STAGES> rows_state;
      WorkUnit work_unit;
#pragma unroll 1
      for (int i_unit = 0; (work_unit = work_unit_of(schedule, blockIdx.x, i_unit)).k_tiles > 0; ++i_unit) {
        const auto [tile_row, tile_col] = raster(work_unit.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
#pragma unroll 1
        for (int k_tile = work_unit.first; k_tile < work_unit.first + work_unit.k_tiles; ++k_tile) {
          mbarrier_sleep_parity(rows_empty + rows_state.index * 8, rows_state.phase ^ 1);
          mbarrier_arrive_expect_tx(rows_full + rows_state.index * 8, Tile::ROWS_BYTES);
          for (int box = 0; box < BK / 32; ++box)
            cp_async_bulk_tensor_2d(sRows + rows_state.index * Tile::ROWS_BYTES + box * BM * 128, map_a,
                                    k_tile * BK + box * 32, tile_row * BM, rows_full + rows_state.index * 8);
          ++rows_state;
          mbarrier_sleep_parity(empty + stage * 8, phase ^ 1);  // the phase before: at first there is none
          mbarrier_arrive_expect_tx(full + stage * 8, BK * BN * 4);
          cp_async_bulk_tensor_2d(sB + stage * BK * BN * 4, map_b, tile_col * BN, k_tile * BK, full + stage * 8);
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
    return Coord{warp_row * WM + lane_row(lane) * 4, warp_col * WN + lane_col(lane) * 4};
  };
  const int slice = SLICES == 1 ? 0 : (warp - Tile::PRODUCERS / 32) / WARPS;
  const auto [row, col] = first_of(warp, lane);
  uint32_t a_addr = sA + (slice * K_STEPS * BM + row) * 4;  // in the first of UNROLL k steps
  uint32_t b_addr = sB + (slice * K_STEPS * BN + col) * 4;  // likewise

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

  WorkUnit work_unit = work_unit_of(schedule, blockIdx.x, 0);
#pragma unroll 1
  for (int i_unit = 0; work_unit.k_tiles > 0; ++i_unit) {
    float acc[TM][TN] = {};
    const bool last = work_unit_of(schedule, blockIdx.x, i_unit + 1).k_tiles == 0;

    // [main-loop]
    // 3. main loop: A -TMA-> sRows -transposers-> sA     B -TMA-> sB     sA, sB -loads-> rA, rB -> acc
#pragma unroll 1
    for (int k_tiles_left = work_unit.k_tiles; k_tiles_left > 0; --k_tiles_left) {
      // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
      const int this_stage = stage;
      if (k_tiles_left > 1 || !last)
        if (++stage == STAGES) stage = 0, phase ^= 1;
      // Bytes from the last UNROLL k steps to the next tile, in the array with the shorter rows.
      constexpr int LESS = BM < BN ? BM : BN;
      const int next_tile = ((stage - this_stage) * BK - (K_STEPS - UNROLL)) * LESS * 4;
      mbarrier_wait_parity(full + stage * 8, phase);
#pragma unroll 1
      for (int k_left = K_STEPS; k_left > 0; k_left -= UNROLL) {
        const int step = k_left > UNROLL ? UNROLL * LESS * 4 : next_tile;  // likewise, to the next UNROLL k steps
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
          if (k == UNROLL - 1) a_addr += step * (BM / LESS), b_addr += step * (BN / LESS);
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
    const int part_row = slice % Tile::PARTS * PART_ROWS, part_j = slice / Tile::PARTS * 4;
    const auto [tile_m, tile_n] = first_of(warp, lane);
    const int my_row = tile_m + part_row, my_col = tile_n + spread(0, part_j, LANE_COLS);
    if constexpr (SLICES > 1) {
#pragma unroll
      for (int i = 0; i < TM; i += 4) {
        const auto sums = [&](int slice, int r, int j) {  // sSums[slice][warp][r][j / 4][lane], of four floats
          const int row = (slice * WARPS + (warp - Tile::PRODUCERS / 32) % WARPS) * 4 + r;
          return sSums + ((row * (TN / 4) + j / 4) * 32 + lane) * 16;
        };
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
          for (int j = 0; j < TN; j += 4)
            store4_shared(sums(slice, r, j), {acc[i + r][j], acc[i + r][j + 1], acc[i + r][j + 2], acc[i + r][j + 3]});
        bar_sync(1, Tile::CONSUMERS);
#pragma unroll
        for (int r = 0; r < PART_ROWS; ++r)
#pragma unroll
          for (int j = 0; j < RN; j += 4) {
            float* const sum = &acc[i / Tile::PARTS + r][j];
#pragma unroll
            for (int s = 0; s < SLICES; ++s) {
              float x[4];
              load4_shared(x, sums(s, part_row + r, part_j + j));
#pragma unroll
              for (int e = 0; e < 4; ++e) sum[e] = s == 0 ? x[e] : sum[e] + x[e];
            }
          }
        bar_sync(1, Tile::CONSUMERS);
      }
    }
    // [/slices]

    // [fix-up]
    // A stream-K tile: its last block adds the partial sums of the others. Every thread reads those of the same thread index.
    const auto partials_of = [&](int block) { return partials + static_cast<size_t>(block) * (BM * BN) + consumer; };
    const auto lock_of = [&](int block) { return locks + block * (Tile::CONSUMERS / 32) + consumer / 32; };
    const WorkUnit done = work_unit;
    work_unit = work_unit_of(schedule, blockIdx.x, i_unit + 1);
    if (done.first + done.k_tiles < schedule.k_tiles) {
      float* const partial = partials_of(blockIdx.x);  // CONSUMERS apart; a block stores one tile's at most
#pragma unroll
      for (int i = 0; i < RM; ++i)
#pragma unroll
        for (int j = 0; j < RN; ++j) partial[(i * RN + j) * Tile::CONSUMERS] = acc[i][j];
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
          for (int i = 0; i < RM; ++i)
#pragma unroll
            for (int j = 0; j < RN; ++j) acc[i][j] += partial[(i * RN + j) * Tile::CONSUMERS];
        }
        __syncwarp();                                   // all lanes have read
        if (lane < others) *lock_of(first + lane) = 0;  // for the next launch
      }
    }
    // [/fix-up]

    // [epilogue]
    // 4. epilogue
    const auto [tile_row, tile_col] = raster(done.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    // My first element, and how many rows and columns C has from there on.
    float* const c = C + static_cast<size_t>(tile_row * BM + my_row) * ldc + tile_col * BN + my_col;
    const int rows = M - tile_row * BM - my_row, columns = N - tile_col * BN - my_col;
    const auto row_of = [&](int i) { return spread(0, i / PART_ROWS * 4 + i % PART_ROWS, LANE_ROWS); };
    const auto scaled = [&](int i, int j) {
      return float4{alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]};
    };
    if (beta == 0.0F && (tile_row + 1) * BM <= M && (tile_col + 1) * BN <= N) {  // few instructions for most tiles
#pragma unroll
      for (int i = 0; i < RM; ++i)
#pragma unroll
        for (int j = 0; j < RN; j += 4)
          *reinterpret_cast<float4*>(c + static_cast<size_t>(row_of(i)) * ldc + spread(0, j, LANE_COLS)) = scaled(i, j);
      continue;
    }
#pragma unroll
    for (int i = 0; i < RM; ++i) {
      float* const c_row = c + static_cast<size_t>(row_of(i)) * ldc;
      if (row_of(i) >= rows) continue;
      float4 old[RN / 4] = {};
#pragma unroll
      for (int j = 0; j < RN; j += 4)
        if (beta != 0.0F && spread(0, j, LANE_COLS) < columns)  // beta = 0 must not read C: it may hold NaN
          old[j / 4] = *reinterpret_cast<const float4*>(c_row + spread(0, j, LANE_COLS));
#pragma unroll
      for (int j = 0; j < RN; j += 4) {
        const float4 x = scaled(i, j), o = old[j / 4];
        const float4 d = {x.x + beta * o.x, x.y + beta * o.y, x.z + beta * o.z, x.w + beta * o.w};
        const int left = columns - spread(0, j, LANE_COLS);
        float* const to = c_row + spread(0, j, LANE_COLS);
        if (left >= 4) {
          *reinterpret_cast<float4*>(to) = d;
        } else {  // the padding of C must stay as it is
          if (left > 0) to[0] = d.x;
          if (left > 1) to[1] = d.y;
          if (left > 2) to[2] = d.z;
        }
      }
    }
    // [/epilogue]
  }
}

/// What the parts of a launch cost, in clocks of an H200's SM, as SplitCosts and StreamKCosts have them. Fitted to a sweep.
struct Clocks {
  double start, k_tile, work_tile, fix_up, other;
};

/// A Tile, for the host.
struct Configuration {
  TileShape shape;
  const void* kernel;
  int threads, smem_bytes;
  Clocks clocks;
  void (*launch)(const Problem&, const Schedule&);
};

template <class Tile>
void launch_tile(const Problem& p, const Schedule& schedule);

template <class Tile>
Configuration configuration(const Clocks& clocks) {
  if constexpr (!TUNABLE(COMPILED, true)) return {};  // bench/sweep.py compiles one at a time
  return {{Tile::BM, Tile::BN, Tile::BK},
          (const void*)sgemm<Tile>,
          Tile::THREADS,
          Tile::SMEM_BYTES,
          clocks,
          launch_tile<Tile>};
}

// [configurations]
const Configuration configurations[] = {
    configuration<Tile<128, 256, 32, 64, 1, 4>>({25720, 9220, 2930, 3410, 2340}),
    configuration<Tile<256, 64, 32, 64, 2, 3>>({12300, 5410, 5910, 13340, 450}),
    configuration<Tile<64, 256, 32, 64, 2, 4>>({11840, 5090, 5700, 12500, 1110}),
    configuration<Tile<128, 64, 32, 64, 4, 6>>({10810, 2830, 3400, 12680, 120}),
    configuration<Tile<32, 128, 64, 32, 4, 4>>({10080, 2660, 2750, 10340, 120}),
    configuration<Tile<32, 64, 64, 32, 8, 7>>({11570, 1450, 2320, 7920, 0}),
    configuration<Tile<16, 64, 64, 16, 8, 9>>({11300, 960, 1840, 8060, 110}),
};
// [/configurations]

/// A configuration, its best schedule and what that is expected to take.
struct Choice {
  const Configuration* configuration;
  SchedulePlan plan;
};

// [choice]
Choice choice(const Configuration& c, const Problem& p) {
  const int sms = device_limits().sms;
  // Parallel split-K is ruled out: its reduction kernel costs 1e30.
  const SplitCosts costs = {c.clocks.start, c.clocks.k_tile, c.clocks.work_tile, 1e30, 0, 0};
  TiledProduct t = tiled(p, c.shape, sms);
  t.sms = min(sms, t.c_tiles * t.k_tiles);  // a block has at least one k tile
  return {&c, best_schedule(costs, {c.clocks.k_tile, c.clocks.fix_up, c.clocks.other}, t)};
}
// [/choice]

/// The one with the fewest clocks.
Choice choose(const Problem& p) {
  std::optional<Choice> best;
  for (const Configuration& c : configurations) {
    if (!c.kernel) continue;  // not compiled
    if (const Choice other = choice(c, p); !best || other.plan.clocks < best->plan.clocks) best.emplace(other);
  }
  return *best;
}

/// Whether common/few_rows.h multiplies: half of the smallest tile would not be in C.
bool has_few_rows(const Problem& p) { return p.m <= TUNABLE(FEW_ROWS, 8); }

std::string explain(const Problem& p) {
  const Configuration* const chosen = has_few_rows(p) ? nullptr : choose(p).configuration;
  std::string text = has_few_rows(p) ? "* few rows, " + explain_few_rows(p) : "";
  for (const Configuration& c : configurations) {
    if (!c.kernel) continue;
    const Choice candidate = choice(c, p);
    text += std::string(&c == chosen ? "* " : "  ") + std::to_string(c.shape.m) + " x " + std::to_string(c.shape.n) +
            ", " + explain_schedule(candidate.plan);
  }
  return text;
}

/// Locks by which blocks wait for partial sums of others, one per consumer warp.
int lock_count(const Schedule& s) { return s.stream_k_tiles > 0 ? s.blocks * 8 : 0; }

template <class Tile>
void launch_tile(const Problem& p, const Schedule& schedule) {
  cuda_check(cudaFuncSetAttribute(sgemm<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = schedule.stream_k_tiles > 0;
  cudaLaunchConfig_t config{};
  config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES;
  config.stream = p.stream, config.attrs = &resident, config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, sgemm<Tile>, p.m, p.n, p.k, p.alpha,
                                tensor_map<float>(p.a, p.m, p.k, p.lda, {Tile::BM}),
                                tensor_map<float>(p.b, p.k, p.n, p.ldb, {Tile::BK, Tile::BN * 4}), p.beta, p.C<float>(),
                                p.ldc, schedule, static_cast<float*>(p.workspace), p.locks));
}

/// What the fit takes from here.
std::vector<Constants> constants() {
  std::vector<Constants> groups;
  for (const auto& [shape, kernel, threads, smem_bytes, clocks, launch] : configurations)
    groups.push_back({std::to_string(shape.m) + "x" + std::to_string(shape.n),
                      {{"bk", shape.k},
                       {"start", clocks.start},
                       {"k_tile", clocks.k_tile},
                       {"work_tile", clocks.work_tile},
                       {"fix_up", clocks.fix_up},
                       {"other", clocks.other}}});
  return groups;
}

const Registration registration{{
    .number = "37",
    .name = "sgemm_hopper",
    .idea = "FP32 fed by TMA: warps that only multiply, stream-K for the last wave, seven tiles",
    .predecessor = "36",
    .types = {Type::f32},
    .arch = "sm_90a",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          if (has_few_rows(p)) return few_rows_plan(p).resources;
          const auto [c, plan] = choose(p);
          const Schedule& s = plan.schedule;
          const int storing = s.stream_k_tiles > 0 ? s.blocks : 0;  // blocks that may store partial sums
          return Resources{c->kernel,
                           c->threads,
                           c->smem_bytes,
                           c->shape,
                           4 * static_cast<size_t>(storing) * c->shape.m * c->shape.n,
                           lock_count(s)};
        },
    .launch =
        [](const Problem& p) {
          if (has_few_rows(p)) return launch_few_rows(p);
          const auto [c, plan] = choose(p);
          c->launch(p, plan.schedule);
        },
    .explain = explain,
    .constants = constants(),
}};

}  // namespace
