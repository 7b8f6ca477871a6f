// 18f_stream_k_fp32 · 18's stream-K for the FP32 kernel of 08
//
// Idea              4096 x 4096 has 512 tiles of 128 x 256, 3.88 waves on 132 SMs, and takes the time of 4. The k tiles of the last
//                   wave are divided evenly among all SMs, as in 18.
// Changed from 17f  a block has work units: the kernel of 08 runs once for each; the fix-up between main loop and epilogue; where
//                   there are no stream-K tiles, a second instance without them
// Expect            3072 x 3072 x 3072: 1.09 times 17f, whose 5 splits need 10.9 waves of a fifth and a reduction kernel
// Limiter now       as 08, without the last wave
// New instructions  ld.acquire.gpu, st.release.gpu
// Limits            as 08
// Run               ./run_all.sh run 18f 4096 4096 4096
// Read              docs/18_stream_k.md
#include "common/layout.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/semaphore.h"
#include "common/rung.h"
#include "common/split_k.h"
#include "common/stream_k.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;  // rows of C per block
  static constexpr int BN = 256;  // columns of C per block
  static constexpr int BK = 8;    // elements along k per tile
  static constexpr int WM = 64;   // rows of C per warp
  static constexpr int WN = 64;   // columns of C per warp
  static constexpr int TM = 16;   // rows of C per thread
  static constexpr int TN = 8;    // columns of C per thread
  static constexpr int THREADS = BM / TM * (BN / TN);
  static constexpr int A_ROWS = THREADS * 4 / BK;  // rows of A that the block loads at once
  static constexpr int A_LOADS = BM / A_ROWS;      // float4 of A per thread and tile
  static constexpr int B_ROWS = THREADS * 4 / BN;  // rows of B that the block loads at once
  static constexpr int B_LOADS = BK / B_ROWS;      // float4 of B per thread and tile
  static constexpr int LANE_ROWS = WM / TM;        // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;        // lanes across it
  static_assert(BM % A_ROWS == 0 && BK % B_ROWS == 0, "each thread loads the same number of float4");
  static_assert(BM % WM == 0 && BN % WN == 0 && LANE_ROWS * LANE_COLS == 32, "whole warps of 32 lanes");
  static_assert(BK % 2 == 0, "the fragments after a tile's last step go into rA[0] and rB[0]");
  static_assert(128 / BK % (LANE_ROWS * 4) == 0 && WM % 32 == 0, "no carry where `row` is added to swizzled_column()");
};

/// Four floats with one 16-byte instruction; `p` is a multiple of 16 bytes.
__device__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

/// The first `count` of four floats, zeros after them. Reads nothing where count < 1.
__device__ float4 load4(const float* p, int count) {
  if (count < 1) return {};
  const float4 v = load4(p);
  return {v.x, count > 1 ? v.y : 0.0F, count > 2 ? v.z : 0.0F, count > 3 ? v.w : 0.0F};
}

/// Row or column in the warp tile of element `i` of a lane's rows or columns. Each group of four neighbours belongs to
/// one lane; neighbouring groups belong to neighbouring ones of the `lanes`.
__host__ __device__ constexpr int spread(int lane, int i, int lanes) { return (i / 4 * lanes + lane) * 4 + i % 4; }

// The tests take it from common/layout.h: it is the same function.
static_assert([] {
  for (int lane = 0; lane < Tile::LANE_ROWS; ++lane)
    for (int i = 0; i < Tile::TM; ++i)
      if (spread(lane, i, Tile::LANE_ROWS) != ladder::spread(lane, i, Tile::LANE_ROWS)) return false;
  return true;
}());

/// C holds a matrix per split, `split_stride` elements apart. `partials` and `locks`: of the blocks that store partial sums of a tile.
/// STREAM_K: the schedule has stream-K tiles. Without them a block has one work tile, and the grid as many blocks as work tiles.
template <bool STREAM_K>
__global__ void __launch_bounds__(Tile::THREADS, 1)  // one block per SM: up to 255 registers
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc, Schedule schedule, size_t split_stride, float4* partials,
          unsigned* locks) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS;
  alignas(16) __shared__ float sA[2][BK][BM];
  alignas(16) __shared__ float sB[2][BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN), all_k_tiles = ceil_div(K, BK);
  // [lane-map]
  // Lanes go down the columns: four neighbours load the same columns of B. So a load of B takes 2 wavefronts, and one of
  // A takes 4.
  const auto [warp_row, warp_col] = row_major(threadIdx.x / 32, BN / WN);
  const auto [lane_col, lane_row] = row_major(threadIdx.x % 32, LANE_ROWS);
  const int row = warp_row * WM + lane_row * 4, col = warp_col * WN + lane_col * 4;  // my first result in the tile of C
  // [/lane-map]
  const auto [a_row, a_k4] = row_major(threadIdx.x, BK / 4);
  const auto [b_k, b_col4] = row_major(threadIdx.x, BN / 4);
  const int a_k = a_k4 * 4, b_col = b_col4 * 4;  // my first four elements of a tile: A[a_row][a_k...], B[b_k][b_col...]

#pragma unroll 1
  for (uint32_t i_unit = 0; STREAM_K || i_unit == 0; ++i_unit) {
    const WorkUnit work_unit = work_unit_of(schedule, blockIdx.x, i_unit);
    const int k_tiles = work_unit.k_tiles;
    if (STREAM_K && k_tiles == 0) break;
    if (STREAM_K && i_unit > 0) __syncthreads();  // everyone has read the tiles of the previous work unit
    const int block_row = work_unit.c_tile / tiles_n * BM, block_col = work_unit.c_tile % tiles_n * BN;

    // 2. set up. Past the last row or column, read the last one: its results are not stored.
    const int first_k_offset = (all_k_tiles - work_unit.first - k_tiles) * BK;
    int k_offset = first_k_offset + (k_tiles - 1) * BK;
    const float* gA[Tile::A_LOADS];
#pragma unroll
    for (int i = 0; i < Tile::A_LOADS; ++i)
      gA[i] = A + static_cast<size_t>(min(block_row + a_row + i * Tile::A_ROWS, M - 1)) * lda + k_offset + a_k;
    const float* gB[Tile::B_LOADS];
#pragma unroll
    for (int i = 0; i < Tile::B_LOADS; ++i)
      gB[i] =
          B + static_cast<size_t>(k_offset + b_k + i * Tile::B_ROWS) * ldb + min(block_col + b_col, (N - 1) / 4 * 4);
    float4 nextA[Tile::A_LOADS], nextB[Tile::B_LOADS];  // the next tile, between global and shared memory
    float acc[TM][TN] = {};

    const auto store_tile = [&](int write_stage) {
#pragma unroll
      for (int i = 0; i < Tile::A_LOADS; ++i) {
        const int m = swizzled_column(a_k, a_row + i * Tile::A_ROWS, BK);  // the same for all four k
        sA[write_stage][a_k + 0][m] = nextA[i].x;
        sA[write_stage][a_k + 1][m] = nextA[i].y;
        sA[write_stage][a_k + 2][m] = nextA[i].z;
        sA[write_stage][a_k + 3][m] = nextA[i].w;
      }
#pragma unroll
      for (int i = 0; i < Tile::B_LOADS; ++i) store4(&sB[write_stage][b_k + i * Tile::B_ROWS][b_col], nextB[i]);
    };
    // The last tile comes first. It may be a residue tile: zeros past K, where there may be NaN.
    const int k_left = K - k_offset;
#pragma unroll
    for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i], k_left - a_k);
#pragma unroll
    for (int i = 0; i < Tile::B_LOADS; ++i) nextB[i] = load4(gB[i], b_k + i * Tile::B_ROWS < k_left ? 4 : 0);
    int read_stage = 0;
    store_tile(read_stage);
    __syncthreads();

    // [fragments]
    alignas(16) float rA[2][TM], rB[2][TN];  // [k % 2][row or column]: fragments of this k step and of the next
    const auto load_fragments = [&](int k) {
#pragma unroll
      for (int i = 0; i < TM; i += 4)
        store4(&rA[k % 2][i], load4(&sA[read_stage][k][row + swizzled_column(k, spread(0, i, LANE_ROWS), BK)]));
#pragma unroll
      for (int j = 0; j < TN; j += 4) store4(&rB[k % 2][j], load4(&sB[read_stage][k][col + spread(0, j, LANE_COLS)]));
    };
    // [/fragments]
    load_fragments(0);

    // [main-loop]
    // 3. main loop: gmem -loads-> nextA, nextB -stores-> smem[1 - read_stage]     smem[read_stage] -loads-> rA, rB -> acc
#pragma unroll 1
    for (; k_offset >= first_k_offset; k_offset -= BK) {
      if (k_offset > first_k_offset) {  // the next tile's loads
#pragma unroll
        for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i] -= BK);
#pragma unroll
        for (int i = 0; i < Tile::B_LOADS; ++i) nextB[i] = load4(gB[i] -= static_cast<size_t>(BK) * ldb);
      }

#pragma unroll
      for (int k = 0; k < BK; ++k) {
        if (k == BK - 3) store_tile(1 - read_stage);  // no thread has read this stage since the last barrier
        if (k == BK - 1) {
          __syncthreads();  // the next tile is complete, and everyone has read this one
          read_stage = 1 - read_stage;
        }
        load_fragments((k + 1) % BK);
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
          for (int j = 0; j < TN; ++j) {
            const int j_serpentine =
                i % 2 ? TN - 1 - j : j;  // consecutive FFMAs share an operand: fewer register reads
            acc[i][j_serpentine] += rA[k % 2][i] * rB[k % 2][j_serpentine];
          }
        }
      }
    }
    // [/main-loop]

    if (STREAM_K) keep_in_register(i_unit);  // computed again: kept, it would take registers from the main loop
    const WorkUnit done = STREAM_K ? work_unit_of(schedule, blockIdx.x, i_unit) : work_unit;
    // [fix-up]
    // A stream-K tile: its last block adds the partial sums of the others. Every thread reads those of the same thread index.
    const auto partials_of = [&](int block) { return partials + block * (BM * BN / 4) + threadIdx.x; };
    const auto lock_of = [&](int block) { return locks + block * (Tile::THREADS / 32) + threadIdx.x / 32; };
    if (STREAM_K && done.first + done.k_tiles < all_k_tiles) {
      float4* const partial = partials_of(blockIdx.x);  // THREADS apart; a block stores one tile's at most
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
          partial[(i * TN + j) / 4 * Tile::THREADS] = {acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]};
      // [left]
      __syncwarp();  // all lanes have written
      if (threadIdx.x % 32 == 0) st_release_gpu(lock_of(blockIdx.x), 1);
      // [/left]
      continue;
    }
    if (STREAM_K && done.first > 0) {
      // [adds]
      const int first_block = first_block_of(schedule, done.c_tile);
      // [/adds]
      // [wait]
#pragma unroll 1
      for (int block = first_block; block < blockIdx.x; ++block) {
        while (__any_sync(~0U, ld_acquire_gpu(lock_of(block)) != 1)) {
        }
      }
      // [/wait]
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll 1
        for (int block = first_block; block < blockIdx.x; ++block) {
          const float4* const partial = partials_of(block);
#pragma unroll
          for (int j = 0; j < TN; j += 4) {
            const float4 sum = partial[(i * TN + j) / 4 * Tile::THREADS];
            acc[i][j] += sum.x, acc[i][j + 1] += sum.y, acc[i][j + 2] += sum.z, acc[i][j + 3] += sum.w;
          }
        }
      // [clear]
      __syncwarp();  // all lanes have seen the locks and read
#pragma unroll 1
      for (int block = first_block + threadIdx.x % 32; block < blockIdx.x; block += 32)
        *lock_of(block) = 0;  // for the next launch
      // [/clear]
    }
    // [/fix-up]

    // 4. epilogue
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const int m = done.c_tile / tiles_n * BM + warp_row * WM + spread(lane_row, i, LANE_ROWS);
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
        const int n = done.c_tile % tiles_n * BN + warp_col * WN + spread(lane_col, j, LANE_COLS);
        float* gC = C + done.split * split_stride + static_cast<size_t>(m) * ldc + n;
        if (n + 4 <= N) {
          float4 d = {alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]};
          if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
            const float4 c = load4(gC);
            d = {d.x + beta * c.x, d.y + beta * c.y, d.z + beta * c.z, d.w + beta * c.w};
          }
          store4(gC, d);
        } else {  // the padding of C must stay as it is
#pragma unroll
          for (int e = 0; e < 3; ++e)
            if (n + e < N) gC[e] = beta == 0.0F ? alpha * acc[i][j + e] : alpha * acc[i][j + e] + beta * gC[e];
        }
      }
    }
  }
}

/// Clocks of an H200: those of 17f.
constexpr SplitCosts costs = {.start = 6300,
                              .k_tile = 2505,
                              .work_tile = 6700,
                              .reduction = 3000,
                              .reduction_split = 160,
                              .reduction_byte = 1 / 11.5};

constexpr StreamKCosts stream_k_costs = {.k_tile = 2700, .fix_up = 16000, .other = 2000};

constexpr TileShape shape = {Tile::BM, Tile::BN, Tile::BK};

SchedulePlan plan(const Problem& p) {
  return best_schedule(costs, stream_k_costs, tiled(p, shape, device_limits().sms));
}

void launch(const Problem& p) {
  Schedule schedule = plan(p).schedule;
  const bool stream_k = schedule.stream_k_tiles > 0;
  if (!stream_k) schedule.blocks = schedule.work_tiles;
  const auto run = [&](float alpha, float beta, float* C, int ldc) {
    cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
    resident.id = cudaLaunchAttributeCooperative;
    resident.val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.stream = p.stream;
    config.attrs = &resident, config.numAttrs = stream_k;
    cuda_check(cudaLaunchKernelEx(&config, stream_k ? sgemm<true> : sgemm<false>, p.m, p.n, p.k, alpha, p.A<float>(),
                                  p.lda, p.B<float>(), p.ldb, beta, C, ldc, schedule, static_cast<size_t>(p.m) * ldc,
                                  static_cast<float4*>(p.workspace), p.locks));
  };
  if (schedule.splits == 1) {
    run(p.alpha, p.beta, p.C<float>(), p.ldc);
  } else {
    run(1.0F, 0.0F, static_cast<float*>(p.workspace), partials_ld(p));
    launch_reduce_splits<float>(p, schedule.splits);
  }
}

const Registration registration{{
    .number = "18f",
    .name = "stream_k_fp32",
    .idea = "18's stream-K for the FP32 kernel of 08",
    .predecessor = "17f",
    .kind = Kind::fp32_form,
    .types = {Type::f32},
    .arch = "sm_70",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          const Schedule s = plan(p).schedule;
          const int storing = s.stream_k_tiles > 0 ? s.blocks : 0;  // blocks that may store partial sums
          return Resources{(const void*)(s.stream_k_tiles > 0 ? sgemm<true> : sgemm<false>),
                           Tile::THREADS,
                           0,
                           shape,
                           s.splits > 1 ? partials_bytes(p, s.splits) : storing * size_t{4} * Tile::BM * Tile::BN,
                           storing * Tile::THREADS / 32};
        },
    .launch = launch,
    .explain = [](const Problem& p) { return explain_schedule(plan(p)); },
    .constants = {constants_of("split-K", costs), constants_of("stream-K", stream_k_costs)},
}};

}  // namespace
