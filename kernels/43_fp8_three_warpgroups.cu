// 43_fp8_three_warpgroups · while one warpgroup promotes, two multiply
//
// Idea              In 42 the tensor cores idle where both warpgroups promote. With a third, two have wgmma queued while one promotes.
//                   And a warpgroup that has promoted its last k tile issues the first wgmma of its next tile before it stores: the
//                   partial sums have registers of their own, so the epilogue hides, too.
// Changed from 42   three warpgroups of 64 rows; tiles of 64 to 128 columns, whose columns may have two scales; operands swapped, so
//                   that few rows of A fill a tile; for few tiles, a tile of 64 rows that the warpgroups share along k
// Expect            768 clocks per k tile of 192x128, all of them of the tensor cores: 8192 FLOP per clock and SM in the main loop, 1.3
//                   times 42; of that power takes some
// Limiter now       power where tiles are many; the last wave; copies into shared memory where tiles are narrow
// New instructions  wgmma m64n88 and m64n120
// Limits            as 42
// Run               ./run_all.sh run 43 4096 4096 4096 --scales blocks --out same
// Read              docs/43_fp8_three_warpgroups.md
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "common/hopper/cost_model.h"
#include "common/hopper/descriptor.h"
#include "common/hopper/epilogue.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/preferred.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/ptx/wgmma.h"
#include "common/ptx/wgmma_n.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/tunable.h"

using namespace ladder;

namespace {

/// What the rows of tiles are rows of.
enum Operands {
  IN_ORDER,  ///< D = A B is C: rows of A, and columns of B
  SWAPPED,   ///< D = B^T A^T is the transpose of C: columns of B, and rows of A
};

/// What the warpgroups of a block share.
enum Sharing {
  ROWS,  ///< a tile of 192 rows, of which each computes 64
  K_TILES,  ///< the k tiles of a tile of 64 rows, of which each multiplies every third; then one of them adds the sums of all
};

struct Configuration {
  const char* name;
  Sharing sharing;
  int parts;  ///< of 64 rows, that a warpgroup multiplies one after the other; with two parts there are two warpgroups, with one three
  int bn;     ///< columns of D
  int stages;   ///< k tiles in shared memory: one is multiplied, the others are being copied
  int buffers;  ///< for 64 x 128 bytes of results, per warpgroup that stores: one is filled, the others are being stored
  Operands operands = IN_ORDER;
};

// [configurations]
// Names: rows x columns of a tile, t operands swapped, k the k tiles shared.
constexpr Configuration CONFIGURATIONS[] = {
// name, sharing, parts, columns, stages, buffers, operands
#ifdef TUNE_ONE
    {"one", ROWS, TUNABLE(PARTS, 1), TUNABLE(BN, 128), TUNABLE(STAGES, 4), TUNABLE(BUFFERS, 2), IN_ORDER},
#else
    {"256x128", ROWS, 2, 128, 3, 2},
    {"192x128", ROWS, 1, 128, 4, 2},
    {"192x120", ROWS, 1, 120, 4, 1},
    {"192x96", ROWS, 1, 96, 4, 2},
    {"192x88", ROWS, 1, 88, 5, 1},
    {"256x128t", ROWS, 2, 128, 3, 2, SWAPPED},
    {"192x128t", ROWS, 1, 128, 4, 2, SWAPPED},
    {"192x112t", ROWS, 1, 112, 4, 2, SWAPPED},
    {"192x96t", ROWS, 1, 96, 4, 2, SWAPPED},
    {"192x64t", ROWS, 1, 64, 5, 1, SWAPPED},
    {"64x128k", K_TILES, 1, 128, 6, 2},
    {"64x64k", K_TILES, 1, 64, 9, 1},
    {"64x128tk", K_TILES, 1, 128, 6, 1, SWAPPED},
    {"64x64tk", K_TILES, 1, 64, 9, 1, SWAPPED},
    {"64x32tk", K_TILES, 1, 32, 12, 1, SWAPPED},
    {"64x16tk", K_TILES, 1, 16, 12, 1, SWAPPED},
#endif
};
// [/configurations]
constexpr int CONFIGURATION_COUNT = std::size(CONFIGURATIONS);

/// The constants of configuration INDEX, under the names of 42.
template <int INDEX>
struct Tile {
  static constexpr Configuration CONFIGURATION = CONFIGURATIONS[INDEX];
  static constexpr int PARTS = CONFIGURATION.parts, WARPGROUPS = TUNABLE(WARPGROUPS, PARTS == 2 ? 2 : 3),
                       TURNS = 1;                                                   // that multiply
  static constexpr int SLICES = CONFIGURATION.sharing == K_TILES ? WARPGROUPS : 1;  // of k tiles
  static constexpr int STORING = WARPGROUPS / SLICES;                               // warpgroups that store
  static constexpr int WM = PARTS * 64, BM = STORING * WM;                          // rows of D
  static constexpr int BN = CONFIGURATION.bn;                                       // columns of D
  static constexpr bool SWAP_AB = CONFIGURATION.operands == SWAPPED;
  static constexpr int BK_BYTES = 128, BK = BK_BYTES;  // bytes along k per tile, as many elements: those of a scale
  static constexpr int MMA_K_BYTES = 32;               // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = CONFIGURATION.stages, BUFFERS = CONFIGURATION.buffers;
  static constexpr int CONSUMERS = WARPGROUPS * 128;  // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;     // first comes the producer's warpgroup
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SCALE_A_BYTES = (SWAP_AB ? BN : BM) * 4, SCALE_B_BYTES = 2 * 16;  // of a k tile
  static constexpr int SCALES_BYTES = ceil_div(SCALE_A_BYTES, 128) * 128 + 128;          // of a stage
  static constexpr int C_BYTES = BN % 16 == 0 ? 64 * 128 : 64 * BN * 2;  // a buffer for results of a warpgroup
  static constexpr int SUMS_BYTES = (SLICES - 1) * BM * BN * 4;          // of the warpgroups that do not store
  static constexpr int SMEM_BYTES =
      STAGES * (STAGE_BYTES + SCALES_BYTES) + STORING * BUFFERS * C_BYTES + SUMS_BYTES + STAGES * 16;
  static_assert(STAGES % SLICES == 0, "a stage is always the same warpgroup's");
  static constexpr int ORDER = SLICES > 1 ? 0 : TUNABLE(ORDER, 1);
  static constexpr int EARLY_WAIT = TUNABLE(EARLY_WAIT, 1);  // 0 at the issue, 1 both, 2 before the promotion
  static constexpr bool HIDE = SLICES == 1 && TUNABLE(HIDE, 1), PROMOTE = TUNABLE(PROMOTE, 1);
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0 && C_BYTES % 1024 == 0,
                "TMA swizzles by bits of the address: 8 rows of 128 bytes");
  static_assert(SMEM_BYTES <= 227 * 1024);
};

constexpr int EARLY = 3;                               // k tiles that a block asks for before its barrier
constexpr int GROUP_ROWS = TUNABLE(GROUP_ROWS, 2048);  // of D: rows of tiles that are computed column by column
constexpr double KEPT = 2 * 1024 * 1024;  // bytes of the operand of D's columns that L2 keeps while tiles go row by row

/// A product in tiles, as the host divides it: a division takes a thread some 60 clocks.
struct Grid {
  int tiles_m, tiles_n;  // of D
  int group_size_m;      // rows of tiles that are computed column by column: raster()
};

/// The sums of all warpgroups, in those of the first: each has multiplied its own k tiles of the same tile. `sums` is the memory for them. All
/// threads of the consumer warpgroups, with named barrier 4.
template <class Tile>
__device__ __forceinline__ void sum_slices(float (&acc)[1][Tile::BN / 8][4], uint32_t sums) {
  const int warpgroup = warp_index_sync() / 4 - 1, thread = threadIdx.x % 128;
  const auto place = [&](int slice, int j) { return sums + (((slice - 1) * (Tile::BN / 8) + j) * 128 + thread) * 16; };
  if (warpgroup > 0)
#pragma unroll
    for (int j = 0; j < Tile::BN / 8; ++j) store4_shared(place(warpgroup, j), acc[0][j]);
  bar_sync(4, Tile::CONSUMERS);
  if (warpgroup == 0)
#pragma unroll
    for (int slice = 1; slice < Tile::SLICES; ++slice)
#pragma unroll
      for (int j = 0; j < Tile::BN / 8; ++j) {
        float other[4];
        load4_shared(other, place(slice, j));
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[0][j][e] += other[e];
      }
  bar_sync(4, Tile::CONSUMERS);  // the next tile's sums come to the same place
}

template <class Tile, Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_scale_a,
         const __grid_constant__ CUtensorMap map_scale_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc, Grid grid) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK = Tile::BK, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, SLICES = Tile::SLICES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int c_tiles = grid.tiles_m * grid.tiles_n;
  const int block = blockIdx.x, blocks = gridDim.x;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  const int slice = SLICES > 1 ? warpgroup : 0, row_of_warpgroup = SLICES > 1 ? 0 : warpgroup * WM;
  const auto first_result = [&](int c_tile) -> Coord {  // of D, in this block's tile
    const auto [tile_row, tile_col] = raster(c_tile, grid.tiles_m, grid.tiles_n, grid.group_size_m);
    return {tile_row * BM, tile_col * BN};
  };

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t sums = buffers + Tile::STORING * Tile::BUFFERS * Tile::C_BYTES;
  const uint32_t scales = sums + Tile::SUMS_BYTES;
  const uint32_t full = scales + STAGES * Tile::SCALES_BYTES, empty = full + STAGES * 8;
  // [producer]
  // One thread: a k tile of A and B, and its scales.
  const auto copy_k_tile = [&](PipelineState<STAGES> state, Coord first, int k_tile) {
    const uint32_t barrier = full + state.index * 8;
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES, scale_b = scale_a + Tile::SCALES_BYTES - 128;
    mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    mbarrier_arrive_expect_tx(barrier, Tile::STAGE_BYTES + Tile::SCALE_A_BYTES + Tile::SCALE_B_BYTES);
    cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, first.row, barrier);
    cp_async_bulk_tensor_2d(tile_b, map_b, k_tile * BK, first.col, barrier);
    cp_async_bulk_tensor_2d(scale_a, map_scale_a, Tile::SWAP_AB ? first.col : first.row, k_tile, barrier);
    cp_async_bulk_tensor_2d(scale_b, map_scale_b, k_tile / 4 * 4, (Tile::SWAP_AB ? first.row : first.col) / SCALE_BLOCK,
                            barrier);
  };
  const int early = min(k_tiles, EARLY);
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / SLICES / 32);
    }
    fence_mbarrier_init();
    for (int k_tile = 0; k_tile < early; ++k_tile) copy_k_tile({0, k_tile}, first_result(block), k_tile);
    prefetch_tensormap(map_c);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<(Tile::WARPGROUPS == 2 ? 40 : 32)>();
    if (warp == 0 && elect_sync()) {
      state.advance(early);
      for (int c_tile = block, k_tile = early; c_tile < c_tiles; c_tile += blocks, k_tile = 0) {
        const Coord first = first_result(c_tile);
        for (; k_tile < k_tiles; ++k_tile, ++state) copy_k_tile(state, first, k_tile);
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<(Tile::WARPGROUPS == 2 ? 232 : 160)>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> partial -FFMA-> acc
  constexpr int PARTS = Tile::PARTS, ORDER = Tile::ORDER;
  float partial[BN / 8][4] = {};  // sums of a k tile: [8 columns][results of this lane: mma_c]
  float acc[PARTS][BN / 8][4] = {};
  const auto wait_k_tile = [&] { mbarrier_wait_parity(full + state.index * 8, state.phase); };
  // Warpgroups multiply in turn, so that one's wgmma are queued behind another's, and do not alternate with them.
  const auto turn = [&](int of) { return 5 + of; };
  const auto hand_over = [&] { bar_arrive(turn(warpgroup + 1 == Tile::WARPGROUPS ? 0 : warpgroup + 1), 256); };
  const auto issue = [&](int part) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + (row_of_warpgroup + part * 64) * BK_BYTES),
                   b = descriptor(tile_a + BM * BK_BYTES);
    if (Tile::EARLY_WAIT < 2) wait_k_tile();
    if (ORDER) bar_sync(turn(warpgroup), 256);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {  // the first does not add to what there is
      if (ORDER == 2 && k_step == K_STEPS - 1) wgmma_commit_group();
      wgmma<type, BN>(partial, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                      Tile::PROMOTE ? k_step > 0 : 1);
      if (ORDER == 3 && k_step == K_STEPS - 2) hand_over();
    }
    wgmma_commit_group();
    if (ORDER == 2) wgmma_wait_group<1>();
    if (ORDER == 1 || ORDER == 2) hand_over();
  };
  // The results of this warpgroup begin at `first` in D. The last part of a k tile frees its stage.
  const auto promote = [&](int part, Coord first, int k_tile) {
    const int row_of_part = row_of_warpgroup + part * 64;
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES,
                   scale_b = scale_a + Tile::SCALES_BYTES - 128 + k_tile % 4 * 4;
    const uint32_t done = empty + state.index * 8;
    const auto go_on = [&] {  // while the tensor cores multiply
      if (part + 1 < PARTS) return;
      state.advance(SLICES);
      if (Tile::EARLY_WAIT && k_tile + SLICES < k_tiles) wait_k_tile();
    };
    if constexpr (!Tile::PROMOTE) {
      go_on();
      wgmma_wait_group<0>();
      if (part + 1 == PARTS && lane == 0) mbarrier_arrive(done);
      if (k_tile + SLICES >= k_tiles)
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[part][j][e] += partial[j][e];
    } else if constexpr (Tile::SWAP_AB) {  // the rows have one scale, each column has its own
      const int next = (first.row - row_of_warpgroup) % SCALE_BLOCK + row_of_part >= SCALE_BLOCK;  // of the scales of B
      const float of_rows = load_shared(scale_b + next * 16);
      go_on();
      wgmma_wait_group<0>();
#pragma unroll
      for (int j = 0; j < BN / 8; ++j) {
        float scale[2];
        load2_shared(scale, scale_a + (j * 8 + mma_c(lane, 0).col) * 4);
        scale[0] *= of_rows, scale[1] *= of_rows;
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[part][j][e] += scale[e % 2] * partial[j][e];
      }
      if (part + 1 == PARTS && lane == 0) mbarrier_arrive(done);
    } else {  // the columns have one scale, or from column `next` on another
      constexpr bool TWO = SCALE_BLOCK % BN != 0;
      const int next = SCALE_BLOCK - first.col % SCALE_BLOCK;
      float scale[2][2];  // [of the columns][of the two rows in which this lane has results]
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float of_row = load_shared(scale_a + (row_of_part + warp % 4 * 16 + mma_c(lane, half * 2).row) * 4);
        scale[0][half] = of_row * load_shared(scale_b);
        if (TWO) scale[1][half] = of_row * load_shared(scale_b + 16);
      }
      go_on();
      wgmma_wait_group<0>();
      if (part + 1 == PARTS && lane == 0) mbarrier_arrive(done);
#pragma unroll
      for (int j = 0; j < BN / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          acc[part][j][e] += (TWO && j * 8 >= next ? scale[TWO][e / 2] : scale[0][e / 2]) * partial[j][e];
    }
  };
  // [/main-loop]

  // 4. store
  int part_number = 0;  // of the buffers filled
  const auto store = [&](Coord first) {
    store_results<Tile>(acc, first, M, N, alpha, beta, C, ldc, map_c,
                        buffers + row_of_warpgroup / WM * Tile::BUFFERS * Tile::C_BYTES, part_number);
#pragma unroll
    for (int part = 0; part < PARTS; ++part)
#pragma unroll
      for (int j = 0; j < BN / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[part][j][e] = 0;
  };
  state.advance(slice);
  if (ORDER && warpgroup == Tile::WARPGROUPS - 1) bar_arrive(turn(0), 256);
  Coord first, stored{-1, 0};  // results of this warpgroup in the tile, and in the tile before
  int k_tile = slice;
  for (int c_tile = block; c_tile < c_tiles; c_tile += blocks) {
    const Coord of_block = first_result(c_tile);
    first = {of_block.row + row_of_warpgroup, of_block.col};
    if (beta != 0.0F) prefetch_results<Tile>(of_block, M, N, C, ldc);
    if (Tile::EARLY_WAIT == 2 && k_tile < k_tiles) wait_k_tile();
#pragma unroll 1
    for (; k_tile < k_tiles; k_tile += SLICES) {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        issue(part);
        if (Tile::HIDE && part == 0 && k_tile == 0 && stored.row >= 0) store(stored);  // the tensor cores have work
        promote(part, first, k_tile);
      }
    }
    k_tile -= k_tiles;
    stored = first;
    if constexpr (SLICES > 1) {
      sum_slices<Tile>(acc, sums);
      if (warpgroup == 0) {
        store(first);
      } else {
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[0][j][e] = 0;
      }
    } else if (!Tile::HIDE) {
      store(first);
    }
  }
  if (Tile::HIDE) store(first);
  if (ORDER && warpgroup == 0) bar_sync(turn(0), 256);  // no one's turn is left
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
}

/// What a configuration would do for a product, and the time that it would take.
struct Choice {
  int index;  // of the configuration
  Grid grid;
  double microseconds;
};

// [choice]
constexpr double CLOCK_REACHED = 0.86;  // of the SMs' highest clock, under load
/// As 33's, but that three warpgroups hide what two do not: the promotion and the epilogue.
constexpr CostConstants COST = {.turn_clocks = 10, .exposed = 0.2};

template <class Tile, class TC>
Choice weigh(const Problem& p, int index, const DeviceLimits& card) {
  const double k_bytes = p.k;
  const auto whole_lines = [](int ld) {
    return ld % Tile::BK == 0 || Tile::BK % ld == 0;
  };  // or whole rows in each line
  TiledProduct product{p.m,
                       p.n,
                       ceil_div(p.k, Tile::BK),
                       whole_lines(p.lda) && whole_lines(p.ldb),
                       (p.m + static_cast<double>(p.n)) * k_bytes + static_cast<double>(p.m) * p.n * sizeof(TC),
                       sizeof(TC)};
  if (Tile::SWAP_AB) std::swap(product.rows, product.columns);
  const Grid grid{ceil_div(product.rows, Tile::BM), ceil_div(product.columns, Tile::BN),
                  product.columns * k_bytes <= KEPT ? 1 : ceil_div(GROUP_ROWS, Tile::BM)};
  const Tiling tiling{Tile::BM, Tile::BN, 1, 1,
                      card.sms, true,     1, CBox<Tile, TC>::BYTES == 32 || (Tile::SWAP_AB && sizeof(TC) == 4)};
  return {index, grid,
          predicted_us(product, tiling, {CLOCK_REACHED * card.clock_mhz, card.memory_bytes_per_us()}, COST)};
}
// [/choice]

/// f<Tile<index>>()
template <int FIRST = 0, class F>
auto with_tile(int index, F&& f) {
  if constexpr (FIRST + 1 < CONFIGURATION_COUNT)
    if (index != FIRST) return with_tile<FIRST + 1>(index, f);
  return f.template operator()<Tile<FIRST>>();
}

/// The fastest first.
template <class TC>
std::array<Choice, CONFIGURATION_COUNT> choices(const Problem& p) {
  const DeviceLimits card = device_limits();
  std::array<Choice, CONFIGURATION_COUNT> found;
  for (int i = 0; i < CONFIGURATION_COUNT; ++i)
    found[i] = with_tile(i, [&]<class Tile>() { return weigh<Tile, TC>(p, i, card); });
  std::stable_sort(found.begin(), found.end(),
                   [](const Choice& a, const Choice& b) { return a.microseconds < b.microseconds; });
  return found;
}

/// The one to launch: what was measured to be the fastest, else what is predicted to be.
template <class TC>
Choice choice(const Problem& p) {
  const std::string name = preferred("43", p);
  const auto all = choices<TC>(p);
  for (const Choice& one : all)
    if (name == CONFIGURATIONS[one.index].name) return one;
  return all[0];
}

template <class Tile, Type type, class TC>
Resources resources() {
  return {(const void*)gemm<Tile, type, TC>, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, Tile::BK}};
}

/// How TMA loads operands and scales, and stores C.
struct Maps {
  CUtensorMap a, b, scale_a, scale_b, c;
};

template <class Tile, Type type, class TC>
Maps maps(const Problem& p) {
  using T = typename Operand<type>::Element;
  using Box = CBox<Tile, TC>;
  const int k_tiles = ceil_div(p.k, Tile::BK);
  // The first operand's rows are rows of D, the second's are its columns.
  const auto a = [&](int rows) { return tensor_map<T>(p.a, p.m, p.k, p.lda, {rows}, CU_TENSOR_MAP_L2_PROMOTION_NONE); };
  const auto b = [&](int rows) { return tensor_map<T>(p.b, p.n, p.k, p.ldb, {rows}, CU_TENSOR_MAP_L2_PROMOTION_NONE); };
  return {Tile::SWAP_AB ? b(Tile::BM) : a(Tile::BM), Tile::SWAP_AB ? a(Tile::BN) : b(Tile::BN),
          tensor_map<float>(p.scale_a, k_tiles, p.m, scale_ld_a(p.m), {1, Tile::SCALE_A_BYTES, false}),
          tensor_map<float>(p.scale_b, ceil_div(p.n, SCALE_BLOCK), k_tiles, scale_ld_b(p.k),
                            {2, Tile::SCALE_B_BYTES / 2, false}),
          tensor_map<TC>(p.c, p.m, p.n, p.ldc, {Box::ROWS, Box::BYTES})};
}

template <class Tile, Type type, class TC>
void launch(const Problem& p, const Grid& grid, const Maps& maps) {
  const int blocks = min(grid.tiles_m * grid.tiles_n, device_limits().sms);
  gemm<Tile, type, TC><<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
      Tile::SWAP_AB ? p.n : p.m, Tile::SWAP_AB ? p.m : p.n, p.k, p.alpha, maps.a, maps.b, maps.scale_a, maps.scale_b,
      maps.c, p.beta, p.C<TC>(), p.ldc, grid);
  cuda_check(cudaGetLastError());
}

/// A launch whose pointers, factors and stream may change. The maps are made anew when a matrix lies elsewhere.
template <class Tile, Type type, class TC>
std::function<void(const Problem&)> prepared(const Grid& grid) {
  cuda_check(cudaFuncSetAttribute(gemm<Tile, type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  return [grid, known = Maps{}, of = std::array<const void*, 5>{}](const Problem& p) mutable {
    if (const std::array<const void*, 5> now = {p.a, p.b, p.scale_a, p.scale_b, p.c}; of != now)
      known = maps<Tile, type, TC>(p), of = now;
    launch<Tile, type, TC>(p, grid, known);
  };
}

/// f<Tile, type, TC>(choice) for the one to launch.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    const Choice best = choice<TC>(p);
    return with_tile(best.index, [&]<class Tile>() { return f.template operator()<Tile, type, TC>(best); });
  });
}

std::function<void(const Problem&)> prepare(const Problem& p) {
  return for_kernel(
      p, [&]<class Tile, Type type, class TC>(const Choice& choice) { return prepared<Tile, type, TC>(choice.grid); });
}

std::vector<Plan> plans(const Problem& p) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    std::vector<Plan> plans;
    for (const Choice& one : choices<TC>(p))
      plans.push_back(with_tile(one.index, [&]<class Tile>() -> Plan {
        return {Tile::CONFIGURATION.name, one.microseconds, resources<Tile, type, TC>(),
                prepared<Tile, type, TC>(one.grid)};
      }));
    return plans;
  });
}

std::string explain(const Problem& p) {
  return visit(Fp8Types{}, p.type, p.out, [&]<Type type, class TC>() {
    std::string text = "predicted, the fastest first:\n";
    for (const Choice& one : choices<TC>(p)) {
      const int tiles = one.grid.tiles_m * one.grid.tiles_n;
      char line[160];
      std::snprintf(line, sizeof line, "  %-9s %9.1f us: %d tile%s\n", CONFIGURATIONS[one.index].name, one.microseconds,
                    tiles, tiles == 1 ? "" : "s");
      text += line;
    }
    return text;
  });
}

const Registration registration{{
    .number = "43",
    .name = "fp8_three_warpgroups",
    .idea = "three warpgroups: while one promotes, two multiply",
    .predecessor = "42",
    .types = {Type::e4m3},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::blocks},
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync_of<Fp8Types>,
    .resources =
        [](const Problem& p) {
          return for_kernel(
              p, [&]<class Tile, Type type, class TC>(const Choice&) { return resources<Tile, type, TC>(); });
        },
    .launch = [](const Problem& p) { prepare(p)(p); },
    .explain = explain,
    .plans = plans,
    .prepare = prepare,
}};

}  // namespace
