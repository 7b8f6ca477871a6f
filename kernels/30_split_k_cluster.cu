// 30_split_k_cluster · the blocks of a cluster split K, and send one another their partial sums
//
// Idea              Where tiles are few, several blocks compute one, each over its part of K. Each owns some of the tile's columns, and gets
//                   the others' partial sums of these straight into its shared memory: no trip to L2, and no barrier of the cluster.
// Changed from 29   clusters of 2, 4 or 8 blocks that split K; partial sums by st.async, counted by an mbarrier
// Expect            256 x 256 x 65536: 128 k tiles per block, not 1024: 3.6 times 29
// Limiter now       products of so few tiles that a cluster's eight blocks for each are not enough
// New instructions  st.async; mbarrier.try_wait.acquire.cluster
// Limits            as 21
// Run               ./run_all.sh run 30 256 256 65536 --type bf16
// Read              docs/30_split_k_cluster.md
#include <cmath>
#include <span>
#include <tuple>
#include <type_traits>

#include "common/hopper/descriptor.h"
#include "common/hopper/epilogue.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/ptx/st_async.h"
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

template <Schedule SCHEDULE, int WARPGROUPS_, int WM_, int BN_, int STAGES_, int BUFFERS_, Operands OPERANDS = IN_ORDER>
struct Tile {
  static constexpr int WARPGROUPS = WARPGROUPS_;                        // that multiply
  static constexpr int TURNS = SCHEDULE == PING_PONG ? WARPGROUPS : 1;  // warpgroups that take turns
  static constexpr int WM = WM_, BM = WARPGROUPS / TURNS * WM;          // rows of D per warpgroup, and per tile
  static constexpr int BN = BN_;                                        // columns of D per tile
  static constexpr bool SWAP_AB = OPERANDS == SWAPPED;
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = STAGES_;   // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int GROUP_ROWS = 2048;  // of D per group of clusters
  static constexpr int CONSUMERS = WARPGROUPS * 128;                      // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;                         // first comes the producer's warpgroup
  static constexpr int CONSUMER_REGISTERS = WARPGROUPS == 3 ? 160 : 240;  // per thread
  static constexpr int PRODUCER_REGISTERS = WARPGROUPS == 3 ? 32 : 24;
  static constexpr bool CAN_SPLIT = WM * BN < 128 * 128;  // else there are no registers for partial sums
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 128 bytes of 64 rows
  static constexpr int BUFFERS = BUFFERS_;  // per warpgroup: one is filled, the others are being stored
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + WARPGROUPS * BUFFERS * C_BYTES + STAGES * 16 + 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

// [tiles]
using AllTiles = std::tuple<  // schedule, warpgroups, rows per warpgroup, columns, stages, buffers, operands
    Tile<COOPERATIVE, 2, 128, 192, 3, 3>, Tile<COOPERATIVE, 2, 64, 256, 4, 2>, Tile<COOPERATIVE, 2, 64, 128, 5, 2>,
    Tile<COOPERATIVE, 3, 64, 160, 4, 2>, Tile<COOPERATIVE, 3, 64, 128, 5, 1>, Tile<PING_PONG, 2, 128, 192, 4, 4>,
    Tile<PING_PONG, 2, 128, 160, 5, 2>, Tile<PING_PONG, 2, 64, 256, 4, 2>, Tile<PING_PONG, 2, 64, 128, 8, 2>,
    Tile<PING_PONG, 2, 64, 64, 11, 2>, Tile<PING_PONG, 2, 64, 128, 8, 2, SWAPPED>,
    Tile<PING_PONG, 2, 64, 64, 11, 2, SWAPPED>, Tile<PING_PONG, 2, 64, 32, 16, 2, SWAPPED>,
    Tile<PING_PONG, 2, 64, 16, 18, 2, SWAPPED>>;
// [/tiles]
constexpr int ONLY = TUNABLE(ONLY, -1);  // bench/sweep.py compiles one tile at a time
using Tiles =
    std::conditional_t<(ONLY < 0), AllTiles, std::tuple<std::tuple_element_t<(ONLY < 0 ? 0 : ONLY), AllTiles>>>;

/// Blocks of a cluster: one above the other they share tiles of B, side by side tiles of A. At most two. Or
/// any number that compute one tile, each over its part of K.
struct Cluster {
  int m, n, splits;
};

// [clusters]
constexpr Cluster ALL_CLUSTERS[] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 4}, {1, 1, 8}};
// [/clusters]
constexpr int EARLY = TUNABLE(EARLY, 4);                 // k tiles that a block asks for before its barrier
constexpr int ONLY_CLUSTER = TUNABLE(ONLY_CLUSTER, -1);  // likewise
constexpr std::span<const Cluster> CLUSTERS(ALL_CLUSTERS + (ONLY_CLUSTER < 0 ? 0 : ONLY_CLUSTER),
                                            ONLY_CLUSTER < 0 ? std::size(ALL_CLUSTERS) : 1);

/// What a block multicasts its half of.
enum Shares { NOTHING, SHARES_A, SHARES_B };

/// A product in tiles, as the host divides it: a division takes a thread some 60 clocks.
struct Grid {
  Cluster cluster;
  int blocks;            // of a cluster
  int tiles_m, tiles_n;  // of D, in tiles of clusters
  int group_size_m;      // clusters per group of rows

  bool possible;  // each split has k tiles, and in place of C's buffers room for the others' partial sums

  template <class Tile>
  static Grid of(const Problem& p, Cluster cluster, int k_tiles) {
    const int rows = Tile::SWAP_AB ? p.n : p.m, columns = Tile::SWAP_AB ? p.m : p.n, splits = cluster.splits;
    const int received = (splits - 1) * ceil_div(Tile::BN / 8, splits) * 8 * Tile::BM * 4;
    const bool room = Tile::CAN_SPLIT && received <= Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES;
    return {cluster,
            cluster.m * cluster.n * splits,
            ceil_div(rows, cluster.m * Tile::BM),
            ceil_div(columns, cluster.n * Tile::BN),
            Tile::GROUP_ROWS / (cluster.m * Tile::BM),
            splits == 1 || (splits <= k_tiles && room)};
  }
  int resident() const { return device_limits().sms / blocks; }  // clusters at once
  int clusters() const {  // each with tiles of its own, with one where it splits K
    return cluster.splits > 1 ? tiles_m * tiles_n : min(tiles_m * tiles_n, resident());
  }
};

/// f(i, j, owner, k) for each 64 rows i and 8 columns j of acc: the k-th of the columns that block `owner` owns.
template <class Tile, class F>
__device__ __forceinline__ void for_parts(int splits, F&& f) {
#pragma unroll
  for (int i = 0; i < Tile::WM / 64; ++i) {
    int owner = 0, k = 0;
#pragma unroll
    for (int j = 0; j < Tile::BN / 8; ++j) {
      f(i, j, owner, k);
      if (++owner == splits) owner = 0, ++k;
    }
  }
}

/// What block `split` gets from the others.
template <class Tile>
__device__ __forceinline__ uint32_t received_bytes(int split, int splits) {
  // [bytes]
  const int owned = (Tile::BN / 8 - split + splits - 1) / splits;  // parts, of each 64 rows
  return (splits - 1) * owned * Tile::BM / 64 * 64 * 32;
  // [/bytes]
}

// [exchange]
/// Sums acc over the `splits` blocks of the cluster that have computed the same tile, each over its part of K. Block `split` gets the
/// totals of its own columns: of every 8 columns j for which j % splits is `split`. The others' partial sums come into `received`, and
/// `arrived`, an mbarrier, counts their bytes.
template <class Tile>
__device__ __forceinline__ void sum_over_cluster(float (&acc)[Tile::WM / 64][Tile::BN / 8][4], int split, int splits,
                                                 uint32_t received, uint32_t arrived) {
  constexpr int THREADS = Tile::CONSUMERS / Tile::TURNS, PART = Tile::BN / 8;  // of 8 columns each
  const int thread = (threadIdx.x - 128) % THREADS, owned = ceil_div(PART, splits);
  // where the k-th own part of 64 rows lies, of those that block `from` sends to block `to`
  const auto place = [&](int from, int to, int i, int k) {
    // [slot]
    const int slot = from < to ? from : from - 1;
    // [/slot]
    return received + (((slot * (Tile::WM / 64) + i) * owned + k) * THREADS + thread) * 16;
  };
  for_parts<Tile>(splits, [&](int i, int j, int owner, int k) {
    // [sends]
    if (owner != split) st_async4(mapa(place(split, owner, i, k), owner), acc[i][j], mapa(arrived, owner));
    // [/sends]
  });
  // [wait]
  mbarrier_wait_parity_cluster(arrived, 0);
  // [/wait]
  // [adds]
  for (int from = 0; from < splits; ++from) {
    if (from == split) continue;
    for_parts<Tile>(splits, [&](int i, int j, int owner, int k) {
      if (owner != split) return;
      float part[4];
      load4_shared(part, place(from, split, i, k));
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] += part[e];
    });
  }
  // [/adds]
}
// [/exchange]

/// alpha * acc + beta * C into C, of the columns that split `split` owns: from registers, two results
/// at a time; with operands swapped one. Other arguments as store_results().
template <class Tile, class TC>
__device__ __forceinline__ void store_owned(const float (&acc)[Tile::WM / 64][Tile::BN / 8][4], int split, int splits,
                                            Coord first, int M, int N, float alpha, float beta, TC* __restrict__ C,
                                            int ldc) {
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;
  for_parts<Tile>(splits, [&](int i, int j, int owner, int) {
    if (owner != split) return;
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const auto [c_row, c_col] = mma_c(lane, e);
      const int m = first.row + i * 64 + warp % 4 * 16 + c_row, n = first.col + j * 8 + c_col;
      TC* const c = C + (Tile::SWAP_AB ? static_cast<size_t>(n) * ldc + m : static_cast<size_t>(m) * ldc + n);
      const int next = Tile::SWAP_AB ? ldc : 1;  // from column n of D to column n + 1
      float d[2] = {alpha * acc[i][j][e], alpha * acc[i][j][e + 1]};
      for (int x = 0; x < 2; ++x)
        if (beta != 0.0F && m < M && n + x < N) d[x] += beta * to_float(c[x * next]);
      if (!Tile::SWAP_AB && m < M && n + 1 < N) {
        store2(c, d);
      } else {
        for (int x = 0; x < 2; ++x)
          if (m < M && n + x < N) c[x * next] = from_float<TC>(d[x]);
      }
    }
  });
}

template <class Tile, Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc, Grid grid) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES, TURNS = Tile::TURNS;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const auto [cluster_m, cluster_n, splits] = grid.cluster;
  const bool alone = cluster_m * cluster_n == 1;    // nobody else fills this block's stages
  const int c_tiles = grid.tiles_m * grid.tiles_n;  // of clusters
  const int cluster = cluster_id(), clusters = cluster_count();
  const int rank = cluster_ctarank(), rank_m = cluster_m > 1 ? rank : 0, rank_n = cluster_n > 1 ? rank : 0;
  const int split = splits > 1 ? rank : 0;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  const auto first_result = [&](int c_tile) -> Coord {  // of D, in this block's tile
    const auto [tile_row, tile_col] = raster(c_tile, grid.tiles_m, grid.tiles_n, grid.group_size_m);
    return {(tile_row * cluster_m + rank_m) * BM, (tile_col * cluster_n + rank_n) * BN};
  };

  // 2. set up
  const int all_k_tiles = ceil_div(K, BK);
  const auto [first_k_tile, k_tiles] =
      splits > 1 ? k_tiles_of_split(split, splits, all_k_tiles) : KTileRange{0, all_k_tiles};
  // mbarriers of each stage: its k tile has landed; it has been multiplied. And one for the other splits' partial sums
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  const uint32_t arrived = empty + STAGES * 8;
  // [producer]
  // One thread. A template, so that the loop does not ask what the cluster shares.
  const auto copy_k_tile = [&]<Shares SHARES>(std::integral_constant<Shares, SHARES>, PipelineState<STAGES> state,
                                              Coord first, int k_tile) {
    const auto [row, col] = first;
    const int k = (first_k_tile + k_tile) * BK;
    const int half_a = rank_n * (BM / 2), half_b = rank_m * (BN / 2);  // rows of the half that this block copies
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
    mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES);
    if constexpr (SHARES != SHARES_A)
      cp_async_bulk_tensor_2d(tile_a, map_a, k, row, full + state.index * 8);
    else
      cp_async_bulk_tensor_2d_multicast(tile_a + half_a * BK_BYTES, map_a, k, row + half_a, full + state.index * 8, 3);
    if constexpr (SHARES != SHARES_B)
      cp_async_bulk_tensor_2d(tile_b, map_b, k, col, full + state.index * 8);
    else
      cp_async_bulk_tensor_2d_multicast(tile_b + half_b * BK_BYTES, map_b, k, col + half_b, full + state.index * 8, 3);
  };
  constexpr std::integral_constant<Shares, NOTHING> nothing;
  const int early = alone ? min(k_tiles, min(EARLY, STAGES)) : 0;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, cluster_m * cluster_n * Tile::CONSUMERS / TURNS / 32);
    }
    mbarrier_init(arrived, 1);
    fence_mbarrier_init();
    if (splits > 1) mbarrier_arrive_expect_tx(arrived, received_bytes<Tile>(split, splits));
    for (int k_tile = 0; k_tile < early; ++k_tile) copy_k_tile(nothing, {0, k_tile}, first_result(cluster), k_tile);
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  if (grid.blocks == 1)
    __syncthreads();
  else
    cluster_arrive(), cluster_wait();

  PipelineState<STAGES> state;  // of the next k tile
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp == 0 && elect_sync()) {
      state.advance(early);
      const auto produce = [&](auto shares) {
        for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters) {
          const Coord first = first_result(c_tile);
          for (int k_tile = c_tile == cluster ? early : 0; k_tile < k_tiles; ++k_tile, ++state)
            copy_k_tile(shares, state, first, k_tile);
        }
      };
      if (alone)
        produce(nothing);
      else if (cluster_m > 1)
        produce(std::integral_constant<Shares, SHARES_B>());
      else
        produce(std::integral_constant<Shares, SHARES_A>());
    }
    __syncwarp();
    if (!alone) cluster_arrive(), cluster_wait();
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if (multiplied >= 0 && alone && lane == 0) mbarrier_arrive(empty + multiplied * 8);
    if (multiplied >= 0 && !alone && lane < 2) mbarrier_arrive_cluster(mapa(empty + multiplied * 8, lane));
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

  int part_number = 0;  // of the buffers filled
  const int turn = warpgroup % TURNS;
  if (turn == 1) state.advance(k_tiles);  // the first tile is the other warpgroup's
  for (int c_tile = cluster + turn * clusters; c_tile < c_tiles; c_tile += TURNS * clusters) {
    float acc[WM / 64][BN / 8][4] = {};  // [64 rows][8 columns][results of this lane: mma_c]
    if (TURNS > 1 && c_tile != cluster)
      bar_sync(4 + warpgroup, Tile::CONSUMERS);  // the other warpgroup has issued all of its wgmma
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1))
        prefetch_results<Tile>(first_result(c_tile), M, N, C, ldc);
      multiply_k_tile(acc);
    }
    if (TURNS > 1 && c_tile + clusters < c_tiles) bar_arrive(5 - warpgroup, Tile::CONSUMERS);  // the other's turn
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;
    if (TURNS > 1) state.advance(k_tiles);  // past the other warpgroup's tile

    const Coord of_block = first_result(c_tile), first{of_block.row + (TURNS == 1 ? warpgroup * WM : 0), of_block.col};
    if constexpr (Tile::CAN_SPLIT)
      if (splits > 1) {
        sum_over_cluster<Tile>(acc, split, splits, buffers, arrived);
        store_owned<Tile>(acc, split, splits, first, M, N, alpha, beta, C, ldc);
        break;
      }
    store_results<Tile>(acc, first, M, N, alpha, beta, C, ldc, map_c,
                        buffers + warpgroup * Tile::BUFFERS * Tile::C_BYTES, part_number);
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
  if (!alone) cluster_arrive(), cluster_wait();  // a block that has exited has no mbarriers to arrive at
}

// [choice]
constexpr double REQUESTED_PER_CLOCK = 56;  // bytes that an SM asks L2 for, with all SMs at work
constexpr double COPIED_PER_CLOCK = 65;     // bytes that it receives, multicast or not
constexpr double UNALIGNED = 0.6;           // of both, where rows of A and B do not begin at multiples of 128 bytes
constexpr double EPILOGUE_CLOCKS = 0.09;    // per result, where no other warpgroup multiplies
constexpr double EXCHANGE_CLOCKS = 8000;    // of partial sums, and a split's own start
constexpr double PAIR_CLOCKS = 1400;        // until both blocks of a pair can begin

/// What a product takes with a tile: waves times clocks.
template <class Tile, Type type>
double clocks(const Problem& p, const Grid& grid) {
  constexpr int BK = Tile::BK_BYTES / Operand<type>::BYTES;
  const int rows = Tile::SWAP_AB ? p.n : p.m, columns = Tile::SWAP_AB ? p.m : p.n;  // of D
  if (!grid.possible) return INFINITY;
  const int splits = grid.cluster.splits, k_tiles = ceil_div(p.k, BK);
  const int waves = ceil_div(grid.tiles_m * grid.tiles_n, grid.resident());
  const int requested = min(Tile::BM, rows) / grid.cluster.n + min(Tile::BN, columns) / grid.cluster.m;  // rows
  const double requests = requested * Tile::BK_BYTES / REQUESTED_PER_CLOCK;
  const double copies = Tile::STAGE_BYTES / COPIED_PER_CLOCK;
  const double aligned = p.lda % BK == 0 && p.ldb % BK == 0 ? 1 : UNALIGNED;
  const double multiply = Tile::BM * Tile::BN / 32;  // 2048 multiply-adds of 16 bits per clock
  const double epilogue = EPILOGUE_CLOCKS * Tile::BM * Tile::BN;
  return waves * ceil_div(k_tiles, splits) * max(multiply, max(requests, copies) / aligned) +
         (Tile::TURNS == 1 ? waves : 1) * epilogue +
         (splits > 1        ? EXCHANGE_CLOCKS
          : grid.blocks > 1 ? PAIR_CLOCKS
                            : 0);
}

/// f<Tile, type, TC>(grid) for the tile and the cluster with the fewest clocks.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    return [&]<class... Tile>(std::type_identity<std::tuple<Tile...>>) {
      using Result = decltype(f.template operator()<std::tuple_element_t<0, Tiles>, type, TC>(Grid()));
      struct Choice {
        double clocks = INFINITY;
        Grid grid = {};
        Result (*call)(F&, const Grid&) = nullptr;
      } best;
      const auto weigh = [&]<class T>(const Grid& grid) {
        const double predicted = clocks<T, type>(p, grid);
        if (!best.call || predicted < best.clocks)
          best = {predicted, grid, [](F& f, const Grid& grid) { return f.template operator()<T, type, TC>(grid); }};
      };
      for (const Cluster& cluster : CLUSTERS)
        (weigh.template operator()<Tile>(
             Grid::of<Tile>(p, cluster, ceil_div(p.k, Tile::BK_BYTES / Operand<type>::BYTES))),
         ...);
      return best.call(f, best.grid);
    }(std::type_identity<Tiles>());
  });
}
// [/choice]

std::string refuses(const Problem& p) {
  const std::string why = refuses_mma_sync(p);
  if (!why.empty()) return why;
  return for_kernel(p, [&]<class Tile, Type type, class TC>(const Grid& grid) -> std::string {
    return grid.possible ? "" : "no such splits";  // of ONLY one tile and cluster
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class Tile, Type type, class TC>(const Grid& grid) {
    using T = typename Operand<type>::Element;
    using Box = CBox<Tile, TC>;
    struct Matrix {
      const void* data;
      int rows, ld;
      CUtensorMap map(int columns, int box_rows) const {
        // DRAM sends 256 bytes where 128 are asked for: the next k tile's, where rows begin at multiples of 256
        const bool aligned = ld * sizeof(T) % 256 == 0;
        return tensor_map<T>(data, rows, columns, ld, {box_rows},
                             aligned ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_NONE);
      }
    } a = {p.a, p.m, p.lda}, b = {p.b, p.n, p.ldb};  // whose rows are rows and columns of D
    if (Tile::SWAP_AB) std::swap(a, b);
    const auto kernel = gemm<Tile, type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(grid.blocks), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = grid.clusters() * grid.blocks;
    config.blockDim = Tile::THREADS, config.dynamicSmemBytes = Tile::SMEM_BYTES, config.stream = p.stream;
    config.attrs = &cluster, config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, kernel, a.rows, b.rows, p.k, p.alpha, a.map(p.k, Tile::BM / grid.cluster.n),
                                  b.map(p.k, Tile::BN / grid.cluster.m),
                                  tensor_map<TC>(p.c, p.m, p.n, p.ldc, {Box::ROWS, Box::BYTES}), p.beta, p.C<TC>(),
                                  p.ldc, grid));
  });
}

const Registration registration{{
    .number = "30",
    .name = "split_k_cluster",
    .idea = "where tiles are few the blocks of a cluster split K, and send one another partial sums",
    .predecessor = "29",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>(const Grid&) {
            return Resources{(const void*)gemm<Tile, type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
