// 36_last_wave · stream-K for the last wave
//
// Idea              4096 x 4096 has 512 tiles, 3.88 waves of 132 SMs, and takes the time of 4. Here blocks are persistent. Each first has
//                   its whole tiles. Then the k tiles of the last wave are divided evenly among all SMs: stream-K, as in 18f.
// Changed from 35  all roles loop over work units; the fix-up between main loop and epilogue (18f's, with 32 locks read at once);
//                   L2-friendly rasterisation (15); the schedule by predicted clocks, and the cooperative launch
// Expect            1.03 times 35: the longest block has 497 k tiles in place of 512
// Limiter now       issue slots, and the register file's two banks
// New instructions  none
// Limits            as 34
// Run               ./run_all.sh run 36 4096 4096 4096
// Read              docs/36_last_wave.md
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
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

struct Tile {
  static constexpr int BM = 128;    // rows of C per block
  static constexpr int BN = 256;    // columns of C per block
  static constexpr int BK = 32;     // elements along k per tile: between two waits of a consumer
  static constexpr int WM = 64;     // rows of C per consumer warp
  static constexpr int WN = 64;     // columns of C per consumer warp
  static constexpr int STAGES = 4;  // k tiles in shared memory

  static constexpr int TM = 16;                                   // rows of C per thread
  static constexpr int TN = 8;                                    // columns of C per thread
  static constexpr int GROUP_SIZE_M = TUNABLE(GROUP_SIZE_M, 16);  // rows of tiles: 132 blocks are about 16 x 8
  static constexpr int UNROLL = TUNABLE(UNROLL, 8);               // k steps per basic block, for the instruction cache
  static constexpr int PRODUCERS = 128;  // threads: a warp that issues copies, and those that transpose A
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

/// `partials` and `locks`: of the blocks that store partial sums of a tile.
__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
          const __grid_constant__ CUtensorMap map_b, float beta, float* __restrict__ C, int ldc,
          const __grid_constant__ Schedule schedule, float* partials, unsigned* locks) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNROLL = Tile::UNROLL;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
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
    int piece = warp - 1, k_tiles = 0;
    for (int i = 0, more; (more = work_unit_of(schedule, blockIdx.x, i).k_tiles) > 0; ++i) k_tiles += more;
    const int j = lane % 8, chunk = j / 2 ^ lane / 8;  // of 8 in a row: my first one; the second is ^ 4
    // Each warp waits on every stage: one that left out a phase would take the next for it.
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) {
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
      WorkUnit work_unit;
#pragma unroll 1
      for (int i_unit = 0; (work_unit = work_unit_of(schedule, blockIdx.x, i_unit)).k_tiles > 0; ++i_unit) {
        const auto [tile_row, tile_col] = raster(work_unit.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
#pragma unroll 1
        for (int k_tile = work_unit.first; k_tile < work_unit.first + work_unit.k_tiles; ++k_tile) {
          mbarrier_sleep_parity(rows_empty + rows_state.index * 8, rows_state.phase ^ 1);
          mbarrier_arrive_expect_tx(rows_full + rows_state.index * 8, Tile::ROWS_BYTES);
          cp_async_bulk_tensor_2d(sRows + rows_state.index * Tile::ROWS_BYTES, map_a, k_tile * BK, tile_row * BM,
                                  rows_full + rows_state.index * 8);
          ++rows_state;
          mbarrier_sleep_parity(empty + state.index * 8, state.phase ^ 1);  // the phase before: at first there is none
          mbarrier_arrive_expect_tx(full + state.index * 8, BK * BN * 4);
          cp_async_bulk_tensor_2d(sB + state.index * BK * BN * 4, map_b, tile_col * BN, k_tile * BK,
                                  full + state.index * 8);
          ++state;
        }
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

  WorkUnit work_unit = work_unit_of(schedule, blockIdx.x, 0);
#pragma unroll 1
  for (int i_unit = 0; work_unit.k_tiles > 0; ++i_unit) {
    float acc[TM][TN] = {};
    const bool last = work_unit_of(schedule, blockIdx.x, i_unit + 1).k_tiles == 0;

#pragma unroll 1
    for (int k_tiles_left = work_unit.k_tiles; k_tiles_left > 0; --k_tiles_left) {
      // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
      const int this_stage = state.index;
      if (k_tiles_left > 1 || !last) ++state;
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

    // [fix-up]
    // A stream-K tile: its last block adds the partial sums of the others. Every thread reads those of the same thread index.
    const int consumer = threadIdx.x - Tile::PRODUCERS;
    const auto partials_of = [&](int block) { return partials + static_cast<size_t>(block) * (BM * BN) + consumer; };
    const auto lock_of = [&](int block) { return locks + block * (Tile::CONSUMERS / 32) + consumer / 32; };
    const WorkUnit done = work_unit;
    work_unit = work_unit_of(schedule, blockIdx.x, i_unit + 1);
    if (done.first + done.k_tiles < schedule.k_tiles) {
      float* const partial = partials_of(blockIdx.x);  // CONSUMERS apart; a block stores one tile's at most
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) partial[(i * TN + j) * Tile::CONSUMERS] = acc[i][j];
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
#pragma unroll 1
        for (int block = first; block < first + others; ++block) {
          const float* const partial = partials_of(block);
#pragma unroll
          for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) acc[i][j] += partial[(i * TN + j) * Tile::CONSUMERS];
        }
        __syncwarp();                                   // all lanes have read
        if (lane < others) *lock_of(first + lane) = 0;  // for the next launch
      }
    }
    // [/fix-up]

    // 4. epilogue
    const auto [tile_row, tile_col] = raster(done.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const int m = tile_row * BM + warp_row * WM + spread(lane_row(lane), i, LANE_ROWS);
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
        const int n = tile_col * BN + warp_col * WN + spread(lane_col(lane), j, LANE_COLS);
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
}

/// Clocks of an H200: those of 37's largest tile. There is no parallel split-K: its reduction kernel costs 1e30.
constexpr SplitCosts costs = {
    .start = 25010, .k_tile = 9230, .work_tile = 2950, .reduction = 1e30, .reduction_split = 0, .reduction_byte = 0};
constexpr StreamKCosts stream_k_costs = {.k_tile = 9230, .fix_up = 4070, .other = 2330};

constexpr TileShape shape = {Tile::BM, Tile::BN, Tile::BK};

SchedulePlan plan(const Problem& p) {
  TiledProduct t = tiled(p, shape, device_limits().sms);
  t.sms = min(t.sms, t.c_tiles * t.k_tiles);  // a block has at least one k tile
  return best_schedule(costs, stream_k_costs, t);
}

void launch(const Problem& p) {
  cuda_check(cudaFuncSetAttribute(sgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  const Schedule schedule = plan(p).schedule;
  cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = schedule.stream_k_tiles > 0;
  cudaLaunchConfig_t config{};
  config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES;
  config.stream = p.stream, config.attrs = &resident, config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, sgemm, p.m, p.n, p.k, p.alpha,
                                tensor_map<float>(p.a, p.m, p.k, p.lda, {Tile::BM}),
                                tensor_map<float>(p.b, p.k, p.n, p.ldb, {Tile::BK, Tile::BN * 4}), p.beta, p.C<float>(),
                                p.ldc, schedule, static_cast<float*>(p.workspace), p.locks));
}

const Registration registration{{
    .number = "36",
    .name = "last_wave",
    .idea = "persistent blocks; the k tiles of the last wave are divided among all SMs",
    .predecessor = "35",
    .types = {Type::f32},
    .arch = "sm_90a",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          const Schedule s = plan(p).schedule;
          const int storing = s.stream_k_tiles > 0 ? s.blocks : 0;  // blocks that may store partial sums
          return Resources{(const void*)sgemm,
                           Tile::THREADS,
                           Tile::SMEM_BYTES,
                           shape,
                           storing * size_t{4} * Tile::BM * Tile::BN,
                           storing * Tile::CONSUMERS / 32};
        },
    .launch = launch,
    .explain = [](const Problem& p) { return explain_schedule(plan(p)); },
    .constants = {constants_of("split-K", costs), constants_of("stream-K", stream_k_costs)},
}};

}  // namespace
