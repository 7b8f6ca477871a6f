// 41_fp8 · 33 with operands of 8 bits: E4M3 by wgmma
//
// Idea              What counts bytes stays: the 128 bytes along k of a tile are now 128 elements. A wgmma takes 32 bytes along k in any
//                   type, and of E4M3 it multiplies twice the products of BF16 in the same clocks.
// Changed from 33   the type, and with it the wgmma; scales, by which the epilogue multiplies: one per matrix, or per row and column
// Expect            as many clocks as 33 takes for half the K: 8192 FLOP per clock and SM in the main loop, not 4096. At 4096 x 4096 x 4096
//                   the cost model says 1.90; of that power takes 3 %, 1.8 times 33
// Limiter now       the tensor cores, at the clock that power leaves, where tiles are many; copies and the launch where they are few
// New instructions  wgmma m64nNk32 of e4m3; of e5m2 times e4m3, in half of the tiles
// Limits            as 21. Sums of 13 bits (FP22), however long. Scales outside the sum alone: per tensor, or per row and column
// Run               ./run_all.sh run 41 4096 4096 4096 --out same
// Read              docs/41_fp8.md
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "common/hopper/cost_model.h"
#include "common/hopper/descriptor.h"
#include "common/hopper/epilogue.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/split_k.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/per_device.h"
#include "common/preferred.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/ptx/wgmma.h"
#include "common/ptx/wgmma_n.h"
#include "common/rung.h"

using namespace ladder;

namespace {

/// How the consumer warpgroups of a block share tiles of C, in the words of CUTLASS's kernel schedules.
enum Schedule {
  COOPERATIVE,  ///< each computes its rows of the same tile
  PING_PONG,    ///< each has its own tile: one multiplies while the other stores
};

/// What the rows of tiles are rows of.
enum Operands {
  IN_ORDER,  ///< D = A B is C: rows of A, and columns of B
  SWAPPED,   ///< D = B^T A^T is the transpose of C: columns of B, and rows of A
};

enum Splits {
  NO_SPLITS,         ///< a block multiplies all of K
  SPLITS_OVER_GRID,  ///< as many blocks as fit compute a tile, each over its part of K
};

struct Configuration {
  const char* name;
  Schedule schedule;
  int warpgroups;  ///< that multiply
  int wm, bn;      ///< rows of D per warpgroup, and columns
  int stages;      ///< k tiles in shared memory: one is multiplied, the others are being copied
  int buffers;     ///< for 64 x 128 bytes of results, per warpgroup: one is filled, the others are being stored
  struct {
    int m = 1, n = 1;
  } cluster = {};  ///< blocks: one above the other they share tiles of B, side by side tiles of A
  Splits splits = NO_SPLITS;
  Operands operands = IN_ORDER;
};

// [configurations]
// Names: c cooperative, p ping-pong, rows x columns of a tile, t operands swapped; rows x columns of a cluster, or g split-K over the grid.
constexpr Configuration CONFIGURATIONS[] = {
    // name, schedule, warpgroups, rows per warpgroup, columns, stages, buffers, cluster, splits, operands
    {"c128x256t", COOPERATIVE, 2, 64, 256, 4, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"c256x128", COOPERATIVE, 2, 128, 128, 4, 1},
    {"c192x160", COOPERATIVE, 3, 64, 160, 4, 1},
    {"c192x96", COOPERATIVE, 3, 64, 96, 5, 1},
    {"c128x224", COOPERATIVE, 2, 64, 224, 4, 2},
    {"c128x208t", COOPERATIVE, 2, 64, 208, 4, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"c128x112", COOPERATIVE, 2, 64, 112, 6, 2},
    {"c128x112t", COOPERATIVE, 2, 64, 112, 6, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"p128x192", PING_PONG, 2, 128, 192, 4, 4},
    {"p128x176t", PING_PONG, 2, 128, 176, 5, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"p128x160", PING_PONG, 2, 128, 160, 5, 2},
    {"p128x144", PING_PONG, 2, 128, 144, 5, 2},
    {"p128x128", PING_PONG, 2, 128, 128, 6, 2},
    {"p128x96", PING_PONG, 2, 128, 96, 6, 2},
    {"p64x128", PING_PONG, 2, 64, 128, 8, 2},
    {"p64x128t", PING_PONG, 2, 64, 128, 8, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"p64x112", PING_PONG, 2, 64, 112, 8, 2},
    {"p64x64", PING_PONG, 2, 64, 64, 12, 2},
    {"p64x48t", PING_PONG, 2, 64, 48, 13, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"p64x32t", PING_PONG, 2, 64, 32, 13, 2, {1, 1}, NO_SPLITS, SWAPPED},
    {"c256x192t 1x2", COOPERATIVE, 2, 128, 192, 3, 3, {1, 2}, NO_SPLITS, SWAPPED},
    {"c256x160 1x2", COOPERATIVE, 2, 128, 160, 4, 1, {1, 2}},
    {"c256x144t 1x2", COOPERATIVE, 2, 128, 144, 4, 1, {1, 2}, NO_SPLITS, SWAPPED},
    {"c192x176t 1x2", COOPERATIVE, 3, 64, 176, 4, 1, {1, 2}, NO_SPLITS, SWAPPED},
    {"c128x224t 2x1", COOPERATIVE, 2, 64, 224, 4, 3, {2, 1}, NO_SPLITS, SWAPPED},
    {"p128x176 2x1", PING_PONG, 2, 128, 176, 5, 2, {2, 1}},
    {"p128x160 4x2", PING_PONG, 2, 128, 160, 5, 2, {4, 2}},
    {"p128x160t 4x2", PING_PONG, 2, 128, 160, 5, 2, {4, 2}, NO_SPLITS, SWAPPED},
    {"p64x128 2x1", PING_PONG, 2, 64, 128, 8, 2, {2, 1}},
    {"c192x128 g", COOPERATIVE, 3, 64, 128, 5, 1, {1, 1}, SPLITS_OVER_GRID},
    {"c192x96 g", COOPERATIVE, 3, 64, 96, 5, 1, {1, 1}, SPLITS_OVER_GRID},
    {"c128x64 g", COOPERATIVE, 2, 64, 64, 8, 2, {1, 1}, SPLITS_OVER_GRID},
    {"p64x64 g", PING_PONG, 2, 64, 64, 12, 2, {1, 1}, SPLITS_OVER_GRID},
};
// [/configurations]
constexpr int CONFIGURATION_COUNT = std::size(CONFIGURATIONS);

/// The constants of configuration INDEX, under the names of 25.
template <int INDEX>
struct Tile {
  static constexpr Configuration CONFIGURATION = CONFIGURATIONS[INDEX];
  static constexpr int WARPGROUPS = CONFIGURATION.warpgroups;
  static constexpr int TURNS = CONFIGURATION.schedule == PING_PONG ? WARPGROUPS : 1;  // warpgroups that take turns
  static constexpr int WM = CONFIGURATION.wm, BM = WARPGROUPS / TURNS * WM;           // rows of D
  static constexpr int BN = CONFIGURATION.bn;
  static constexpr bool SWAP_AB = CONFIGURATION.operands == SWAPPED;
  static constexpr bool SPLITS = CONFIGURATION.splits == SPLITS_OVER_GRID;
  static constexpr int CLUSTER_M = CONFIGURATION.cluster.m, CLUSTER_N = CONFIGURATION.cluster.n;
  static constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;  // blocks
  static constexpr int BK_BYTES = 128;                   // bytes along k per tile, as many elements
  static constexpr int MMA_K_BYTES = 32;                 // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = CONFIGURATION.stages, BUFFERS = CONFIGURATION.buffers;
  static constexpr int CONSUMERS = WARPGROUPS * 128;          // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;             // first comes the producer's warpgroup
  static constexpr bool MANY_RESULTS = WM * BN >= 128 * 176;  // that a thread holds
  static constexpr int CONSUMER_REGISTERS = WARPGROUPS == 3 ? 160 : MANY_RESULTS ? 240 : 232;  // per thread
  static constexpr int PRODUCER_REGISTERS = WARPGROUPS == 3 ? 32 : MANY_RESULTS ? 24 : 40;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 128 bytes of 64 rows
  static constexpr int SCALE_BYTES = (WM + BN) * sizeof(float);  // of a warpgroup's rows and columns
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + WARPGROUPS * (BUFFERS * C_BYTES + SCALE_BYTES) + STAGES * 16;
  static constexpr int BOX_M = BM / CLUSTER_N, BOX_N = BN / CLUSTER_M;  // rows of A and B that a block copies
  static_assert(BOX_M <= 256 && BOX_N <= 256, "a box has at most 256 rows");
  static_assert(BM % CLUSTER_N == 0 && BN % CLUSTER_M == 0, "the parts of a tile are alike");
  static_assert(SMEM_BYTES <= 227 * 1024);
  static_assert(!SPLITS || CLUSTER == 1);
};

constexpr int EARLY = 4;                  // k tiles that a block asks for before its barrier
constexpr int LEAST_K_TILES = 4;          // of a split
constexpr int GROUP_ROWS = 2048;          // of D: rows of tiles that are computed column by column
constexpr double KEPT = 2 * 1024 * 1024;  // bytes of B that L2 keeps while tiles go row by row

/// A product in tiles, as the host divides it: a division takes a thread some 60 clocks.
struct Grid {
  int tiles_m, tiles_n;  // of D, in tiles of clusters
  int group_size_m;      // rows of tiles that are computed column by column: raster()
  int splits;            // of K, each by other blocks
  // Rows of A and B that a block copies: those that there are, and one at least for each wgmma. The others make results that C does
  // not have.
  int box_m, box_n;
};

/// Of D: a scale for each of its rows and columns, or one for all rows and one for all columns.
struct ScalesOfD {
  Scales of;
  const float *rows, *columns;
};

/// The scales of a warpgroup's part of a tile, which begins at `first` in D with its M rows and N columns, into shared memory: first those of
/// rows, then those of columns. All threads of the warpgroup, each of which waits for its own copies.
template <class Tile>
__device__ __forceinline__ void copy_scales(uint32_t smem, const ScalesOfD& scales, Coord first, int M, int N) {
#pragma unroll
  for (int i = threadIdx.x % 128; i < Tile::WM + Tile::BN; i += 128) {
    const bool is_row = i < Tile::WM;
    const int at = is_row ? first.row + i : first.col + i - Tile::WM;
    cp_async_ca_4(smem + i * 4, (is_row ? scales.rows : scales.columns) + at, at < (is_row ? M : N) ? 4 : 0);
  }
  cp_async_commit_group();
}

/// Each result times the scales of its row and its column, which copy_scales() has copied. All threads of the warpgroup.
template <class Tile>
__device__ __forceinline__ void scale_results(float (&acc)[Tile::WM / 64][Tile::BN / 8][4], uint32_t smem) {
  const int warp = warp_index_sync() % 4, warpgroup = warp_index_sync() / 4 - 1, lane = threadIdx.x % 32;
  cp_async_wait_group<0>();
  bar_sync(6 + warpgroup, 128);  // the other threads' copies have landed, too
  float rows[Tile::WM / 64][2], columns[2];
#pragma unroll
  for (int i = 0; i < Tile::WM / 64; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows[i][half] = load_shared(smem + (i * 64 + warp * 16 + mma_c(lane, half * 2).row) * 4);
#pragma unroll
  for (int j = 0; j < Tile::BN / 8; ++j) {
    load2_shared(columns, smem + (Tile::WM + j * 8 + mma_c(lane, 0).col) * 4);
#pragma unroll
    for (int i = 0; i < Tile::WM / 64; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] *= rows[i][e / 2] * columns[e % 2];
  }
}

template <class Tile, Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, ScalesOfD scales, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc, Grid grid, float4* partials, unsigned* counters) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES, TURNS = Tile::TURNS;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int CLUSTER = Tile::CLUSTER, CLUSTER_M = Tile::CLUSTER_M, CLUSTER_N = Tile::CLUSTER_N;
  constexpr bool ALONE = CLUSTER == 1;  // nobody else fills this block's stages
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int c_tiles = grid.tiles_m * grid.tiles_n;  // of clusters
  const int block = blockIdx.x / CLUSTER, blocks = gridDim.x / CLUSTER;
  const int cluster = Tile::SPLITS ? block % c_tiles : block, clusters = Tile::SPLITS ? c_tiles : blocks;
  const int split = Tile::SPLITS ? block / c_tiles : 0, splits = Tile::SPLITS ? grid.splits : 1;
  const int rank = ALONE ? 0 : cluster_ctarank(), rank_m = rank % CLUSTER_M, rank_n = rank / CLUSTER_M;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  const auto first_result = [&](int c_tile) -> Coord {  // of D, in this block's tile
    const auto [tile_row, tile_col] = raster(c_tile, grid.tiles_m, grid.tiles_n, grid.group_size_m);
    return {(tile_row * CLUSTER_M + rank_m) * BM, (tile_col * CLUSTER_N + rank_n) * BN};
  };

  // 2. set up
  const auto [first_k_tile, k_tiles] = k_tiles_of_split(split, splits, ceil_div(K, BK));
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  const uint32_t smem_scales = empty + STAGES * 8 + warpgroup * Tile::SCALE_BYTES;
  // [producer]
  // One thread: the k tile of A and B that begins at k, or this block's part of what the cluster shares.
  const auto copy_k_tile = [&](PipelineState<STAGES> state, Coord first, int k) {
    const uint32_t barrier = full + state.index * 8;
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
    mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    mbarrier_arrive_expect_tx(barrier, (CLUSTER_N * grid.box_m + CLUSTER_M * grid.box_n) * BK_BYTES);
    if constexpr (CLUSTER_N == 1) {
      cp_async_bulk_tensor_2d(tile_a, map_a, k, first.row, barrier);
    } else {
      uint16_t same_rows = 0;  // blocks of the cluster
      for (int n = 0; n < CLUSTER_N; ++n) same_rows |= 1 << (rank_m + n * CLUSTER_M);
      const int part = rank_n * Tile::BOX_M;
      cp_async_bulk_tensor_2d_multicast(tile_a + part * BK_BYTES, map_a, k, first.row + part, barrier, same_rows);
    }
    if constexpr (CLUSTER_M == 1) {
      cp_async_bulk_tensor_2d(tile_b, map_b, k, first.col, barrier);
    } else {
      const uint16_t same_columns = ((1 << CLUSTER_M) - 1) << rank_n * CLUSTER_M;
      const int part = rank_m * Tile::BOX_N;
      cp_async_bulk_tensor_2d_multicast(tile_b + part * BK_BYTES, map_b, k, first.col + part, barrier, same_columns);
    }
  };
  const int early = ALONE ? min(k_tiles, min(EARLY, STAGES)) : 0;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, (CLUSTER_M + CLUSTER_N - 1) * Tile::CONSUMERS / TURNS / 32);
    }
    fence_mbarrier_init();
    for (int k_tile = 0; k_tile < early; ++k_tile)
      copy_k_tile({0, k_tile}, first_result(cluster), (first_k_tile + k_tile) * BK);
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  if constexpr (ALONE)
    __syncthreads();
  else
    cluster_arrive_relaxed(), cluster_wait();

  PipelineState<STAGES> state;  // of the next k tile
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp == 0 && elect_sync()) {
      state.advance(early);
      int step = BK;  // along k: every other tile backwards, to begin with what the L2 cache still has
      for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters, step = -step) {
        const Coord first = first_result(c_tile);
        int k_tile = c_tile == cluster ? early : 0;
        int k = (first_k_tile + (step > 0 ? k_tile : k_tiles - 1)) * BK;
        for (; k_tile < k_tiles; ++k_tile, ++state, k += step) copy_k_tile(state, first, k);
      }
      // A block that has exited has no mbarriers to arrive at: wait until all have released its stages.
      for (int stage = 0; !ALONE && stage < STAGES; ++stage, ++state)
        mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if (multiplied < 0) return;
    if constexpr (ALONE) {
      if (lane == 0) mbarrier_arrive(empty + multiplied * 8);
    } else {  // to all that fill this stage: those of the same rows or columns
      if (lane < CLUSTER && (lane % CLUSTER_M == rank_m || lane / CLUSTER_M == rank_n))
        mbarrier_arrive_cluster(mapa(empty + multiplied * 8, lane));
    }
  };
  const auto multiply_k_tile = [&](float(&acc)[WM / 64][BN / 8][4]) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + (TURNS == 1 ? warpgroup * WM * BK_BYTES : 0)),
                   b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
        wgmma<type, BN>(acc[i], a + (i * 64 * BK_BYTES + k_step * Tile::MMA_K_BYTES) / 16,
                        b + k_step * (Tile::MMA_K_BYTES / 16), 1);
    wgmma_commit_group();
    wgmma_wait_group<1>();  // the previous k tile is multiplied
    consumer_release();
    multiplied = state.index;
    ++state;
  };
  // [/main-loop]

  if (scales.of == Scales::tensor) alpha *= *scales.rows * *scales.columns;
  int part_number = 0;  // of the buffers filled
  const int turn = warpgroup % TURNS;
  if (turn == 1) state.advance(k_tiles);  // the first tile is the other warpgroup's
  for (int c_tile = cluster + turn * clusters; c_tile < c_tiles; c_tile += TURNS * clusters) {
    const Coord of_block = first_result(c_tile), first{of_block.row + (TURNS == 1 ? warpgroup * WM : 0), of_block.col};
    float acc[WM / 64][BN / 8][4] = {};  // [64 rows][8 columns][results of this lane: mma_c]
    if (TURNS > 1 && c_tile != cluster)
      bar_sync(4 + warpgroup, Tile::CONSUMERS);  // the other warpgroup has issued all of its wgmma
    if (scales.of == Scales::rows) copy_scales<Tile>(smem_scales, scales, first, M, N);
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_results<Tile>(of_block, M, N, C, ldc);
      multiply_k_tile(acc);
    }
    if (TURNS > 1 && c_tile + clusters < c_tiles) bar_arrive(5 - warpgroup, Tile::CONSUMERS);  // the other's turn
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;
    if (TURNS > 1) state.advance(k_tiles);  // past the other warpgroup's tile

    if (scales.of == Scales::rows) scale_results<Tile>(acc, smem_scales);

    // 4. store
    if constexpr (Tile::SPLITS) {
      sum_over_grid<Tile>(acc, split, splits, partials + static_cast<size_t>(c_tile) * splits * (BM * BN / 4),
                          counters + c_tile, of_block, M, N, alpha, beta, C, ldc);
    } else {
      store_results<Tile>(acc, first, M, N, alpha, beta, C, ldc, map_c,
                          buffers + warpgroup * Tile::BUFFERS * Tile::C_BYTES, part_number);
    }
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
}

template <class Tile>
cudaLaunchAttribute cluster_of() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {Tile::CLUSTER, 1, 1};
  return attribute;
}

/// How many clusters can be resident at the same time.
template <class Tile, Type type, class TC>
int resident_clusters() {
  static PerDevice<int> found;
  return found.get([](int) {
    const auto kernel = gemm<Tile, type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    cudaLaunchConfig_t launch{};
    launch.gridDim = {static_cast<unsigned>(device_limits().sms / Tile::CLUSTER * Tile::CLUSTER)};
    launch.blockDim = {Tile::THREADS};
    launch.dynamicSmemBytes = Tile::SMEM_BYTES;
    cudaLaunchAttribute cluster = cluster_of<Tile>();
    launch.attrs = &cluster, launch.numAttrs = 1;
    int clusters = 0;
    cuda_check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch));
    return clusters;
  });
}

/// What a configuration would do for a product, and the time that it would take.
struct Choice {
  int index;  // of the configuration
  Grid grid;
  int clusters;         // in the grid
  double microseconds;  // infinite where it cannot
};

// [choice]
constexpr double CLOCK_REACHED = 0.86;  // of the SMs' highest clock, under load

template <class Tile, Type type, class TC>
Choice weigh(const Problem& p, int index, const DeviceLimits& card) {
  constexpr int BK = Tile::BK_BYTES / Operand<type>::BYTES;
  const double k_bytes = static_cast<double>(p.k) * Operand<type>::BYTES;
  const auto whole_lines = [](int ld) { return ld % BK == 0 || BK % ld == 0; };  // or whole rows in each line
  TiledProduct product{p.m,
                       p.n,
                       ceil_div(p.k, BK),
                       whole_lines(p.lda) && whole_lines(p.ldb),
                       (p.m + static_cast<double>(p.n)) * k_bytes + static_cast<double>(p.m) * p.n * sizeof(TC),
                       sizeof(TC)};
  if (Tile::SWAP_AB) std::swap(product.rows, product.columns);
  Grid grid{ceil_div(product.rows, Tile::CLUSTER_M * Tile::BM),
            ceil_div(product.columns, Tile::CLUSTER_N * Tile::BN),
            product.columns * k_bytes <= KEPT ? 1 : ceil_div(GROUP_ROWS, Tile::CLUSTER_M * Tile::BM),
            1,
            min(Tile::BOX_M, std::max(product.rows, Tile::BOX_M - 63)),
            min(Tile::BOX_N, product.columns)};
  const int tiles = grid.tiles_m * grid.tiles_n,
            resident = Tile::CLUSTER == 1 ? card.sms : resident_clusters<Tile, type, TC>();
  if (resident == 0) return {index, grid, 0, INFINITY};  // no such cluster fits: a part of a GPU, by MIG
  if (Tile::SPLITS) grid.splits = min(resident / tiles, product.k_tiles / LEAST_K_TILES);
  if (Tile::SPLITS && grid.splits < 2) return {index, grid, 0, INFINITY};
  const Tiling tiling{
      Tile::BM, Tile::BN,        Tile::CLUSTER_M, Tile::CLUSTER_N,
      resident, Tile::TURNS > 1, grid.splits,     CBox<Tile, TC>::BYTES == 32 || (Tile::SWAP_AB && sizeof(TC) == 4)};
  return {index, grid, min(tiles * grid.splits, resident),
          predicted_us(product, tiling, {CLOCK_REACHED * card.clock_mhz, card.memory_bytes_per_us()})};
}
// [/choice]

/// Of E5M2 half of the configurations are compiled: without clusters, and in order, as its wgmma is of E5M2 times E4M3.
template <Type type>
constexpr bool has(int index) {
  const Configuration& c = CONFIGURATIONS[index];
  return type == of_b(type) || (c.operands == IN_ORDER && c.cluster.m * c.cluster.n == 1);
}

/// f<Tile<index>>() of a configuration that the type has.
template <Type type, int FIRST = 0, class F>
auto with_tile(int index, F&& f) {
  if constexpr (FIRST + 1 < CONFIGURATION_COUNT)
    if (index != FIRST) return with_tile<type, FIRST + 1>(index, f);
  if constexpr (has<type>(FIRST))
    return f.template operator()<Tile<FIRST>>();
  else
    return with_tile<type, FIRST + 1>(index, f);
}

/// Of all configurations, in the order of the table.
template <Type type, class TC>
std::array<Choice, CONFIGURATION_COUNT> weighed(const Problem& p) {
  const DeviceLimits card = device_limits();
  std::array<Choice, CONFIGURATION_COUNT> found;
  for (int i = 0; i < CONFIGURATION_COUNT; ++i)
    found[i] = has<type>(i) ? with_tile<type>(i, [&]<class Tile>() { return weigh<Tile, type, TC>(p, i, card); })
                            : Choice{i, {}, 0, INFINITY};
  return found;
}

bool is_faster(const Choice& a, const Choice& b) { return a.microseconds < b.microseconds; }

/// The fastest first.
template <Type type, class TC>
std::array<Choice, CONFIGURATION_COUNT> choices(const Problem& p) {
  std::array<Choice, CONFIGURATION_COUNT> found = weighed<type, TC>(p);
  std::stable_sort(found.begin(), found.end(), is_faster);
  return found;
}

/// The one to launch: what was measured to be the fastest, else what is predicted to be. Each problem is weighed once.
template <Type type, class TC>
Choice choice(const Problem& p) {
  static thread_local std::map<std::array<int, 7>, Choice> known;
  int device = 0;
  cuda_check(cudaGetDevice(&device));
  const std::string name = preferred("41", p);
  if (name.empty()) {
    const auto [place, is_new] = known.try_emplace({device, p.m, p.n, p.k, p.lda, p.ldb, p.ldc});
    if (is_new) {
      const auto found = weighed<type, TC>(p);
      place->second = *std::min_element(found.begin(), found.end(), is_faster);
    }
    return place->second;
  }
  for (const Choice& one : choices<type, TC>(p))
    if (name == CONFIGURATIONS[one.index].name && one.microseconds < INFINITY) return one;
  return choices<type, TC>(p)[0];  // the name is of another version
}

template <class Tile, Type type, class TC>
Resources resources(const Choice& choice) {
  const int tiles = Tile::SPLITS ? choice.grid.tiles_m * choice.grid.tiles_n : 0;  // with partial sums in the workspace
  return {(const void*)gemm<Tile, type, TC>,
          Tile::THREADS,
          Tile::SMEM_BYTES,
          {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES},
          sizeof(float) * tiles * choice.grid.splits * Tile::BM * Tile::BN,
          tiles};
}

/// How TMA loads the operands and stores C.
struct Maps {
  CUtensorMap a, b, c;
};

template <class Tile, Type type, class TC>
Maps maps(const Problem& p, const Choice& choice) {
  using T = typename Operand<type>::Element;
  using Box = CBox<Tile, TC>;
  const auto of = [&](const void* data, int rows, int ld, int box_rows) {
    return tensor_map<T>(data, rows, p.k, ld, {box_rows}, CU_TENSOR_MAP_L2_PROMOTION_NONE);
  };
  // The first operand's rows are rows of D, the second's are its columns.
  const auto a = [&](int box_rows) { return of(p.a, p.m, p.lda, box_rows); };
  const auto b = [&](int box_rows) { return of(p.b, p.n, p.ldb, box_rows); };
  const Grid& grid = choice.grid;
  return {Tile::SWAP_AB ? b(grid.box_m) : a(grid.box_m), Tile::SWAP_AB ? a(grid.box_n) : b(grid.box_n),
          tensor_map<TC>(p.c, p.m, p.n, p.ldc, {Box::ROWS, Box::BYTES})};
}

template <class Tile, Type type, class TC>
void launch(const Problem& p, const Choice& choice, const Maps& maps) {
  // A launch with clusters of one block places blocks differently from one without clusters, and up to 1.3 times slower.
  cudaLaunchAttribute attribute = cluster_of<Tile>();
  if (Tile::SPLITS) {  // all blocks at once: they wait for one another
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  const ScalesOfD scales = {p.scales, Tile::SWAP_AB ? p.scale_b : p.scale_a, Tile::SWAP_AB ? p.scale_a : p.scale_b};
  cudaLaunchConfig_t config{};
  config.gridDim = choice.clusters * Tile::CLUSTER, config.blockDim = Tile::THREADS;
  config.dynamicSmemBytes = Tile::SMEM_BYTES, config.stream = p.stream;
  config.attrs = &attribute, config.numAttrs = Tile::CLUSTER > 1 || Tile::SPLITS;
  cuda_check(cudaLaunchKernelEx(&config, gemm<Tile, type, TC>, Tile::SWAP_AB ? p.n : p.m, Tile::SWAP_AB ? p.m : p.n,
                                p.k, p.alpha, scales, maps.a, maps.b, maps.c, p.beta, p.C<TC>(), p.ldc, choice.grid,
                                static_cast<float4*>(p.workspace), p.locks));
}

/// A launch whose pointers, factors and stream may change. The maps are made anew when a matrix lies elsewhere.
template <class Tile, Type type, class TC>
std::function<void(const Problem&)> prepared(const Choice& choice) {
  cuda_check(cudaFuncSetAttribute(gemm<Tile, type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  return [choice, known = Maps{}, of = std::array<const void*, 3>{}](const Problem& p) mutable {
    if (const std::array<const void*, 3> now = {p.a, p.b, p.c}; of != now)
      known = maps<Tile, type, TC>(p, choice), of = now;
    launch<Tile, type, TC>(p, choice, known);
  };
}

/// f<Tile, type, TC>(choice) for the one to launch.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    const Choice best = choice<type, TC>(p);
    return with_tile<type>(best.index, [&]<class Tile>() { return f.template operator()<Tile, type, TC>(best); });
  });
}

std::function<void(const Problem&)> prepare(const Problem& p) {
  return for_kernel(
      p, [&]<class Tile, Type type, class TC>(const Choice& choice) { return prepared<Tile, type, TC>(choice); });
}

std::vector<Plan> plans(const Problem& p) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    std::vector<Plan> plans;
    for (const Choice& one : choices<type, TC>(p)) {
      if (one.microseconds == INFINITY) continue;
      plans.push_back(with_tile<type>(one.index, [&]<class Tile>() -> Plan {
        return {Tile::CONFIGURATION.name, one.microseconds, resources<Tile, type, TC>(one),
                prepared<Tile, type, TC>(one)};
      }));
    }
    return plans;
  });
}

std::string explain(const Problem& p) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    std::string text = "predicted, the fastest first:\n";
    for (const Choice& one : choices<type, TC>(p)) {
      if (one.microseconds == INFINITY) continue;
      const int tiles = one.grid.tiles_m * one.grid.tiles_n;
      const std::string splits = one.grid.splits == 1 ? "" : " in " + std::to_string(one.grid.splits) + " splits";
      char line[160];
      std::snprintf(line, sizeof line, "  %-14s %9.1f us: %d tile%s%s\n", CONFIGURATIONS[one.index].name,
                    one.microseconds, tiles, tiles == 1 ? "" : "s", splits.c_str());
      text += line;
    }
    return text;
  });
}

/// What the fit and the chapter take from here: of the cost model, and of each configuration.
std::vector<Constants> constants() {
  const CostConstants cost;
  std::vector<Constants> groups = {{"cost",
                                    {{"launch_us", cost.launch_us},
                                     {"cluster_clocks", cost.cluster_clocks},
                                     {"turn_clocks", cost.turn_clocks},
                                     {"received_per_clock", cost.received_per_clock},
                                     {"asked_unaligned", cost.asked_unaligned},
                                     {"cooperative", cost.cooperative},
                                     {"epilogue_clocks", cost.epilogue_clocks},
                                     {"small_boxes", cost.small_boxes},
                                     {"exposed", cost.exposed},
                                     {"exchange_clocks", cost.exchange_clocks},
                                     {"exchange_per_result", cost.exchange_per_result}}}};
  for (const Configuration& c : CONFIGURATIONS)
    groups.push_back({c.name,
                      {{"bm", c.schedule == PING_PONG ? c.wm : c.warpgroups * c.wm},
                       {"bn", c.bn},
                       {"cluster_m", c.cluster.m},
                       {"cluster_n", c.cluster.n},
                       {"ping_pong", c.schedule == PING_PONG},
                       {"swapped", c.operands == SWAPPED},
                       {"splits", c.splits == SPLITS_OVER_GRID},
                       {"least_k_tiles", LEAST_K_TILES}}});
  return groups;
}

const Registration registration{{
    .number = "41",
    .name = "fp8",
    .idea = "33 with E4M3: a tile has the same bytes, and wgmma multiplies twice the products per clock",
    .predecessor = "33",
    .types = {Type::e4m3, Type::e5m2},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::none, Scales::tensor, Scales::rows},
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync_of<Fp8Types>,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>(const Choice& choice) {
            return resources<Tile, type, TC>(choice);
          });
        },
    .launch = [](const Problem& p) { prepare(p)(p); },
    .explain = explain,
    .plans = plans,
    .constants = constants(),
    .prepare = prepare,
}};

}  // namespace
