// 27_tile_widths · one kernel for tiles of many sizes, and the host picks one for each product
//
// Idea              A tile of 128x192 leaves most SMs idle in the last wave of many products, and small products have less than a
//                   wave of them. wgmma multiplies any number of columns up to 256: one text becomes a kernel for each tile, and
//                   the host launches the one with the fewest waves times clocks.
// Changed from 26   Tile is a template: rows, columns, warpgroups, schedule; a list of tiles; the choice
// Expect            2048 cubed has 88 tiles of 128x192 for 66 clusters, 2 waves; 64 of 128x256 are one: 1.4 times 26
// Limiter now       wgmma where tiles are large; else copies into shared memory; products of less than one wave
// New instructions  wgmma of other widths
// Limits            as 21
// Run               ./run_all.sh run 27 2048 2048 2048 --type bf16
// Read              docs/27_tile_widths.md
#include <algorithm>
#include <array>
#include <tuple>

#include "common/hopper/descriptor.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
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

template <Schedule SCHEDULE, int WARPGROUPS_, int WM_, int BN_, int STAGES_, int BUFFERS_>
struct Tile {
  static constexpr int WARPGROUPS = WARPGROUPS_;                        // that multiply
  static constexpr int TURNS = SCHEDULE == PING_PONG ? WARPGROUPS : 1;  // warpgroups that take turns
  static constexpr int WM = WM_, BM = WARPGROUPS / TURNS * WM;          // rows of C per warpgroup, and per tile
  static constexpr int BN = BN_;                                        // columns of C per tile
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = STAGES_;  // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int CLUSTER = 2;       // blocks, one above the other in C
  static constexpr int GROUP_SIZE_M = 2048 / (CLUSTER * BM);              // clusters per group
  static constexpr int CONSUMERS = WARPGROUPS * 128;                      // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;                         // first comes the producer's warpgroup
  static constexpr int CONSUMER_REGISTERS = WARPGROUPS == 3 ? 160 : 240;  // per thread
  static constexpr int PRODUCER_REGISTERS = WARPGROUPS == 3 ? 32 : 24;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 128 bytes of 64 rows
  static constexpr int BUFFERS = BUFFERS_;  // per warpgroup: one is filled, the others are being stored
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + WARPGROUPS * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

// [tiles]
using AllTiles = std::tuple<  // schedule, warpgroups, rows per warpgroup, columns, stages, buffers
    Tile<COOPERATIVE, 2, 128, 192, 3, 3>, Tile<COOPERATIVE, 2, 64, 256, 4, 2>, Tile<COOPERATIVE, 2, 64, 128, 5, 2>,
    Tile<COOPERATIVE, 3, 64, 160, 4, 2>, Tile<COOPERATIVE, 3, 64, 128, 5, 1>, Tile<PING_PONG, 2, 128, 192, 4, 4>,
    Tile<PING_PONG, 2, 128, 160, 5, 2>, Tile<PING_PONG, 2, 64, 256, 4, 2>, Tile<PING_PONG, 2, 64, 128, 8, 2>,
    Tile<PING_PONG, 2, 64, 64, 11, 2>>;
// [/tiles]
constexpr int ONLY = TUNABLE(ONLY, -1);  // bench/sweep.py compiles one tile at a time
using Tiles =
    std::conditional_t<(ONLY < 0), AllTiles, std::tuple<std::tuple_element_t<(ONLY < 0 ? 0 : ONLY), AllTiles>>>;

/// What TMA stores at a time of C's rows in a tile: as many bytes as it can swizzle that divide a row.
template <class Tile, class TC>
struct CBox {
  static constexpr int ROW_BYTES = Tile::BN * sizeof(TC);
  static constexpr int BYTES = ROW_BYTES % 128 == 0 ? 128 : ROW_BYTES % 64 == 0 ? 64 : 32;
  static constexpr int COLUMNS = BYTES / sizeof(TC);
};

/// Two neighbouring elements of C into shared memory.
template <class TC>
__device__ __forceinline__ void store2_shared(uint32_t smem, const float (&x)[2]) {
  if constexpr (sizeof(TC) == 4) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem), "f"(x[0]), "f"(x[1]) : "memory");
  } else {
    union {
      TC element[2];
      uint32_t bits;
    } d = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem), "r"(d.bits) : "memory");
  }
}

template <class Tile, Type type, class TC>
__global__ void __cluster_dims__(Tile::CLUSTER, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES, TURNS = Tile::TURNS;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, CLUSTER = Tile::CLUSTER;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;  // of clusters
  const int cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, rank = cluster_ctarank();
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, CLUSTER * Tile::CONSUMERS / TURNS / 32);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  cluster_arrive(), cluster_wait();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp == 0 && elect_sync()) {
      for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int row = (tile_row * CLUSTER + rank) * BM, half = rank * (BN / CLUSTER);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES);
          cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, row, full + state.index * 8);
          cp_async_bulk_tensor_2d_multicast(tile_a + (BM + half) * BK_BYTES, map_b, k_tile * BK, tile_col * BN + half,
                                            full + state.index * 8, (1 << CLUSTER) - 1);
          ++state;
        }
      }
    }
    __syncwarp();
    cluster_arrive(), cluster_wait();
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int LINES = ceil_div(BN * sizeof(TC), 128);  // of a row of the tile
#pragma unroll 1
    for (int i = (threadIdx.x - 128) % (Tile::CONSUMERS / TURNS); i < BM * LINES; i += Tile::CONSUMERS / TURNS) {
      const int m = (tile_row * CLUSTER + rank) * BM + i / LINES, n = tile_col * BN + i % LINES * (128 / sizeof(TC));
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if (multiplied >= 0 && lane < CLUSTER) mbarrier_arrive_cluster(mapa(empty + multiplied * 8, lane));
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
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_c(c_tile);
      multiply_k_tile(acc);
    }
    if (TURNS > 1 && c_tile + clusters < c_tiles) bar_arrive(5 - warpgroup, Tile::CONSUMERS);  // the other's turn
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;
    if (TURNS > 1) state.advance(k_tiles);  // past the other warpgroup's tile

    // [epilogue]
    // 4. epilogue: acc -> smem -TMA-> gmem, 128 bytes of each row at a time
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    using Box = CBox<Tile, TC>;
    constexpr int BUFFERED = 128 / sizeof(TC);  // columns per buffer
#pragma unroll
    for (int i = 0; i < WM / 64; ++i)
#pragma unroll
      for (int first_col = 0; first_col < BN; first_col += BUFFERED) {
        const int row = (tile_row * CLUSTER + rank) * BM + (TURNS == 1 ? warpgroup * WM : 0) + i * 64;
        const int col = tile_col * BN + first_col, columns = BN - first_col < BUFFERED ? BN - first_col : BUFFERED;
        // Neighbouring results of this lane, two by two: where in C, where in a buffer, and what.
        const auto each_pair = [&](auto store) {
#pragma unroll
          for (int j = 0; j < BUFFERED / 8 && first_col + j * 8 < BN; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const auto [c_row, c_col] = mma_c(lane, half * 2);  // of 16 rows and 8 columns
              const int r = warp % 4 * 16 + c_row, m = row + r, j_col = j * 8 + c_col, n = col + j_col;
              const int byte = j_col % Box::COLUMNS * sizeof(TC);  // of a box
              const float* const x = &acc[i][first_col / 8 + j][half * 2];
              float d[2] = {alpha * x[0], alpha * x[1]};
              if (beta != 0.0F && m < M) {  // beta = 0 must not read C: it may hold NaN
                const TC* const gC = C + static_cast<size_t>(m) * ldc;
                if (n < N) d[0] += beta * to_float(gC[n]);
                if (n + 1 < N) d[1] += beta * to_float(gC[n + 1]);
              }
              store(m, n, j_col / Box::COLUMNS * (64 * Box::BYTES) + swizzle(r, byte / 16, Box::BYTES) + byte % 16, d);
            }
        };
        // TMA would write all of the 16 bytes in which N ends.
        if (N % (16 / sizeof(TC)) != 0 && col + columns > N) {
          each_pair([&](int m, int n, int, const float(&d)[2]) {
            for (int i = 0; i < 2; ++i)
              if (m < M && n + i < N) C[static_cast<size_t>(m) * ldc + n + i] = from_float<TC>(d[i]);
          });
          if (warp % 4 == 0 && elect_sync())
            cp_async_bulk_commit_group();  // an empty one: the waits below count groups
          continue;
        }
        const uint32_t buffer = buffers + (warpgroup * Tile::BUFFERS + part_number++ % Tile::BUFFERS) * Tile::C_BYTES;
        if (warp % 4 == 0 && elect_sync())
          cp_async_bulk_wait_group_read<Tile::BUFFERS - 1>();  // the store from this buffer has read it
        bar_sync(1 + warpgroup, 128);
        each_pair([&](int, int, int offset, const float(&d)[2]) { store2_shared<TC>(buffer + offset, d); });
        fence_proxy_async_shared();
        bar_sync(1 + warpgroup, 128);
        if (warp % 4 == 0 && elect_sync()) {
#pragma unroll
          for (int c = 0; c < columns; c += Box::COLUMNS)
            cp_async_bulk_tensor_2d_store(map_c, col + c, row, buffer + c / Box::COLUMNS * (64 * Box::BYTES));
          cp_async_bulk_commit_group();
        }
      }
    // [/epilogue]
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
  cluster_arrive(), cluster_wait();  // a block that has exited has no mbarriers to arrive at
}

// [choice]
constexpr double COPIED_PER_CLOCK = 40;   // bytes from L2 that an SM receives, with all SMs at work
constexpr double UNALIGNED = 0.8;         // of that, where rows of A and B do not begin at multiples of 128 bytes
constexpr double EPILOGUE_CLOCKS = 0.09;  // per result, where no other warpgroup multiplies

/// What a product takes with a tile: waves times clocks.
template <class Tile, Type type>
double clocks(const Problem& p) {
  constexpr int BK = Tile::BK_BYTES / Operand<type>::BYTES;
  const int tiles = ceil_div(p.m, Tile::CLUSTER * Tile::BM) * ceil_div(p.n, Tile::BN);
  const int waves = ceil_div(tiles, device_limits().sms / Tile::CLUSTER);
  const double rate = p.lda % BK == 0 && p.ldb % BK == 0 ? COPIED_PER_CLOCK : UNALIGNED * COPIED_PER_CLOCK;
  const double copy = (Tile::BM + Tile::BN / Tile::CLUSTER) * Tile::BK_BYTES / rate;
  const double multiply = Tile::BM * Tile::BN / 32;  // 2048 multiply-adds of 16 bits per clock
  const double epilogue = EPILOGUE_CLOCKS * Tile::BM * Tile::BN;
  return waves * ceil_div(p.k, BK) * max(multiply, copy) + (Tile::TURNS == 1 ? waves : 1) * epilogue;
}

/// f<Tile, type, TC>() for the tile with the fewest clocks.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    return [&]<class... Tile>(std::type_identity<std::tuple<Tile...>>) {
      const std::array predicted = {clocks<Tile, type>(p)...};
      const auto fastest = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
      using Result = decltype(f.template operator()<std::tuple_element_t<0, Tiles>, type, TC>());
      const std::array<Result (*)(F&), sizeof...(Tile)> call = {
          [](F& f) { return f.template operator()<Tile, type, TC>(); }...};
      return call[fastest](f);
    }(std::type_identity<Tiles>());
  });
}
// [/choice]

void launch(const Problem& p) {
  for_kernel(p, [&]<class Tile, Type type, class TC>() {
    using T = typename Operand<type>::Element;
    using Box = CBox<Tile, TC>;
    const auto kernel = gemm<Tile, type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int clusters = ceil_div(p.m, Tile::CLUSTER * Tile::BM) * ceil_div(p.n, Tile::BN);
    const int blocks = min(clusters, device_limits().sms / Tile::CLUSTER) * Tile::CLUSTER;
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN / Tile::CLUSTER}),
        tensor_map<TC>(p.c, p.m, p.n, p.ldc, {64, Box::BYTES}), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "27",
    .name = "tile_widths",
    .idea = "one kernel for ten tiles; the host picks the one with the fewest waves times clocks",
    .predecessor = "26",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>() {
            return Resources{(const void*)gemm<Tile, type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
