// 26_fast · many tiles, and a cost model that picks one for each product
//
// Idea              Which tile is best depends on the product. One tile fills the last wave, another one hides its epilogue behind another
//                   tile's main loop; where tiles are few, several blocks compute one. One text is compiled for all of them. The
//                   host predicts from clocks what each would take, and launches the fastest.
// Changed from 25   a table of configurations; warpgroups that are cooperative or ping-pong; clusters of two by two; split-K in a
//                   cluster or over the grid; operands swapped; halves of tiles in the last wave; every other tile backwards along
//                   k; stmatrix
// Expect            1.06 times 25 at 8192 cubed, where epilogues hide; 1.4 times 25 at 3072 cubed, where 25's last wave is nearly
//                   empty
// Limiter now       wgmma where tiles are many; else the launch, the L2 cache and the fill of shared memory
// New instructions  stmatrix; wgmma of other widths; ld.shared::cluster; atom.acq_rel
// Limits            as 21
// Run               ./run_all.sh run 26 4096 4096 4096 --type bf16 --out same
// Read              docs/26_fast.md
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "common/hopper/descriptor.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/per_device.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/semaphore.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/ptx/stmatrix.h"
#include "common/ptx/wgmma.h"
#include "common/ptx/wgmma_n.h"
#include "common/rung.h"

using namespace ladder;

namespace {

/// How the two consumer warpgroups of a block cooperate, in the words of CUTLASS's kernel schedules.
enum Warpgroups {
  COOPERATIVE,  ///< on one tile: one computes its upper half, one its lower
  PING_PONG,    ///< on a tile each: one multiplies while the other stores
};

/// Sentinel for Configuration::splits: as many splits as can be co-resident, in blocks anywhere on the grid.
constexpr int SPLITS_OVER_GRID = 0;

/// What a configuration takes, in clocks with all SMs at work: fitted to a sweep by bench/fit_26.py.
struct Clocks {
  int fixed;   ///< from the first instruction to the last, for one tile, less its k tiles
  int k_tile;  ///< of each k tile
  int tile;    ///< of each tile but the last, over its k tiles
};

struct Configuration {
  const char* name;
  int wm, bn;             // results of a warpgroup: rows and columns
  Warpgroups warpgroups;  // whether a block's tile has as many rows or twice as many
  int cluster_m;          // blocks of a cluster, one above the other: they share tiles of B
  int cluster_n;          // and side by side: they share tiles of A
  int splits;             // of K: blocks of a cluster that compute one tile; or SPLITS_OVER_GRID
  int stages, buffers;    // in shared memory: k tiles; room for 64 x 128 bytes of results, per warpgroup
  bool swap_ab;           // operands swapped, C^T = B^T A^T: wm counts C's columns, and bn its rows
  bool halves;            // tiles of a last wave that is at most half full are cut in two
  Clocks clocks;
};

// [configurations]
// Names: rows x columns of a block's tile; c: cooperative, p: ping-pong, k: split-K in a cluster, g: split-K over the grid;
// q: clusters of two by two, s: no cluster, t: operands swapped (C transposed), h: halves.
constexpr Configuration CONFIGURATIONS[] = {
    {"c256x192h", 128, 192, COOPERATIVE, 2, 1, 1, 3, 3, false, true, {6034, 1628, 4953}},
    {"c256x160q", 128, 160, COOPERATIVE, 2, 2, 1, 4, 1, false, false, {7025, 1350, 4470}},
    {"c128x256", 64, 256, COOPERATIVE, 2, 1, 1, 4, 2, false, false, {7689, 1113, 2888}},
    {"p128x192", 128, 192, PING_PONG, 2, 1, 1, 4, 4, false, false, {7331, 830, 1863}},
    {"p128x192q", 128, 192, PING_PONG, 2, 2, 1, 4, 4, false, false, {8301, 789, 1773}},
    {"p128x176", 128, 176, PING_PONG, 2, 1, 1, 5, 2, false, false, {7483, 743, 2442}},
    {"p128x176t", 128, 176, PING_PONG, 2, 1, 1, 5, 2, true, false, {10553, 753, 2112}},
    {"p128x176q", 128, 176, PING_PONG, 2, 2, 1, 5, 2, false, false, {7595, 710, 2311}},
    {"p128x160t", 128, 160, PING_PONG, 2, 1, 1, 5, 2, true, false, {6858, 707, 1974}},
    {"p128x144", 128, 144, PING_PONG, 2, 1, 1, 6, 1, false, false, {6000, 628, 2178}},
    {"p128x128", 128, 128, PING_PONG, 2, 1, 1, 6, 2, false, false, {5148, 584, 1399}},
    {"p128x128s", 128, 128, PING_PONG, 1, 1, 1, 5, 4, false, false, {2870, 660, 728}},
    {"p128x112", 128, 112, PING_PONG, 2, 1, 1, 7, 1, false, false, {4910, 528, 1750}},
    {"p128x112t", 128, 112, PING_PONG, 2, 1, 1, 6, 2, true, false, {5669, 540, 1472}},
    {"p64x192", 64, 192, PING_PONG, 2, 1, 1, 6, 2, false, false, {4206, 530, 875}},
    {"p64x128", 64, 128, PING_PONG, 2, 1, 1, 8, 2, false, false, {3145, 401, 659}},
    {"p64x128s", 64, 128, PING_PONG, 1, 1, 1, 8, 2, false, false, {1773, 440, 546}},
    {"p64x64s", 64, 64, PING_PONG, 1, 1, 1, 12, 2, false, false, {1296, 327, 490}},
    {"p64x32s", 64, 32, PING_PONG, 1, 1, 1, 16, 2, false, false, {740, 302, 785}},
    {"p64x32ts", 64, 32, PING_PONG, 1, 1, 1, 16, 2, true, false, {824, 306, 234}},
    {"p64x16ts", 64, 16, PING_PONG, 1, 1, 1, 18, 2, true, false, {448, 321, 0}},
    {"k2_128x160t", 64, 160, COOPERATIVE, 1, 1, 2, 5, 1, true, false, {7928, 773, 8274}},
    {"k2_128x128", 64, 128, COOPERATIVE, 1, 1, 2, 6, 1, false, false, {7905, 652, 8887}},
    {"k2_128x64", 64, 64, COOPERATIVE, 1, 1, 2, 8, 1, false, false, {3711, 475, 5270}},
    {"k4_128x128", 64, 128, COOPERATIVE, 1, 1, 4, 6, 1, false, false, {7902, 681, 10240}},
    {"k4_128x64", 64, 64, COOPERATIVE, 1, 1, 4, 8, 1, false, false, {3827, 454, 6347}},
    {"k8_128x64", 64, 64, COOPERATIVE, 1, 1, 8, 8, 1, false, false, {3768, 489, 6981}},
    {"g128x128", 64, 128, COOPERATIVE, 2, 1, SPLITS_OVER_GRID, 6, 1, false, false, {17023, 601, 0}},
};
// [/configurations]
constexpr int CONFIGURATION_COUNT = std::size(CONFIGURATIONS);
constexpr int ONLY = TUNABLE(ONLY, -1);  // bench/sweep.py compiles one configuration at a time

/// The constants of configuration INDEX, under the names of 25.
template <int INDEX>
struct Tile {
  static constexpr Configuration CONFIGURATION = CONFIGURATIONS[INDEX];
  static constexpr int WM = CONFIGURATION.wm, BN = CONFIGURATION.bn;
  static constexpr bool PING_PONG = CONFIGURATION.warpgroups == ::PING_PONG;
  static constexpr int BM = PING_PONG ? WM : 2 * WM;  // rows of a block's tile
  static constexpr int CLUSTER_M = CONFIGURATION.cluster_m, CLUSTER_N = CONFIGURATION.cluster_n;
  static constexpr bool SPLITS_OVER_GRID = CONFIGURATION.splits == ::SPLITS_OVER_GRID;
  static constexpr int SPLITS = SPLITS_OVER_GRID ? 1 : CONFIGURATION.splits;  // of a cluster
  static constexpr int CLUSTER = CLUSTER_M * CLUSTER_N * SPLITS;              // blocks
  static constexpr bool SWAP_AB = CONFIGURATION.swap_ab, HALVES = CONFIGURATION.halves;
  static constexpr int STAGES = CONFIGURATION.stages, BUFFERS = CONFIGURATION.buffers;
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int CLUSTER_ROWS = CLUSTER_M * BM;
  static constexpr int GROUP_SIZE_M = ceil_div(2048, CLUSTER_ROWS);  // clusters per group of rows
  static constexpr int CONSUMERS = 256, THREADS = 128 + CONSUMERS;
  // Registers of a consumer thread, and of a producer thread: 176 accumulators or more per thread need as many as possible.
  static constexpr int CONSUMER_REGISTERS = WM * BN >= 128 * 176 ? 240 : 232,
                       PRODUCER_REGISTERS = WM * BN >= 128 * 176 ? 24 : 40;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int BOX_M = BM / (HALVES ? 2 : CLUSTER_N), BOX_N = BN / CLUSTER_M;  // rows of A and B per copy
  static constexpr int C_BYTES = 64 * 128;                                             // a buffer for results
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + 2 * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BOX_M <= 256 && BOX_N <= 256, "a box has at most 256 rows");
  static_assert(BOX_M % 8 == 0 && BOX_N % 8 == 0, "TMA swizzles 8 rows of 128 bytes by bits of the address");
  static_assert(SMEM_BYTES <= 227 * 1024);
  static_assert(SPLITS == 1 || (CLUSTER == SPLITS && !PING_PONG && WM == 64 && BN / 8 % SPLITS == 0 &&
                                STAGES * STAGE_BYTES >= BM * BN * 4),
                "split-K: one tile per block, whose partial sums overwrite its k tiles");
  static_assert(!SPLITS_OVER_GRID || (!PING_PONG && WM == 64), "split-K: one tile per block");
  static_assert(!HALVES || (WM == 128 && !PING_PONG && CLUSTER_N == 1), "each warpgroup has 64 rows of half a tile");
};

/// What TMA stores of C at a time, from a buffer that holds `BUFFERED` columns of D: boxes of rows of `BYTES` bytes. As it is, 64 rows,
/// of as many bytes as TMA can swizzle that divide a tile's row. With operands swapped rows of 128 bytes, as many as divide a tile's
/// columns.
template <class Tile, class TC>
struct CBox {
  static constexpr int BUFFERED = 128 / sizeof(TC);
  static constexpr int ROW_BYTES = Tile::BN * sizeof(TC);
  static constexpr int BYTES = Tile::SWAP_AB || ROW_BYTES % 128 == 0 ? 128 : ROW_BYTES % 64 == 0 ? 64 : 32;
  static constexpr int MOST_ROWS = Tile::BN % 64 == 0 ? 64 : Tile::BN % 32 == 0 ? 32 : 16;
  static constexpr int ROWS = !Tile::SWAP_AB ? 64 : MOST_ROWS < BUFFERED ? MOST_ROWS : BUFFERED;
  static constexpr int COLUMNS = BYTES / sizeof(TC);
};

/// Two neighbouring results into C, of which the first lies at a multiple of both's bytes.
template <class TC>
__device__ __forceinline__ void store2_global(TC* c, const float (&x)[2]) {
  struct alignas(2 * sizeof(TC)) Pair {
    TC element[2];
  };
  *reinterpret_cast<Pair*>(c) = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
}

/// Four partial sums from the shared memory of any block of the cluster.
__device__ __forceinline__ void load4_cluster(float (&x)[4], uint32_t address) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(address)
               : "memory");
}

template <class Tile, Type type, class TC>
__global__ void __cluster_dims__(Tile::CLUSTER, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc, float4* partials, unsigned* counters) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, BUFFERS = Tile::BUFFERS;
  constexpr int CLUSTER = Tile::CLUSTER, CLUSTER_M = Tile::CLUSTER_M, CLUSTER_N = Tile::CLUSTER_N;
  constexpr int SPLITS = Tile::SPLITS;
  constexpr bool PING_PONG = Tile::PING_PONG, SWAP_AB = Tile::SWAP_AB, SPLITS_OVER_GRID = Tile::SPLITS_OVER_GRID;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, CLUSTER_M * BM), tiles_n = ceil_div(N, CLUSTER_N * BN);
  const int c_tiles = tiles_m * tiles_n, splits = SPLITS_OVER_GRID ? gridDim.x / CLUSTER / c_tiles : SPLITS;
  const int clusters =
      gridDim.x / CLUSTER / (SPLITS_OVER_GRID ? splits : 1);  // that work on split `split`, or on all of K
  const int cluster = blockIdx.x / CLUSTER % clusters, rank = CLUSTER == 1 ? 0 : cluster_ctarank();
  const int split = SPLITS_OVER_GRID ? blockIdx.x / CLUSTER / clusters : SPLITS == 1 ? 0 : rank;
  const int rank_m = SPLITS == 1 ? rank % CLUSTER_M : 0, rank_n = SPLITS == 1 ? rank / CLUSTER_M : 0;
  // If at most half of the clusters have a tile in the last wave, these tiles are halved: each is two work tiles.
  const int whole = Tile::HALVES && c_tiles % clusters * 2 <= clusters ? c_tiles / clusters * clusters : c_tiles;
  const int work_tiles = whole + 2 * (c_tiles - whole);
  struct WorkTile {
    int row, col;  // of this block's first result
    bool half;
  };
  const auto work_tile_at = [&](int i) -> WorkTile {
    const bool half = i >= whole;
    const auto [tile_row, tile_col] = raster(half ? whole + (i - whole) / 2 : i, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int rows = half ? BM / 2 : BM;
    return {tile_row * CLUSTER_M * BM + (half && (i - whole) % 2 ? CLUSTER_M * rows : 0) + rank_m * rows,
            (tile_col * CLUSTER_N + rank_n) * BN, half};
  };
  // C's element of row m and column n of D
  const auto at = [&](int m, int n) {
    return SWAP_AB ? static_cast<size_t>(n) * ldc + m : static_cast<size_t>(m) * ldc + n;
  };
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const auto [first_k_tile, k_tiles] = k_tiles_of_split(split, splits, ceil_div(K, BK));
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + 2 * BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  const int box_m = min(Tile::BOX_M, M), box_n = min(Tile::BOX_N, N);  // rows to copy
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, (CLUSTER_M + CLUSTER_N - 1) * (PING_PONG ? 4 : 8));
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  if constexpr (CLUSTER > 1)
    cluster_arrive(), cluster_wait();
  else
    __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp == 0 && elect_sync()) {
      bool backwards = false;  // along k, every other tile: it begins with what the L2 cache still has
      for (int work_tile = cluster; work_tile < work_tiles; work_tile += clusters) {
        const auto [row, col, half] = work_tile_at(work_tile);
        const int boxes_m = Tile::HALVES ? (half ? 1 : 2) : CLUSTER_N;
        const int bytes = (boxes_m * box_m + CLUSTER_M * box_n) * BK_BYTES;
        for (int i = 0; i < k_tiles; ++i) {
          const int k = (first_k_tile + (backwards ? k_tiles - 1 - i : i)) * BK;
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES,
                         tile_b = tile_a + BM * BK_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          mbarrier_arrive_expect_tx(full + state.index * 8, bytes);
          if constexpr (CLUSTER_N > 1) {
            constexpr int ROW = ((1 << CLUSTER_N * CLUSTER_M) - 1) / ((1 << CLUSTER_M) - 1);  // bit 0 of each column
            const int part = rank_n * Tile::BOX_M;
            cp_async_bulk_tensor_2d_multicast(tile_a + part * BK_BYTES, map_a, k, row + part, full + state.index * 8,
                                              ROW << rank_m);
          } else {
            cp_async_bulk_tensor_2d(tile_a, map_a, k, row, full + state.index * 8);
          }
          if (Tile::HALVES && !half)
            cp_async_bulk_tensor_2d(tile_a + Tile::BOX_M * BK_BYTES, map_a, k, row + Tile::BOX_M,
                                    full + state.index * 8);
          if constexpr (CLUSTER_M > 1) {
            constexpr int COLUMN = (1 << CLUSTER_M) - 1;
            const int part = rank_m * Tile::BOX_N;
            cp_async_bulk_tensor_2d_multicast(tile_b + part * BK_BYTES, map_b, k, col + part, full + state.index * 8,
                                              COLUMN << rank_n * CLUSTER_M);
          } else {
            cp_async_bulk_tensor_2d(tile_b, map_b, k, col, full + state.index * 8);
          }
          ++state;
        }
        backwards = !backwards;
      }
    }
    __syncwarp();
    if constexpr (SPLITS > 1) cluster_arrive(), cluster_wait();  // the partial sums are stored
    if constexpr (CLUSTER > 1) cluster_arrive(), cluster_wait();
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  // A product with fewer rows or columns than a tile: TMA copies only these, and the other rows are zeroed here, once.
  if (box_m < Tile::BOX_M || box_n < Tile::BOX_N) {
    const auto zero = [&](uint32_t box, int rows, int first) {
      for (int i = first * (BK_BYTES / 16) + threadIdx.x - 128; i < rows * (BK_BYTES / 16); i += Tile::CONSUMERS)
        store4_shared(box + i * 16, {0.0F, 0.0F, 0.0F, 0.0F});
    };
    for (uint32_t tile = shared_address(smem), end = buffers; tile < end; tile += Tile::STAGE_BYTES) {
      for (int row = 0; row < BM; row += Tile::BOX_M) zero(tile + row * BK_BYTES, Tile::BOX_M, box_m);
      for (int row = BM; row < BM + BN; row += Tile::BOX_N) zero(tile + row * BK_BYTES, Tile::BOX_N, box_n);
    }
    fence_proxy_async_shared();
    bar_sync(5, Tile::CONSUMERS);
  }
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  float acc[WM / 64][BN / 8][4];  // [64 rows][8 columns][results of this lane: mma_c]
  int multiplied = -1;            // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if constexpr (CLUSTER_M * CLUSTER_N > 1) {  // on the blocks of its column, and on the others of its row
      const int other = lane - CLUSTER_M, column = other < rank_n ? other : other + 1;
      const int block = other < 0 ? lane + rank_n * CLUSTER_M : rank_m + column * CLUSTER_M;
      if (multiplied >= 0 && lane < CLUSTER_M + CLUSTER_N - 1)
        mbarrier_arrive_cluster(mapa(empty + multiplied * 8, block));
    } else {
      if (multiplied >= 0 && lane == 0) mbarrier_arrive(empty + multiplied * 8);
    }
  };
  const auto multiply_k_tile = [&]<int ROWS>(std::integral_constant<int, ROWS>, int accumulate) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + (PING_PONG ? 0 : warpgroup * ROWS * BK_BYTES)),
                   b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
      for (int i = 0; i < ROWS / 64; ++i)
        wgmma<type, BN>(acc[i], a + (i * 64 * BK_BYTES + k_step * Tile::MMA_K_BYTES) / 16,
                        b + k_step * Tile::MMA_K_BYTES / 16, k_step > 0 || accumulate);
    wgmma_commit_group();
    wgmma_wait_group<1>();  // the previous k tile is multiplied
    consumer_release();
    multiplied = state.index;
    ++state;
  };
  const auto skip_tile = [&] {  // the other warpgroup's
    state.advance(k_tiles);
  };
  // [/main-loop]

  constexpr int HALF_WM = Tile::HALVES ? WM / 2 : WM;
  const auto multiply_tile = [&](auto rows) {  // per warpgroup
    multiply_k_tile(rows, 0);
#pragma unroll 1
    for (int k_tile = 1; k_tile < k_tiles; ++k_tile) multiply_k_tile(rows, 1);
  };

  int part_number = 0;
  for (int i = 0, work_tile = cluster; work_tile < work_tiles; ++i, work_tile += clusters) {
    const bool last = work_tile + clusters >= work_tiles;  // of this block
    if (PING_PONG && i % 2 != warpgroup) {
      skip_tile();
      if (last) bar_arrive(5, Tile::CONSUMERS);
      continue;
    }
    const auto [first_row, tile_col, half] = work_tile_at(work_tile);
    const int rows = half ? WM / 2 : WM;  // of this warpgroup
    const int tile_row = first_row + (PING_PONG ? 0 : warpgroup * rows);
    if (PING_PONG && i > 0) bar_sync(3 + warpgroup, 256);  // until the other warpgroup has issued its tile's wgmma
    if (Tile::HALVES && half)
      multiply_tile(std::integral_constant<int, HALF_WM>());
    else
      multiply_tile(std::integral_constant<int, WM>());
    if (PING_PONG && !last) bar_arrive(4 - warpgroup, 256);
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;

    // [splits]
    if constexpr (SPLITS > 1 || SPLITS_OVER_GRID) {
      // Stores four of this thread's sums in C, of each 8 columns: the totals over all splits.
      const auto store_sums = [&](int j, const float(&sums)[4]) {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          const auto [c_row, c_col] = mma_c(lane, e);
          const int m = tile_row + warp % 4 * 16 + c_row, n = tile_col + j * 8 + c_col;
          float d[2] = {alpha * sums[e], alpha * sums[e + 1]};
          for (int i = 0; i < 2; ++i)
            if (beta != 0.0F && m < M && n + i < N) d[i] += beta * to_float(C[at(m, n + i)]);
          if (!SWAP_AB && m < M && n + 1 < N && ldc % 2 == 0) {
            store2_global(&C[at(m, n)], d);
          } else {
            for (int i = 0; i < 2; ++i)
              if (m < M && n + i < N) C[at(m, n + i)] = from_float<TC>(d[i]);
          }
        }
      };
      const int consumer = threadIdx.x - 128;
      if constexpr (SPLITS_OVER_GRID) {  // partial sums go through the workspace: [split][tile][8 columns][thread]
        const int tile = work_tile * CLUSTER + rank;
        unsigned* const counter = counters + tile;
        const auto partials_of = [&](int other, int j) {
          return partials + ((static_cast<size_t>(other) * c_tiles * CLUSTER + tile) * (BN / 8) + j) * Tile::CONSUMERS +
                 consumer;
        };
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
          *partials_of(split, j) = {acc[0][j][0], acc[0][j][1], acc[0][j][2], acc[0][j][3]};
        bar_sync(3, Tile::CONSUMERS);  // all of this block have written
        if (consumer == 0) {
          atom_add_acq_rel_gpu(counter, 1);
          while (ld_acquire_gpu(counter) < splits) {
          }
        }
        bar_sync(3, Tile::CONSUMERS);  // the partial sums of all splits are stored
        for (int j = split; j < BN / 8; j += splits) {
          float sums[4] = {};
#pragma unroll 8
          for (int other = 0; other < splits; ++other) {
            const float4 part = *partials_of(other, j);
            sums[0] += part.x, sums[1] += part.y, sums[2] += part.z, sums[3] += part.w;
          }
          store_sums(j, sums);
        }
        // The last block that has seen all splits resets the counter for the next launch.
        if (consumer == 0 && atom_add_acq_rel_gpu(counter, 1) == 2 * splits - 1) *counter = 0;
      } else {
        const uint32_t mine = shared_address(smem) + consumer * 16;  // partial sums of this thread, 4 at a time
        constexpr int PITCH = Tile::CONSUMERS * 16;                  // from 8 columns to the next 8
        constexpr int J = BN / 8 / SPLITS;  // columns / 8 that a block of the cluster reduces and stores
        bar_sync(3, Tile::CONSUMERS);       // both warpgroups have multiplied their last k tile
#pragma unroll
        for (int j = 0; j < BN / 8; ++j) store4_shared(mine + j * PITCH, acc[0][j]);
        cluster_arrive(), cluster_wait();
        float parts[SPLITS][J][4];  // all loads in flight at once: latency of the other blocks' memory
#pragma unroll
        for (int other = 0; other < SPLITS; ++other)
#pragma unroll
          for (int j = 0; j < J; ++j) load4_cluster(parts[other][j], mapa(mine + (split * J + j) * PITCH, other));
#pragma unroll
        for (int j = 0; j < J; ++j) {
          float sums[4] = {};
          for (int other = 0; other < SPLITS; ++other)
            for (int e = 0; e < 4; ++e) sums[e] += parts[other][j][e];
          store_sums(split * J + j, sums);
        }
      }
      continue;  // a block has one tile
    }
    // [/splits]

    // [epilogue]
    // 4. epilogue: acc -> smem -TMA-> gmem, 64 rows of D at a time, of as many columns as a buffer has room for
    using Box = CBox<Tile, TC>;
    constexpr int PARTS = ceil_div(BN, Box::BUFFERED);  // of 64 rows
    // The last tile's results are buffered in place of the k tiles, once both warpgroups have multiplied.
    constexpr int ROOM =
        STAGES * Tile::STAGE_BYTES / (PING_PONG ? 1 : 2) / Tile::C_BYTES;  // for a warpgroup, in buffers
    if (last) bar_sync(5, Tile::CONSUMERS);
#pragma unroll
    for (int part = 0; part < WM / 64 * PARTS; ++part) {
      if (Tile::HALVES && half && part >= WM / 128 * PARTS) break;
      const int first_col = part % PARTS * Box::BUFFERED, columns = min(Box::BUFFERED, BN - first_col);
      const int row = tile_row + part / PARTS * 64, col = tile_col + first_col;
      auto& part_acc = acc[part / PARTS];
#pragma unroll
      for (int j = 0; j < columns / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) part_acc[first_col / 8 + j][e] *= alpha;
      const auto each = [&](auto f) {  // f(row, column, result) for those of this lane that C has
#pragma unroll
        for (int j = 0; j < columns / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto [c_row, c_col] = mma_c(lane, e);
            const int m = row + warp % 4 * 16 + c_row, n = col + j * 8 + c_col;
            if (m < M && n < N) f(C[at(m, n)], part_acc[first_col / 8 + j][e]);
          }
      };
      if (beta != 0.0F) each([&](const TC& c, float& d) { d += beta * to_float(c); });
      // TMA would write all of the 16 bytes in which a row of C ends.
      constexpr int CHUNK = 16 / sizeof(TC);
      if (SWAP_AB ? M % CHUNK != 0 && row + 64 > M : N % CHUNK != 0 && col + columns > N) {
        each([](TC& c, float d) { c = from_float<TC>(d); });
        if (warp % 4 == 0 && elect_sync()) cp_async_bulk_commit_group();  // an empty one: the waits below count groups
        ++part_number;
        continue;
      }
      const uint32_t buffer =
          last ? shared_address(smem) + ((PING_PONG ? 0 : warpgroup * ROOM) + part % ROOM) * Tile::C_BYTES
               : buffers + (warpgroup * BUFFERS + part_number % BUFFERS) * Tile::C_BYTES;
      ++part_number;
      if (!last || part >= ROOM) {  // the store from this buffer has read it
        if (warp % 4 == 0 && elect_sync()) cp_async_bulk_wait_group_read<BUFFERS - 1>();
        bar_sync(1 + warpgroup, 128);
      }
      // Where in the buffer 16 bytes of C lie that begin in row r of 64 and column c of `columns` of D.
      const auto place = [&](int r, int c) {
        if constexpr (SWAP_AB)
          return r / Box::COLUMNS * (Box::BUFFERED * 128) + swizzle(c, r % Box::COLUMNS / CHUNK, 128);
        return c / Box::COLUMNS * (64 * Box::BYTES) + swizzle(r, c % Box::COLUMNS / CHUNK, Box::BYTES);
      };
      if constexpr (sizeof(TC) == 2) {
#pragma unroll
        for (int j = 0; j < columns / 8; j += 2) {
          uint32_t r[4];  // of rows 0 to 7 and 8 to 15 of 8 columns, then of the next 8
#pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            const float* const x = &part_acc[first_col / 8 + j + pair / 2][pair % 2 * 2];
            union {
              TC element[2];
              uint32_t bits;
            } d = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
            r[pair] = d.bits;
          }
          const int matrix = lane / 8, first = warp % 4 * 16 + matrix % 2 * 8, c = (j + matrix / 2) * 8;
          if constexpr (SWAP_AB)
            stmatrix_x4_trans(buffer + place(first, c + lane % 8), r);
          else
            stmatrix_x4(buffer + place(first + lane % 8, c), r);
        }
      } else {
#pragma unroll
        for (int j = 0; j < columns / 8; ++j)
#pragma unroll
          for (int pair = 0; pair < 2; ++pair) {
            const auto [c_row, c_col] = mma_c(lane, pair * 2);
            const int r = warp % 4 * 16 + c_row, c = j * 8 + c_col;
            const float* const x = &part_acc[first_col / 8 + j][pair * 2];
            if constexpr (SWAP_AB) {
              store_shared(buffer + place(r, c) + r % CHUNK * 4, x[0]);
              store_shared(buffer + place(r, c + 1) + r % CHUNK * 4, x[1]);
            } else {
              store2_shared(buffer + place(r, c) + c % CHUNK * 4, {x[0], x[1]});
            }
          }
      }
      fence_proxy_async_shared();
      bar_sync(1 + warpgroup, 128);
      if (warp % 4 == 0 && elect_sync()) {
        if constexpr (SWAP_AB) {
#pragma unroll
          for (int r = 0; r < 64; r += Box::COLUMNS)
#pragma unroll
            for (int c = 0; c < columns; c += Box::ROWS)
              cp_async_bulk_tensor_2d_store(map_c, row + r, col + c, buffer + place(r, c));
        } else {
#pragma unroll
          for (int c = 0; c < columns; c += Box::COLUMNS)
            cp_async_bulk_tensor_2d_store(map_c, col + c, row, buffer + place(0, c));
        }
        cp_async_bulk_commit_group();
      }
    }
    // [/epilogue]
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
  if constexpr (CLUSTER > 1) cluster_arrive(), cluster_wait();  // a block that has exited has no mbarriers to arrive at
}

/// L2 loads from DRAM no more than a copy asks for.
constexpr CUtensorMapL2promotion L2_PROMOTION = CU_TENSOR_MAP_L2_PROMOTION_NONE;

/// f<Tile<index>>()
constexpr int FIRST_INDEX = ONLY < 0 ? 0 : ONLY;
template <int FIRST = FIRST_INDEX, class F>
auto with_tile(int index, F&& f) {
  if constexpr (FIRST + 1 < CONFIGURATION_COUNT && ONLY < 0)
    if (index != FIRST) return with_tile<FIRST + 1>(index, f);
  return f.template operator()<Tile<FIRST>>();
}

/// How many clusters can be resident at the same time.
template <class Tile, Type type, class TC>
int resident_clusters() {
  if (Tile::CLUSTER == 1) return device_limits().sms;
  static PerDevice<int> found;
  return found.get([](int) {
    const auto kernel = gemm<Tile, type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    cudaLaunchConfig_t launch{};
    launch.gridDim = {static_cast<unsigned>(device_limits().sms / Tile::CLUSTER * Tile::CLUSTER)};
    launch.blockDim = {Tile::THREADS};
    launch.dynamicSmemBytes = Tile::SMEM_BYTES;
    int clusters = 0;
    cuda_check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch));
    return clusters;
  });
}

/// What a configuration would do for a product, and the time that it would take.
struct Plan {
  int index;   // of the configuration
  int tiles;   // of clusters
  int splits;  // of each
  int waves, in_last_wave, resident;
  double microseconds;
};

// [cost]
constexpr double LAUNCH_US = 4.9;                               // of an empty kernel
constexpr double CLOCK_REACHED = 1750.0 / 1980;                 // MHz under load, of an H200's highest
constexpr double DRAM_REACHED = 4200 / (2 * 3.134 * 6144 / 8);  // GB/s, of what an H200's memory clock and bus allow
constexpr double DRAM_BYTES_PER_CLOCK = 28;                     // into an SM of an H200
constexpr double SPLIT_ROW_BYTES_PER_CLOCK = 32;  // into an SM, of rows that do not begin at multiples of 128 bytes
constexpr double EPILOGUE_CLOCKS = 0.14;  // of a result of 16 bits, where another warpgroup multiplies meanwhile
constexpr double ALONE = 0.7;             // of the clocks of a k tile, where few clusters are at work
constexpr double HALF = 0.64;             // of them, where its tile is halved
constexpr int LEAST_K_TILES = 4;          // of a split over the grid

/// What a program reaches on the current device.
struct Rates {
  double clocks_per_us, dram_bytes_per_us;
};

Rates rates() {
  const DeviceLimits card = device_limits();
  return {CLOCK_REACHED * card.clock_mhz, DRAM_REACHED * card.memory_bytes_per_us()};
}

template <class Tile, Type type, class TC>
Plan plan(const Problem& p, int index) {
  constexpr const Configuration& c = Tile::CONFIGURATION;
  constexpr double RESULT_SIZE = sizeof(TC) / 2.0;
  const int rows = c.swap_ab ? p.n : p.m, columns = c.swap_ab ? p.m : p.n;
  const int tiles = ceil_div(rows, Tile::CLUSTER_M * Tile::BM) * ceil_div(columns, Tile::CLUSTER_N * Tile::BN);
  const int resident = resident_clusters<Tile, type, TC>();
  const int all_k_tiles = ceil_div(p.k, Tile::BK_BYTES / Operand<type>::BYTES);
  const int splits = Tile::SPLITS_OVER_GRID ? min(resident / tiles, all_k_tiles / LEAST_K_TILES) : Tile::SPLITS;
  // Each split has a k tile; over the grid there are two or more, all at once.
  const bool possible = Tile::SPLITS_OVER_GRID ? splits > 1 : splits <= all_k_tiles;
  const int k_tiles = ceil_div(all_k_tiles, max(splits, 1));
  const int work_tiles = Tile::SPLITS_OVER_GRID ? tiles * splits : tiles;
  const int full_waves = (work_tiles - 1) / resident, in_last_wave = work_tiles - full_waves * resident;
  const double filled = static_cast<double>(in_last_wave) / resident;  // of the last wave

  const size_t k_bytes = static_cast<size_t>(p.k) * Operand<type>::BYTES;
  const bool split = p.lda % (128 / Operand<type>::BYTES) != 0 || p.ldb % (128 / Operand<type>::BYTES) != 0;
  const double copied =
      (min(Tile::BM, rows) / Tile::CLUSTER_N + min(Tile::BN, columns) / Tile::CLUSTER_M) * Tile::BK_BYTES;
  const double k_tile = std::max<double>(c.clocks.k_tile, split ? copied / SPLIT_ROW_BYTES_PER_CLOCK : 0);
  const double epilogue = Tile::PING_PONG ? EPILOGUE_CLOCKS * RESULT_SIZE * Tile::BM * Tile::BN : 0;
  const double full = std::max(k_tiles * k_tile, epilogue) + c.clocks.tile * RESULT_SIZE;
  const double last = k_tiles * k_tile * (c.halves && filled <= 0.5 ? HALF : ALONE + (1 - ALONE) * filled);

  const Rates reached = rates();
  const double busy = (c.clocks.fixed + full_waves * full + last) / reached.clocks_per_us;
  const double bytes = (static_cast<double>(p.m) + p.n) * k_bytes + static_cast<double>(p.m) * p.n * sizeof(TC);
  const double sms = static_cast<double>(work_tiles) / (full_waves + 1) * Tile::CLUSTER;  // at work, on average
  const double copy = bytes / (sms * DRAM_BYTES_PER_CLOCK * reached.clocks_per_us);
  const double dram = reached.dram_bytes_per_us > 0 ? bytes / reached.dram_bytes_per_us : 0;  // 0: not stated
  const double us =
      LAUNCH_US + std::pow(std::pow(busy, 4) + std::pow(copy, 4) + std::pow(dram, 4), 0.25);  // about the largest
  return {index, tiles, splits, full_waves + 1, in_last_wave, resident, possible ? us : INFINITY};
}
// [/cost]

/// Of all configurations, the fastest first.
template <Type type, class TC>
std::array<Plan, CONFIGURATION_COUNT> plans(const Problem& p) {
  std::array<Plan, CONFIGURATION_COUNT> plans;
  for (int i = 0; i < CONFIGURATION_COUNT; ++i)
    plans[i] = with_tile(i, [&]<class Tile>() { return plan<Tile, type, TC>(p, i); });
  std::sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.microseconds < b.microseconds; });
  return plans;
}

/// f<Tile, type, TC>(plan) for the fastest.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    const Plan best = plans<type, TC>(p)[0];
    return with_tile(best.index, [&]<class Tile>() { return f.template operator()<Tile, type, TC>(best); });
  });
}

std::string refuses(const Problem& p) {
  const std::string why = refuses_mma_sync(p);
  if (!why.empty()) return why;
  return for_kernel(p, [&]<class Tile, Type type, class TC>(const Plan& plan) -> std::string {
    return plan.microseconds < INFINITY ? ""
           : Tile::SPLITS_OVER_GRID     ? "no room for splits"
                                        : "fewer tiles along k than splits";  // of ONLY one configuration
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class Tile, Type type, class TC>(const Plan& plan) {
    using T = typename Operand<type>::Element;
    using Box = CBox<Tile, TC>;
    // The product whose rows are the tiles' rows: the problem's, or with operands swapped.
    struct Matrix {
      const void* data;
      int rows, ld;
    } a = {p.a, p.m, p.lda}, b = {p.b, p.n, p.ldb};
    if (Tile::SWAP_AB) std::swap(a, b);
    int clusters = plan.tiles;
    if (Tile::SPLITS_OVER_GRID)
      clusters *= plan.splits;
    else if (Tile::SPLITS == 1)
      clusters = min(Tile::HALVES ? 2 * clusters : clusters, plan.resident);
    const auto kernel = gemm<Tile, type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    cudaLaunchAttribute resident{};  // all blocks at once, where they wait for one another
    resident.id = cudaLaunchAttributeCooperative;
    resident.val.cooperative = Tile::SPLITS_OVER_GRID;
    cudaLaunchConfig_t config{};
    config.gridDim = clusters * Tile::CLUSTER, config.blockDim = Tile::THREADS;
    config.dynamicSmemBytes = Tile::SMEM_BYTES;
    config.stream = p.stream, config.attrs = &resident, config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, kernel, a.rows, b.rows, p.k, p.alpha,
                                  tensor_map<T>(a.data, a.rows, p.k, a.ld, {min(Tile::BOX_M, a.rows)}, L2_PROMOTION),
                                  tensor_map<T>(b.data, b.rows, p.k, b.ld, {min(Tile::BOX_N, b.rows)}, L2_PROMOTION),
                                  tensor_map<TC>(p.c, p.m, p.n, p.ldc, {Box::ROWS, Box::BYTES}, L2_PROMOTION), p.beta,
                                  p.C<TC>(), p.ldc, static_cast<float4*>(p.workspace), p.locks));
  });
}

std::string explain(const Problem& p) {
  return for_types(p, [&]<Type type, class TC>() {
    const Rates reached = rates();
    char line[160];
    std::snprintf(line, sizeof line, "predicted at %.0f MHz and %.0f GB/s of DRAM, the fastest first:\n",
                  reached.clocks_per_us, reached.dram_bytes_per_us / 1e3);
    std::string text = line;
    for (const Plan& plan : plans<type, TC>(p)) {
      if (plan.microseconds == INFINITY) continue;
      const Configuration& c = CONFIGURATIONS[plan.index];
      const std::string splits = plan.splits == 1 ? "" : " in " + std::to_string(plan.splits) + " splits";
      std::snprintf(line, sizeof line, "  %-12s %9.1f us: %d tile%s%s, %d wave%s of %d cluster%s, %d in the last\n",
                    c.name, plan.microseconds, plan.tiles, plan.tiles == 1 ? "" : "s", splits.c_str(), plan.waves,
                    plan.waves == 1 ? "" : "s", plan.resident, plan.resident == 1 ? "" : "s", plan.in_last_wave);
      text += line;
    }
    return text;
  });
}

/// What fits and figures take from here: of the cost model, and of each configuration.
std::vector<Constants> constants() {
  std::vector<Constants> groups = {{"cost", {{"LAUNCH_US", LAUNCH_US}, {"ALONE", ALONE}, {"HALF", HALF}}}};
  for (const Configuration& c : CONFIGURATIONS)
    groups.push_back({c.name,
                      {{"bm", c.warpgroups == PING_PONG ? c.wm : 2 * c.wm},
                       {"bn", c.bn},
                       {"cluster_m", c.cluster_m},
                       {"cluster_n", c.cluster_n},
                       {"halves", c.halves},
                       {"fixed", c.clocks.fixed},
                       {"k_tile", c.clocks.k_tile},
                       {"tile", c.clocks.tile}}});
  return groups;
}

const Registration registration{{
    .number = "26",
    .name = "fast",
    .idea = "many tiles, and a cost model that picks one for each product",
    .predecessor = "25",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = LayoutB::col_major,
    .row_align_bytes = 16,
    .refuses = refuses,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>(const Plan& plan) {
            const int tiles = Tile::SPLITS_OVER_GRID ? plan.tiles * Tile::CLUSTER
                                                     : 0;  // whose partial sums are added in the workspace
            return Resources{(const void*)gemm<Tile, type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES},
                             sizeof(float) * tiles * plan.splits * Tile::BM * Tile::BN,
                             tiles};
          });
        },
    .launch = launch,
    .explain = explain,
    .constants = constants(),
}};

}  // namespace
