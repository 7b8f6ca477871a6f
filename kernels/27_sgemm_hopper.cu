// 27_sgemm_hopper · the copy engine feeds the CUDA cores: the warps that multiply do nothing else
//
// Idea              The FMA units are bound by issue slots and by the register file's ports, so a warp that multiplies should execute
//                   FFMAs and shared loads only. The copy engine brings the tiles, and barriers are rare: one wait per 4096 FMAs of a
//                   thread. A thread needs a column of A, the engine copies rows: idle warps transpose A into the workspace,
//                   ahead of the copies. What is left of the last wave is shared out by k tiles (18f).
// Changed from 08   A and B by the copy engine (21) into a ring; a warp that asks for the copies, three that transpose A; eight
//                   consumer warps with 08's tiles; persistent blocks, which take whole tiles first and then shares (18f);
//                   a lane map by which no shared load merges
// Expect            between 1.11 and 1.20 of cuBLAS at 4096 x 4096 x 4096: 94 % of the consumers' instructions are FMAs, and the last
//                   wave costs 0.1 %
// Limiter now       issue slots, and the register file's two banks
// New instructions  red.release, atom.acq_rel and fence.proxy.async.global
// Limits            sm_90a; f32; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 27 4096 4096 4096
// Read              docs/27_sgemm_hopper.md
#include <cuda.h>

#include "common/layout.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/flag.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"
#include "common/split_k.h"
#include "common/stream_k.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;           // rows of C per block
  static constexpr int BN = 256;           // columns of C per block
  static constexpr int BK = 32;            // elements along k per tile: between two waits of a consumer
  static constexpr int WM = 64;            // rows of C per consumer warp
  static constexpr int WN = 64;            // columns of C per consumer warp
  static constexpr int TM = 16;            // rows of C per thread
  static constexpr int TN = 8;             // columns of C per thread
  static constexpr int UNIT = 8;           // k steps per basic block: longer code does not fit the instruction cache
  static constexpr int STAGES = 4;         // k tiles in shared memory
  static constexpr int GROUP_SIZE_M = 16;  // rows of tiles per group of the raster: 132 blocks are about 16 x 8
  static constexpr int PRODUCERS = 128;    // threads: a warp that asks for copies, and those that transpose A
  static constexpr int TRANSPOSERS = PRODUCERS / 32 - 1;  // warps
  static constexpr int CONSUMERS = BM / TM * BN / TN;     // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  static constexpr int PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216;
  static constexpr int LANE_ROWS = WM / TM;  // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;  // lanes across it
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int SMEM_BYTES = A_BYTES + B_BYTES + 2 * STAGES * 8;
  static_assert(LANE_ROWS == 4 && LANE_COLS == 8, "see lane_row()");
  static_assert(BK == 32 && BK % UNIT == 0, "blocks of 32 x 32 elements are transposed; whole units");
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

/// Four floats in shared memory, at a multiple of 16 bytes.
__device__ __forceinline__ void load4_shared(float* r, uint32_t smem) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
               : "r"(smem)
               : "memory");
}

/// AT[K][at_ld], A transposed, and ready[group of the raster's rows][k tile], which counts the blocks of 32 x 32 elements that AT has
/// got, are made here; `leaving` counts the blocks that no longer wait for it. partial_sums and flags: of the blocks that leave a
/// part of a tile.
__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, float* AT, int at_ld,
          const __grid_constant__ CUtensorMap map_at, const __grid_constant__ CUtensorMap map_b, float beta,
          float* __restrict__ C, int ldc, const __grid_constant__ Schedule schedule, float* partial_sums,
          unsigned* flags, unsigned* ready, unsigned* leaving) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNIT = Tile::UNIT;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES;
  const uint32_t full = sB + Tile::B_BYTES, empty = full + STAGES * 8;  // mbarriers: a stage is there; it has been read
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_at), prefetch_tensormap(map_b);
  }
  __syncthreads();

  int stage = 0;        // of the next k tile
  uint32_t parity = 0;  // of its phase

  // [transpose]
  // All SMs together take the blocks of 32 x 32 elements of A in the order in which the copies need them.
  constexpr int GROUP_ROWS = Tile::GROUP_SIZE_M * BM / 32;  // of such blocks in a group of the raster's rows
  const int rows_32 = ceil_div(M, 32), blocks_32 = rows_32 * schedule.k_tiles;
  const auto transpose = [&](int block_32) {
    const auto [row_32, k_tile] = raster(block_32, rows_32, schedule.k_tiles, GROUP_ROWS);
    const int m = row_32 * 32 + lane / 8 * 4, k = k_tile * BK + lane % 8 * 4;  // my first elements: two times 4 x 4
    float4 a[2][4] = {};                                                       // [half of the rows][row]
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (const int row = m + half * 16 + i; row < M && k < K)
          a[half][i] = *reinterpret_cast<const float4*>(A + static_cast<size_t>(row) * lda + k);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (m + half * 16 < M) {
        const float4(&r)[4] = a[half];
        float* const to = AT + static_cast<size_t>(k) * at_ld + m + half * 16;
        if (k < K) *reinterpret_cast<float4*>(to) = {r[0].x, r[1].x, r[2].x, r[3].x};
        if (k + 1 < K) *reinterpret_cast<float4*>(to + at_ld) = {r[0].y, r[1].y, r[2].y, r[3].y};
        if (k + 2 < K) *reinterpret_cast<float4*>(to + 2 * at_ld) = {r[0].z, r[1].z, r[2].z, r[3].z};
        if (k + 3 < K) *reinterpret_cast<float4*>(to + 3 * at_ld) = {r[0].w, r[1].w, r[2].w, r[3].w};
      }
    __syncwarp();  // all lanes have written
    if (lane == 0) red_add_release_gpu(ready + row_32 / GROUP_ROWS * schedule.k_tiles + k_tile, 1);
  };
  const int first_32 = (warp - 1) * gridDim.x + blockIdx.x;  // all warps but the one that copies: they could only wait
  if (warp > 0 && first_32 < blocks_32) transpose(first_32);
  if (warp > 0 && warp <= Tile::TRANSPOSERS) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
#pragma unroll 1
    for (int i = first_32 + (Tile::THREADS / 32 - 1) * gridDim.x; i < blocks_32; i += Tile::TRANSPOSERS * gridDim.x)
      transpose(i);
    return;
  }
  // [/transpose]
  // [producer]
  if (warp == 0) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (lane == 0) {
      Segment segment;
#pragma unroll 1
      for (int i_segment = 0; (segment = segment_of(schedule, blockIdx.x, i_segment)).k_tiles > 0; ++i_segment) {
        const auto [tile_row, tile_col] = raster(segment.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int group = tile_row / Tile::GROUP_SIZE_M;
        const unsigned group_rows = min(GROUP_ROWS, rows_32 - group * GROUP_ROWS);
#pragma unroll 1
        for (int k_tile = segment.first; k_tile < segment.first + segment.k_tiles; ++k_tile) {
          mbarrier_sleep_parity(empty + stage * 8, parity ^ 1);  // of the phase before; at first there is none
          mbarrier_arrive_expect_tx(full + stage * 8, BK * (BM + BN) * 4);
          cp_async_bulk_tensor_2d(sB + stage * BK * BN * 4, map_b, tile_col * BN, k_tile * BK, full + stage * 8);
          while (ld_acquire_gpu(ready + group * schedule.k_tiles + k_tile) != group_rows) {
          }
          fence_proxy_async_global();  // other threads wrote AT, the engine reads it
          cp_async_bulk_tensor_2d(sA + stage * BK * BM * 4, map_at, tile_row * BM, k_tile * BK, full + stage * 8);
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
      }
      // The last block clears the counters for the next launch.
      if (atom_add_acq_rel_gpu(leaving, 1) == gridDim.x - 1) {
        for (int i = 0; i < ceil_div(rows_32, GROUP_ROWS) * schedule.k_tiles; ++i) ready[i] = 0;
        *leaving = 0;
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  const auto [warp_row, warp_col] = row_major(warp - Tile::PRODUCERS / 32, BN / WN);
  const int row = warp_row * WM + lane_row(lane) * 4,
            col = warp_col * WN + lane_col(lane) * 4;     // my first in sA and sB
  uint32_t a_addr = sA + row * 4, b_addr = sB + col * 4;  // in the first k step of a unit

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

  Segment segment = segment_of(schedule, blockIdx.x, 0);
#pragma unroll 1
  for (int i_segment = 0; segment.k_tiles > 0; ++i_segment) {
    float acc[TM][TN] = {};
    const bool last = segment_of(schedule, blockIdx.x, i_segment + 1).k_tiles == 0;

    // [main-loop]
    // 3. main loop: A -transposers-> AT -TMA-> sA     B -TMA-> sB     sA, sB -loads-> rA, rB -> acc
#pragma unroll 1
    for (int k_tiles_left = segment.k_tiles; k_tiles_left > 0; --k_tiles_left) {
      // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
      const int this_stage = stage;
      if (k_tiles_left > 1 || !last)
        if (++stage == STAGES) stage = 0, parity ^= 1;
      const int next_tile = ((stage - this_stage) * BK - (BK - UNIT)) * BM * 4;  // bytes of sA from the last unit on
      mbarrier_wait_parity(full + stage * 8, parity);
#pragma unroll 1
      for (int k_left = BK; k_left > 0; k_left -= UNIT) {
        const int step = k_left > UNIT ? UNIT * BM * 4 : next_tile;  // bytes of sA to the next unit
#pragma unroll
        for (int k = 0; k < UNIT; ++k) {
          if (k == UNIT - 1) a_addr += step, b_addr += step * (BN / BM);
          load_fragments((k + 1) % 2, (k + 1) % UNIT);
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
      __syncwarp();
      if (lane == 0) mbarrier_arrive(empty + this_stage * 8);
    }
    // [/main-loop]

    // [fix-up]
    // Part of a tile: its last block adds what the others have left. Every thread reads what its like has written.
    const int consumer = threadIdx.x - Tile::PRODUCERS;
    const auto sums_of = [&](int block) { return partial_sums + static_cast<size_t>(block) * (BM * BN) + consumer; };
    const auto flag_of = [&](int block) { return flags + block * (Tile::CONSUMERS / 32) + consumer / 32; };
    const Segment done = segment;
    segment = segment_of(schedule, blockIdx.x, i_segment + 1);
    if (done.first + done.k_tiles < schedule.k_tiles) {
      float* const sums = sums_of(blockIdx.x);  // CONSUMERS apart; a block leaves one part at most
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[(i * TN + j) * Tile::CONSUMERS] = acc[i][j];
      __syncwarp();  // all lanes have written
      if (lane == 0) st_release_gpu(flag_of(blockIdx.x), 1);
      continue;
    }
    if (done.first > 0) {
#pragma unroll 1
      for (int block = first_block_of(schedule, done.c_tile); block < blockIdx.x; ++block) {
        while (__any_sync(~0U, ld_acquire_gpu(flag_of(block)) != 1)) {
        }
        const float* const sums = sums_of(block);
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
          for (int j = 0; j < TN; ++j) acc[i][j] += sums[(i * TN + j) * Tile::CONSUMERS];
        __syncwarp();                        // all lanes have seen the flag and read
        if (lane == 0) *flag_of(block) = 0;  // for the next launch
      }
    }
    // [/fix-up]

    // [epilogue]
    // 4. epilogue
    const auto [tile_row, tile_col] = raster(done.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    float* const c = C + static_cast<size_t>(tile_row * BM + row) * ldc + tile_col * BN + col;  // my first element
    const int rows = M - tile_row * BM - row, columns = N - tile_col * BN - col;                // from there on
    const auto scaled = [&](int i, int j) {
      return float4{alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]};
    };
    if (beta == 0.0F && (tile_row + 1) * BM <= M && (tile_col + 1) * BN <= N) {  // few instructions for most tiles
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
          *reinterpret_cast<float4*>(c + static_cast<size_t>(spread(0, i, LANE_ROWS)) * ldc + spread(0, j, LANE_COLS)) =
              scaled(i, j);
      continue;
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      float* const c_row = c + static_cast<size_t>(spread(0, i, LANE_ROWS)) * ldc;
      if (spread(0, i, LANE_ROWS) >= rows) continue;
      float4 old[TN / 4] = {};
#pragma unroll
      for (int j = 0; j < TN; j += 4)
        if (beta != 0.0F && spread(0, j, LANE_COLS) < columns)  // beta = 0 must not read C: it may hold NaN
          old[j / 4] = *reinterpret_cast<const float4*>(c_row + spread(0, j, LANE_COLS));
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
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

/// Describes `rows` rows of `columns` floats, `ld` apart, to the copy engine, in boxes of `box_rows` x `box_columns`.
CUtensorMap tensor_map(const void* matrix, int rows, int columns, int ld, int box_rows, int box_columns) {
  static const auto encode = [] {  // of the driver, which programs of the runtime do not link
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) cuda_check(cudaErrorSymbolNotFound);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {ld * cuuint64_t{4}};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)}, every[] = {1, 1};
  CUtensorMap map;
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<void*>(matrix), size, row_bytes,
                                 box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) cuda_check(cudaErrorInvalidValue);
  return map;
}

/// Clocks of an H200. Slices of K, which a second kernel would add, are out of the question.
constexpr SliceCosts costs = {.start = 4000, .k_tile = 9200, .unit = 3000, .add = 1e30, .add_slice = 0, .add_byte = 0};

constexpr ShareCosts share_costs = {.k_tile = 9200, .fix_up = 8000, .other = 4000};

constexpr TileShape shape = {Tile::BM, Tile::BN, Tile::BK};

SchedulePlan plan(const Problem& p) { return best_schedule(costs, share_costs, tiled(p, shape, device_limits().sms)); }

/// Floats from row to row of A transposed: rows begin at multiples of 16 bytes.
int at_ld(const Problem& p) { return ceil_div(p.m, 4) * 4; }

/// Floats of A transposed. They are the workspace's first ones.
size_t at_size(const Problem& p) { return static_cast<size_t>(p.k) * at_ld(p); }

/// Flags by which blocks wait for sums that others leave. Those for parts of A transposed come after them.
int share_flags(const Schedule& s) { return s.shared_tiles > 0 ? s.blocks * Tile::CONSUMERS / 32 : 0; }

void launch(const Problem& p) {
  const Schedule schedule = plan(p).schedule;
  float* const at = static_cast<float*>(p.workspace);
  unsigned* const leaving = p.flags + share_flags(schedule);
  cuda_check(cudaFuncSetAttribute(sgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  cudaLaunchAttribute resident{};  // all blocks at once: they wait for one another
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES;
  config.stream = p.stream, config.attrs = &resident, config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, sgemm, p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, at, at_ld(p),
                                tensor_map(at, p.k, p.m, at_ld(p), Tile::BK, Tile::BM),
                                tensor_map(p.b, p.k, p.n, p.ldb, Tile::BK, Tile::BN), p.beta, p.C<float>(), p.ldc,
                                schedule, at + at_size(p), p.flags, leaving + 1, leaving));
}

const Registration registration{{
    .number = "27",
    .name = "sgemm_hopper",
    .idea = "FP32 fed by the copy engine: warps that only multiply, and shares of the last wave",
    .predecessor = "08",
    .types = {Type::f32},
    .arch = "sm_90a",
    .unit = Unit::cuda_cores,
    .layout_b = LayoutB::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          const Schedule s = plan(p).schedule;
          const int leave = s.shared_tiles > 0 ? s.blocks : 0;  // blocks that may leave a part
          const int groups = ceil_div(ceil_div(p.m, Tile::BM), Tile::GROUP_SIZE_M);
          return Resources{(const void*)sgemm,
                           Tile::THREADS,
                           Tile::SMEM_BYTES,
                           shape,
                           4 * (at_size(p) + static_cast<size_t>(leave) * Tile::BM * Tile::BN),
                           share_flags(s) + 1 + groups * s.k_tiles};
        },
    .launch = launch,
    .explain = [](const Problem& p) { return explain_schedule(plan(p)); },
}};

}  // namespace
