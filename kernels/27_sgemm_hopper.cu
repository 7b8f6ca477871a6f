// 27_sgemm_hopper · the copy engine feeds the CUDA cores: the warps that multiply do nothing else
//
// Idea              The FMA units are bound by issue slots and by the register file's ports, so a warp that multiplies should execute
//                   FFMAs and shared loads only. The copy engine brings the tiles, and barriers are rare: one wait per 4096 FMAs of a
//                   thread. A thread needs a column of A, the engine copies rows: idle warps transpose A into the workspace,
//                   ahead of the copies. What is left of the last wave is shared out by k tiles (18f). Small products have smaller
//                   tiles, chosen by predicted clocks (26).
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

#include <string>

#include "common/layout.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/flag.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"
#include "common/split_k.h"
#include "common/stream_k.h"

using namespace ladder;

namespace {

/// A configuration: the tile of a block of eight warps that multiply. If it is too small for all of them, they divide the k tile, too.
template <int BM_, int BN_, int BK_, int WM_, int SLICES_, int STAGES_, bool AHEAD_>
struct Tile {
  static constexpr int BM = BM_;          // rows of C per block
  static constexpr int BN = BN_;          // columns of C per block
  static constexpr int BK = BK_;          // elements along k per tile: between two waits of a consumer
  static constexpr int WM = WM_;          // rows of C per consumer warp
  static constexpr int WN = 64;           // columns of C per consumer warp
  static constexpr int SLICES = SLICES_;  // of a k tile: each has warps of its own
  static constexpr int STAGES = STAGES_;  // k tiles in shared memory
  static constexpr bool AHEAD = AHEAD_;   // A is transposed once, into the workspace; or by each block, into its ring

  static constexpr int TM = WM / 4;            // rows of C per thread
  static constexpr int TN = WN / 8;            // columns of C per thread
  static constexpr int K_STEPS = BK / SLICES;  // of a slice

  static constexpr int UNIT = 8;           // k steps per basic block: longer code does not fit the instruction cache
  static constexpr int GROUP_SIZE_M = 16;  // rows of tiles per group of the raster: 132 blocks are about 16 x 8
  static constexpr int PRODUCERS = 128;    // threads: a warp that asks for copies, and those that transpose A
  static constexpr int TRANSPOSERS = PRODUCERS / 32 - 1;        // warps
  static constexpr int CONSUMERS = BM / TM * BN / TN * SLICES;  // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  static constexpr int PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216;
  static constexpr int LANE_ROWS = WM / TM;              // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;              // lanes across it
  static constexpr int BLOCKS_32 = BM * BK / 1024;       // blocks of 32 x 32 elements in a tile of A
  static constexpr int PARTS = SLICES < 4 ? SLICES : 4;  // of four rows of a thread: a slice adds one part
  static constexpr int RM = TM / PARTS;                  // rows of C per thread, once the slices are added
  static constexpr int RN = SLICES == 8 ? 4 : TN;        // columns, likewise
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int SUMS_BYTES = SLICES > 1 ? CONSUMERS * 4 * TN * 4 : 0;  // four rows of each thread's results
  static constexpr int SMEM_BYTES = A_BYTES + B_BYTES + SUMS_BYTES + 2 * STAGES * 8;
  static_assert(CONSUMERS == 256 && SMEM_BYTES <= 232448);
  static_assert(BK % 32 == 0 && K_STEPS % UNIT == 0, "blocks of 32 x 32 elements are transposed; whole units");
  static_assert(TRANSPOSERS <= STAGES * BLOCKS_32,
                "no warp waits for a phase after the next: its parity would be that of the last");
  static_assert(!AHEAD || (BK == 32 && SLICES == 1), "AT is counted by 32 x 32 elements");
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

__device__ __forceinline__ void store4_shared(uint32_t smem, float4 x) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w)
               : "memory");
}

/// Where Tile::AHEAD, AT[K][at_ld] becomes A transposed; ready[group of the raster's rows][k tile] counts the blocks of 32 x 32
/// elements that AT has got, `leaving` the blocks that no longer wait for it. partial_sums and flags: of the blocks that leave a part
/// of a tile.
template <class Tile>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, float* AT, int at_ld,
          const __grid_constant__ CUtensorMap map_at, const __grid_constant__ CUtensorMap map_b, float beta,
          float* __restrict__ C, int ldc, const __grid_constant__ Schedule schedule, float* partial_sums,
          unsigned* flags, unsigned* ready, unsigned* leaving) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNIT = Tile::UNIT;
  constexpr int SLICES = Tile::SLICES, K_STEPS = Tile::K_STEPS, RM = Tile::RM, RN = Tile::RN;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES;
  const uint32_t sSums = sB + Tile::B_BYTES, full = sSums + Tile::SUMS_BYTES,
                 empty = full + STAGES * 8;  // mbarriers: a stage is there; it has been read
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, Tile::AHEAD ? 1 : 1 + 32 * Tile::BLOCKS_32);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS);
    }
    fence_mbarrier_init();
    if constexpr (Tile::AHEAD) prefetch_tensormap(map_at);
    prefetch_tensormap(map_b);
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
  // [/transpose]
  // [own-tiles]
  // Or a block transposes its own tiles: block number block_32 of the block's 32 x 32 elements, in the order of the ring. The loads
  // are on their way while this warp waits for the stage. Lanes next to each other store elements next to each other.
  const auto transpose_tiles = [&](int block_32) {
    int stage = 0;
    uint32_t parity = 0;
    Segment segment;
#pragma unroll 1
    for (int i_segment = 0; (segment = segment_of(schedule, blockIdx.x, i_segment)).k_tiles > 0; ++i_segment) {
      const int tile_m = raster(segment.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M).row * BM;
#pragma unroll 1
      for (int k_tile = segment.first; k_tile < segment.first + segment.k_tiles; ++k_tile) {
#pragma unroll 1
        for (; block_32 < Tile::BLOCKS_32; block_32 += Tile::TRANSPOSERS) {
          const auto [k_32, row_32] = row_major(block_32, BM / 32);
          const int m = row_32 * 32 + lane % 8 * 4,
                    k = k_32 * 32 + lane / 8 * 4;                          // in the tile: my first, two times 4 x 4
          const int rows = M - tile_m - m, columns = K - k_tile * BK - k;  // from there on
          const float* from = A + static_cast<size_t>(tile_m + m) * lda + k_tile * BK + k;
          float4 a[2][4] = {};  // [half of the columns][row]
#pragma unroll
          for (int i = 0; i < 4; ++i, from += lda)
#pragma unroll
            for (int half = 0; half < 2; ++half)
              if (i < rows && half * 16 < columns) a[half][i] = *reinterpret_cast<const float4*>(from + half * 16);
          mbarrier_sleep_parity(empty + stage * 8, parity ^ 1);  // of the phase before; at first there is none
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float4(&r)[4] = a[half], zeros = {};
            const uint32_t to = sA + ((stage * BK + k + half * 16) * BM + m) * 4;
            const int left = columns - half * 16;  // past K there may be anything: NaN, too
            store4_shared(to, left > 0 ? float4{r[0].x, r[1].x, r[2].x, r[3].x} : zeros);
            store4_shared(to + BM * 4, left > 1 ? float4{r[0].y, r[1].y, r[2].y, r[3].y} : zeros);
            store4_shared(to + 2 * BM * 4, left > 2 ? float4{r[0].z, r[1].z, r[2].z, r[3].z} : zeros);
            store4_shared(to + 3 * BM * 4, left > 3 ? float4{r[0].w, r[1].w, r[2].w, r[3].w} : zeros);
          }
          mbarrier_arrive(full + stage * 8);
        }
        block_32 -= Tile::BLOCKS_32;
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
    }
  };
  // [/own-tiles]
  if constexpr (Tile::AHEAD) {
    const int first_32 = (warp - 1) * gridDim.x + blockIdx.x;  // of those that multiply, too: they could only wait
    if (warp > 0 && first_32 < blocks_32) transpose(first_32);
    if (warp > 0 && warp <= Tile::TRANSPOSERS) {
      setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
#pragma unroll 1
      for (int i = first_32 + (Tile::THREADS / 32 - 1) * gridDim.x; i < blocks_32; i += Tile::TRANSPOSERS * gridDim.x)
        transpose(i);
      return;
    }
  } else {
    if (warp > 0 && warp <= Tile::TRANSPOSERS) {
      setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
      transpose_tiles(warp - 1);
      return;
    }
  }
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
          mbarrier_arrive_expect_tx(full + stage * 8, (Tile::AHEAD ? BK * (BM + BN) : BK * BN) * 4);
          cp_async_bulk_tensor_2d(sB + stage * BK * BN * 4, map_b, tile_col * BN, k_tile * BK, full + stage * 8);
          if constexpr (Tile::AHEAD) {
            while (ld_acquire_gpu(ready + group * schedule.k_tiles + k_tile) != group_rows) {
            }
            fence_proxy_async_global();  // other threads wrote AT, the engine reads it
            cp_async_bulk_tensor_2d(sA + stage * BK * BM * 4, map_at, tile_row * BM, k_tile * BK, full + stage * 8);
          }
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
      }
      // The last block clears the counters for the next launch.
      if constexpr (Tile::AHEAD)
        if (atom_add_acq_rel_gpu(leaving, 1) == gridDim.x - 1) {
          for (int i = 0; i < ceil_div(rows_32, GROUP_ROWS) * schedule.k_tiles; ++i) ready[i] = 0;
          *leaving = 0;
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
  uint32_t a_addr = sA + (slice * K_STEPS * BM + row) * 4;  // in the first k step of a unit
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
      // Bytes from the last unit to the next tile, in the array with the shorter rows.
      constexpr int LESS = BM < BN ? BM : BN;
      const int next_tile = ((stage - this_stage) * BK - (K_STEPS - UNIT)) * LESS * 4;
      mbarrier_wait_parity(full + stage * 8, parity);
#pragma unroll 1
      for (int k_left = K_STEPS; k_left > 0; k_left -= UNIT) {
        const int step = k_left > UNIT ? UNIT * LESS * 4 : next_tile;  // likewise, to the next unit
#pragma unroll
        for (int k = 0; k < UNIT; ++k) {
          if (k == UNIT - 1) a_addr += step * (BM / LESS), b_addr += step * (BN / LESS);
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
      mbarrier_arrive(empty + this_stage * 8);
    }
    // [/main-loop]

    // [slices]
    // The slices add their results through shared memory, four rows of each thread at a time. Each slice adds a part of them and goes
    // on with that: acc[RM][RN].
    const int consumer = threadIdx.x - Tile::PRODUCERS;
    uint32_t thread = threadIdx.x;
    if constexpr (SLICES > 1) keep_in_register(thread);  // what follows is not to be computed before the main loop
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
    // Part of a tile: its last block adds what the others have left. Every thread reads what its like has written.
    const auto sums_of = [&](int block) { return partial_sums + static_cast<size_t>(block) * (BM * BN) + consumer; };
    const auto flag_of = [&](int block) { return flags + block * (Tile::CONSUMERS / 32) + consumer / 32; };
    const Segment done = segment;
    segment = segment_of(schedule, blockIdx.x, i_segment + 1);
    if (done.first + done.k_tiles < schedule.k_tiles) {
      float* const sums = sums_of(blockIdx.x);  // CONSUMERS apart; a block leaves one part at most
#pragma unroll
      for (int i = 0; i < RM; ++i)
#pragma unroll
        for (int j = 0; j < RN; ++j) sums[(i * RN + j) * Tile::CONSUMERS] = acc[i][j];
      __syncwarp();  // all lanes have written
      if (lane == 0) st_release_gpu(flag_of(blockIdx.x), 1);
      continue;
    }
    if (done.first > 0) {
#pragma unroll 1
      for (int first = first_block_of(schedule, done.c_tile); first < blockIdx.x; first += 32) {
        const int others = min(32, blockIdx.x - first);  // each lane waits for one of them
        while (__any_sync(~0U, lane < others && ld_acquire_gpu(flag_of(first + lane)) != 1)) {
        }
        __syncwarp();  // what one lane has acquired, all may read
#pragma unroll SLICES
        for (int block = first; block < first + others; ++block) {
          const float* const sums = sums_of(block);
#pragma unroll
          for (int i = 0; i < RM; ++i)
#pragma unroll
            for (int j = 0; j < RN; ++j) acc[i][j] += sums[(i * RN + j) * Tile::CONSUMERS];
        }
        __syncwarp();                                   // all lanes have read
        if (lane < others) *flag_of(first + lane) = 0;  // for the next launch
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

/// What the parts of a launch cost, in clocks of an H200's SM, as SliceCosts and ShareCosts have them. Fitted to a sweep.
struct Clocks {
  double start, k_tile, unit, fix_up, other;
};

/// A Tile, for the host.
struct Configuration {
  TileShape shape;
  const void* kernel;
  int threads, smem_bytes, group_rows;
  bool ahead;
  Clocks clocks;
  void (*launch)(const Problem&, const Schedule&);
};

template <class Tile>
void launch_tile(const Problem& p, const Schedule& schedule);

template <class Tile>
Configuration configuration(const Clocks& clocks) {
  return {{Tile::BM, Tile::BN, Tile::BK},
          (const void*)sgemm<Tile>,
          Tile::THREADS,
          Tile::SMEM_BYTES,
          Tile::BM * Tile::GROUP_SIZE_M,
          Tile::AHEAD,
          clocks,
          launch_tile<Tile>};
}

// [configurations]
const Configuration configurations[] = {
    configuration<Tile<128, 256, 32, 64, 1, 4, true>>({21900, 9140, 4100, 4400, 2300}),
    configuration<Tile<128, 256, 32, 64, 1, 4, false>>({5700, 9570, 6800, 15700, 2400}),
    configuration<Tile<64, 256, 32, 64, 2, 4, false>>({0, 5210, 4100, 24200, 500}),
    configuration<Tile<32, 256, 32, 32, 2, 5, false>>({12600, 2800, 1500, 7700, 200}),
    configuration<Tile<32, 128, 64, 32, 4, 4, false>>({12500, 3060, 2100, 5400, 0}),
    configuration<Tile<32, 64, 64, 32, 8, 8, false>>({12000, 1730, 2700, 6200, 0}),
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
  // Slices of K, which a second kernel would add, are out of the question.
  const SliceCosts costs = {c.clocks.start, c.clocks.k_tile, c.clocks.unit, 1e30, 0, 0};
  TiledProduct t = tiled(p, c.shape, sms);
  t.sms = min(sms, t.c_tiles * t.k_tiles);  // a share is a k tile at least
  SchedulePlan plan = best_schedule(costs, {c.clocks.k_tile, c.clocks.fix_up, c.clocks.other}, t);
  if (c.ahead) {  // an SM transposes 0.75 bytes of A per clock, but for a first block of 32 x 32 of each of 11 warps
    const double bytes = 4.0 * p.m * p.k / sms, clocks = max(bytes - 11 * 4096, 0.0) / 0.75;
    const bool last_k_tile_first = plan.schedule.shared_tiles > 0 && plan.schedule.whole_waves == 0;
    plan.clocks = last_k_tile_first ? plan.clocks + clocks : max(plan.clocks, clocks);
  }
  return {&c, plan};
}
// [/choice]

/// That of the least clocks.
Choice choose(const Problem& p) {
  Choice best = choice(configurations[0], p);
  for (const Configuration& c : configurations)
    if (const Choice other = choice(c, p); other.plan.clocks < best.plan.clocks) best = other;
  return best;
}

std::string explain(const Problem& p) {
  const Configuration* const chosen = choose(p).configuration;
  std::string text;
  for (const Configuration& c : configurations) {
    const Choice candidate = choice(c, p);
    text += std::string(&c == chosen ? "* " : "  ") + std::to_string(c.shape.m) + " x " + std::to_string(c.shape.n) +
            (c.ahead ? ", A ahead, " : ", ") + explain_schedule(candidate.plan);
  }
  return text;
}

/// Floats from row to row of A transposed: rows begin at multiples of 16 bytes.
int at_ld(const Problem& p) { return ceil_div(p.m, 4) * 4; }

/// Floats of A transposed. They are the workspace's first ones.
size_t at_size(const Problem& p, bool ahead) { return ahead ? static_cast<size_t>(p.k) * at_ld(p) : 0; }

/// Flags by which blocks wait for sums that others leave, one per consumer warp. Those for parts of A transposed come after them.
int share_flags(const Schedule& s) { return s.shared_tiles > 0 ? s.blocks * 8 : 0; }

template <class Tile>
void launch_tile(const Problem& p, const Schedule& schedule) {
  float* const at = static_cast<float*>(p.workspace);
  unsigned* const leaving = p.flags + share_flags(schedule);
  cuda_check(cudaFuncSetAttribute(sgemm<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = Tile::AHEAD || schedule.shared_tiles > 0;
  cudaLaunchConfig_t config{};
  config.gridDim = schedule.blocks, config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES;
  config.stream = p.stream, config.attrs = &resident, config.numAttrs = 1;
  CUtensorMap map_at{};
  if constexpr (Tile::AHEAD) map_at = tensor_map(at, p.k, p.m, at_ld(p), Tile::BK, Tile::BM);
  cuda_check(cudaLaunchKernelEx(&config, sgemm<Tile>, p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, at, at_ld(p), map_at,
                                tensor_map(p.b, p.k, p.n, p.ldb, Tile::BK, Tile::BN), p.beta, p.C<float>(), p.ldc,
                                schedule, at + at_size(p, Tile::AHEAD), p.flags, leaving + 1, leaving));
}

const Registration registration{{
    .number = "27",
    .name = "sgemm_hopper",
    .idea = "FP32 fed by the copy engine: warps that only multiply, shares of the last wave, six tiles",
    .predecessor = "08",
    .types = {Type::f32},
    .arch = "sm_90a",
    .unit = Unit::cuda_cores,
    .layout_b = LayoutB::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          const auto [c, plan] = choose(p);
          const Schedule& s = plan.schedule;
          const int leave = s.shared_tiles > 0 ? s.blocks : 0;  // blocks that may leave a part
          return Resources{c->kernel,
                           c->threads,
                           c->smem_bytes,
                           c->shape,
                           4 * (at_size(p, c->ahead) + static_cast<size_t>(leave) * c->shape.m * c->shape.n),
                           share_flags(s) + (c->ahead ? 1 + ceil_div(p.m, c->group_rows) * s.k_tiles : 0)};
        },
    .launch =
        [](const Problem& p) {
          const auto [c, plan] = choose(p);
          c->launch(p, plan.schedule);
        },
    .explain = explain,
}};

}  // namespace
