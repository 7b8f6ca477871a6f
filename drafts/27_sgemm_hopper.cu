// 27_sgemm_hopper · the copy engine feeds the CUDA cores: the warps that multiply do nothing else
//
// Idea              The FMA units are bound by issue slots and by the register file's ports, so a warp that multiplies should execute
//                   FFMAs and shared loads only. The copy engine brings the tiles, one warpgroup transposes A's in shared
//                   memory, and barriers are rare: one wait per 4096 FMAs of a thread. What is left of the last wave is shared
//                   out by k tiles (18).
// Changed from 08   A and B by the copy engine (21) into a ring; four producer warps transpose A, shared to shared, 4 x 4; eight
//                   consumer warps with 08's tiles; persistent blocks, which take whole tiles first and then shares (18f);
//                   a lane map by which no shared load merges
// Expect            1.13 of cuBLAS at 4096 x 4096 x 4096: 93 % of the consumers' instructions are FMAs, 3.88 waves take the time of
//                   3.9
// Limiter now       issue slots, and the register file's two banks
// New instructions  setmaxnreg and the copy engine beside FFMA; mbarrier.try_wait with a time to sleep
// Limits            sm_90a; f32; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 27 512 512 512 --with drafts
// State             right on the simulator; never timed. drafts/sweep_27.py has its variants; the chapter is still to come
#include <cuda.h>

#include "common/layout.h"
#include "common/ptx/barrier.h"
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
  static constexpr int BOX_K = 16;         // elements along k per box of A: 64 bytes, the width of the swizzle
  static constexpr int BOXES = 4;          // of A in shared memory, not transposed yet
  static constexpr int GROUP_SIZE_M = 16;  // rows of tiles per group of the raster: 132 blocks are about 16 x 8
  static constexpr int PRODUCERS = 128;    // threads that copy and transpose
  static constexpr int CONSUMERS = BM / TM * BN / TN;  // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  static constexpr int PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224;
  static constexpr int LANE_ROWS = WM / TM;  // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;  // lanes across it
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int BOX_BYTES = BM * BOX_K * 4;
  static constexpr int SMEM_BYTES = A_BYTES + B_BYTES + BOXES * BOX_BYTES + (2 * STAGES + BOXES) * 8;
  static_assert(BM == PRODUCERS && BOX_K == 16, "32 rows of a box per producer warp, 4 x 4 elements per thread");
  static_assert(LANE_ROWS == 4 && LANE_COLS == 8, "see lane_row()");
  static_assert(BK % BOX_K == 0 && BK % UNIT == 0, "whole boxes and units");
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

/// Row of the tile of C whose elements of A lie in column `i` of sA. A producer reads rows 8 apart, so that eight lanes read
/// eight neighbouring rows, and writes them as neighbours.
__host__ __device__ constexpr int row_of_column(int i) { return i / 32 * 32 + i % 4 * 8 + i / 4 % 8; }

/// Byte of a box of A, with the copy engine's 64-byte swizzle, at which the four elements from 4 * `chunk` on of row `row` lie.
__host__ __device__ constexpr int swizzle_64b(int row, int chunk) { return row * 64 + (chunk ^ row / 2 % 4) * 16; }

/// Four floats in shared memory, at a multiple of 16 bytes.
__device__ __forceinline__ void load4_shared(float* r, uint32_t smem) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
               : "r"(smem)
               : "memory");
}
__device__ __forceinline__ void store4_shared(uint32_t smem, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

/// partial_sums and flags: of the blocks that leave a part of a tile.
__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, float alpha, const __grid_constant__ CUtensorMap map_a,
          const __grid_constant__ CUtensorMap map_b, float beta, float* __restrict__ C, int ldc,
          const __grid_constant__ Schedule schedule, float* partial_sums, unsigned* flags) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNIT = Tile::UNIT;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k; boxes of A as they come
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES, boxes = sB + Tile::B_BYTES;
  // mbarriers of each stage: its k tile is there; it has been read. Of each box: it has landed
  const uint32_t full = boxes + Tile::BOXES * Tile::BOX_BYTES, empty = full + STAGES * 8, landed = empty + STAGES * 8;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, Tile::PRODUCERS / 32 + 1);  // the transposing warps, and who asks for B
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);
    }
    for (int box = 0; box < Tile::BOXES; ++box) mbarrier_init(landed + box * 8, 1);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();

  int stage = 0;        // of the next k tile
  uint32_t parity = 0;  // of its phase

  // [producer]
  if (warp < Tile::PRODUCERS / 32) {
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    constexpr int BOXES = Tile::BOXES, BOX_K = Tile::BOX_K, BOX_BYTES = Tile::BOX_BYTES;
    // Copies of A run BOXES boxes ahead of the transposition. Thread 0 asks for them.
    int ahead_segment = 0, ahead_k, ahead_k_end, ahead_row;
    const auto begin_segment = [&] {
      const Segment segment = segment_of(schedule, blockIdx.x, ahead_segment++);
      ahead_k = segment.first * BK, ahead_k_end = ahead_k + segment.k_tiles * BK;
      ahead_row = raster(segment.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M).row * BM;
    };
    const auto copy_a = [&](int box) {
      if (ahead_k == ahead_k_end) return;  // there are no more segments
      mbarrier_arrive_expect_tx(landed + box * 8, BOX_BYTES);
      cp_async_bulk_tensor_2d(boxes + box * BOX_BYTES, map_a, ahead_k, ahead_row, landed + box * 8);
      if ((ahead_k += BOX_K) == ahead_k_end) begin_segment();
    };
    if (threadIdx.x == 0) {
      begin_segment();
      for (int box = 0; box < BOXES; ++box) copy_a(box);
    }
    // My 4 x 4 elements of a box: rows row + 8 * i, the four k from 4 * chunk on. They become columns `col` to `col` + 3 of sA.
    const int chunk = lane / 8, row = warp * 32 + lane % 8, col = warp * 32 + lane % 8 * 4;
    const uint32_t read_addr = boxes + swizzle_64b(row, chunk);  // 8 rows further on the swizzle is the same
    const uint32_t write_addr = sA + (chunk * 4 * BM + col) * 4;
    int box = 0;
    uint32_t box_parity = 0;
    Segment segment;
#pragma unroll 1
    for (int i_segment = 0; (segment = segment_of(schedule, blockIdx.x, i_segment)).k_tiles > 0; ++i_segment) {
      const int b_col = raster(segment.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M).col * BN;
#pragma unroll 1
      for (int k_tile = segment.first; k_tile < segment.first + segment.k_tiles; ++k_tile) {
#pragma unroll 1
        for (int k = 0; k < BK; k += BOX_K) {
          float rA[4][4];  // [row][k]
          mbarrier_sleep_parity(landed + box * 8, box_parity);
#pragma unroll
          for (int i = 0; i < 4; ++i) load4_shared(rA[i], read_addr + box * BOX_BYTES + i * 8 * 64);
          if (k == 0) {
            mbarrier_sleep_parity(empty + stage * 8, parity ^ 1);  // of the phase before; at first there is none
            if (threadIdx.x == 0) {
              mbarrier_arrive_expect_tx(full + stage * 8, BK * BN * 4);
              cp_async_bulk_tensor_2d(sB + stage * BK * BN * 4, map_b, b_col, k_tile * BK, full + stage * 8);
            }
          }
#pragma unroll
          for (int j = 0; j < 4; ++j)
            store4_shared(write_addr + (stage * BK + k + j) * BM * 4, rA[0][j], rA[1][j], rA[2][j], rA[3][j]);
          bar_sync(1, Tile::PRODUCERS);  // all have read the box
          if (threadIdx.x == 0) copy_a(box);
          if (++box == BOXES) box = 0, box_parity ^= 1;
        }
        __syncwarp();
        if (lane == 0) mbarrier_arrive(full + stage * 8);
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  const auto [warp_row, warp_col] = row_major(warp - Tile::PRODUCERS / 32, BN / WN);
  const int row = warp_row * WM + lane_row(lane) * 4,
            col = warp_col * WN + lane_col(lane) * 4;  // my first in sA and sB
  const uint32_t a_addr = sA + row * 4, b_addr = sB + col * 4;

  // [fragments]
  float rA[2][TM], rB[2][TN];  // [k % 2][row or column]: fragments of this k step and of the next
  const auto load_fragments = [&](int buffer, uint32_t a_addr, uint32_t b_addr) {
#pragma unroll
    for (int i = 0; i < TM; i += 4) load4_shared(&rA[buffer][i], a_addr + spread(0, i, LANE_ROWS) * 4);
#pragma unroll
    for (int j = 0; j < TN; j += 4) load4_shared(&rB[buffer][j], b_addr + spread(0, j, LANE_COLS) * 4);
  };
  // [/fragments]
  mbarrier_wait_parity(full, 0);
  load_fragments(0, a_addr, b_addr);
  int ring_k = 0;  // row of sA and sB

  Segment segment = segment_of(schedule, blockIdx.x, 0);
#pragma unroll 1
  for (int i_segment = 0; segment.k_tiles > 0; ++i_segment) {
    float acc[TM][TN] = {};
    const bool last = segment_of(schedule, blockIdx.x, i_segment + 1).k_tiles == 0;

    // [main-loop]
    // 3. main loop: gmem -TMA-> box -producers-> sA     gmem -TMA-> sB     sA, sB -loads-> rA, rB -> acc
#pragma unroll 1
    for (int k_tiles_left = segment.k_tiles; k_tiles_left > 0; --k_tiles_left) {
      // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
      const int this_stage = stage;
      if (k_tiles_left > 1 || !last)
        if (++stage == STAGES) stage = 0, parity ^= 1;
      mbarrier_wait_parity(full + stage * 8, parity);
#pragma unroll 1
      for (int k_left = BK; k_left > 0; k_left -= UNIT) {
        const int next_k = k_left > UNIT ? ring_k + UNIT : stage * BK;
#pragma unroll
        for (int k = 0; k < UNIT; ++k) {
          const int load_k = k < UNIT - 1 ? ring_k + k + 1 : next_k;
          load_fragments((k + 1) % 2, a_addr + load_k * (BM * 4), b_addr + load_k * (BN * 4));
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
        ring_k = next_k;
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

    // 4. epilogue
    const auto [tile_row, tile_col] = raster(done.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const int m = tile_row * BM + row_of_column(row + spread(0, i, LANE_ROWS));
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
        const int n = tile_col * BN + col + spread(0, j, LANE_COLS);
        float* gC = C + static_cast<size_t>(m) * ldc + n;
        if (n + 4 <= N) {
          float4 d = {alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]};
          if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
            const float4 c = *reinterpret_cast<const float4*>(gC);
            d = {d.x + beta * c.x, d.y + beta * c.y, d.z + beta * c.z, d.w + beta * c.w};
          }
          *reinterpret_cast<float4*>(gC) = d;
        } else {  // the padding of C must stay as it is
#pragma unroll
          for (int e = 0; e < 3; ++e)
            if (n + e < N) gC[e] = beta == 0.0F ? alpha * acc[i][j + e] : alpha * acc[i][j + e] + beta * gC[e];
        }
      }
    }
  }
}

/// Describes `rows` rows of `columns` floats, `ld` apart, to the copy engine, in boxes of `box_rows` x `box_columns`.
CUtensorMap tensor_map(const void* matrix, int rows, int columns, int ld, int box_rows, int box_columns,
                       CUtensorMapSwizzle swizzle) {
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
                                 box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) cuda_check(cudaErrorInvalidValue);
  return map;
}

/// Clocks of an H200. Slices of K, which a second kernel would add, are out of the question.
constexpr SliceCosts costs = {.start = 4000, .k_tile = 9200, .unit = 3000, .add = 1e30, .add_slice = 0, .add_byte = 0};

constexpr ShareCosts share_costs = {.k_tile = 9200, .fix_up = 8000, .other = 4000};

constexpr TileShape shape = {Tile::BM, Tile::BN, Tile::BK};

SchedulePlan plan(const Problem& p) { return best_schedule(costs, share_costs, tiled(p, shape, device_limits().sms)); }

void launch(const Problem& p) {
  const Schedule schedule = plan(p).schedule;
  cuda_check(cudaFuncSetAttribute(sgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES;
  config.stream = p.stream, config.attrs = &resident, config.numAttrs = schedule.shared_tiles > 0;
  cuda_check(cudaLaunchKernelEx(&config, sgemm, p.m, p.n, p.alpha,
                                tensor_map(p.a, p.m, p.k, p.lda, Tile::BM, Tile::BOX_K, CU_TENSOR_MAP_SWIZZLE_64B),
                                tensor_map(p.b, p.k, p.n, p.ldb, Tile::BK, Tile::BN, CU_TENSOR_MAP_SWIZZLE_NONE),
                                p.beta, p.C<float>(), p.ldc, schedule, static_cast<float*>(p.workspace), p.flags));
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
          return Resources{(const void*)sgemm,
                           Tile::THREADS,
                           Tile::SMEM_BYTES,
                           shape,
                           leave * size_t{4} * Tile::BM * Tile::BN,
                           leave * Tile::CONSUMERS / 32};
        },
    .launch = launch,
    .explain = [](const Problem& p) { return explain_schedule(plan(p)); },
}};

}  // namespace
