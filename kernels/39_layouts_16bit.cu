// 39_layouts_16bit · A and B stored as they are or transposed, and no operand is transposed on the way
//
// Idea              wgmma reads 16-bit operands from shared memory along k or across it. So TMA copies an operand as it lies in memory, and
//                   two bits of the instruction say how it lies: in each layout the same copies and the same products.
// Changed from 33   whether A is M-major and B N-major is a parameter of the kernel: it decides the boxes that TMA copies, a field of the
//                   descriptor, and the step along k; neither clusters nor swapped operands; fewer tiles, of multiples of 64
// Expect            1.00 times 33 in nt where 33 has the same tile, and 1.00 times nt in the other layouts
// Limiter now       as 33
// New instructions  wgmma with imm-trans-a, imm-trans-b
// Limits            as 21; bf16, f16
// Run               ./run_all.sh run 39 4096 4096 4096 --type bf16 --out same --layout tn
// Read              docs/39_layouts_16bit.md
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "common/hopper/cost_model.h"
#include "common/hopper/descriptor.h"
#include "common/hopper/epilogue.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/split_k.h"
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
  Splits splits = NO_SPLITS;
};

// [configurations]
// Names: c cooperative, p ping-pong, rows x columns of a tile, g split-K over the grid.
constexpr Configuration CONFIGURATIONS[] = {
    // name, schedule, warpgroups, rows per warpgroup, columns, stages, buffers, splits
    {"c128x256", COOPERATIVE, 2, 64, 256, 4, 2},
    {"c256x128", COOPERATIVE, 2, 128, 128, 4, 1},
    {"p128x192", PING_PONG, 2, 128, 192, 4, 4},
    {"p128x128", PING_PONG, 2, 128, 128, 6, 2},
    {"p64x128", PING_PONG, 2, 64, 128, 8, 2},
    {"p64x64", PING_PONG, 2, 64, 64, 12, 2},
    {"c128x128 g", COOPERATIVE, 2, 64, 128, 6, 2, SPLITS_OVER_GRID},
    {"c128x64 g", COOPERATIVE, 2, 64, 64, 8, 2, SPLITS_OVER_GRID},
};
// [/configurations]
constexpr int CONFIGURATION_COUNT = std::size(CONFIGURATIONS);

/// The constants of configuration INDEX, under the names of 25. M_MAJOR: the stored rows of A lie along m; N_MAJOR: those of B along n.
template <int INDEX, bool M_MAJOR_, bool N_MAJOR_>
struct Tile {
  static constexpr Configuration CONFIGURATION = CONFIGURATIONS[INDEX];
  static constexpr int WARPGROUPS = CONFIGURATION.warpgroups;
  static constexpr int TURNS = CONFIGURATION.schedule == PING_PONG ? WARPGROUPS : 1;  // warpgroups that take turns
  static constexpr int WM = CONFIGURATION.wm, BM = WARPGROUPS / TURNS * WM;           // rows of D
  static constexpr int BN = CONFIGURATION.bn;
  static constexpr bool SWAP_AB = false, M_MAJOR = M_MAJOR_, N_MAJOR = N_MAJOR_;
  static constexpr bool SPLITS = CONFIGURATION.splits == SPLITS_OVER_GRID;
  static constexpr int BK = 64, BK_BYTES = 128;  // elements and bytes along k per tile
  static constexpr int BOX = 64;                 // rows of A or columns of B in a box that lies across k: 128 bytes
  static constexpr int MMA_K = 16;               // elements along k per wgmma
  static constexpr int K_STEP_A = MMA_K * (M_MAJOR ? 128 : 2), K_STEP_B = MMA_K * (N_MAJOR ? 128 : 2);  // in bytes
  static constexpr int K_STEPS = BK / MMA_K;
  static constexpr int STAGES = CONFIGURATION.stages, BUFFERS = CONFIGURATION.buffers;
  static constexpr int CONSUMERS = WARPGROUPS * 128;                   // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;                      // first comes the producer's warpgroup
  static constexpr bool MANY_RESULTS = WM * BN >= 128 * 176;           // that a thread holds
  static constexpr int CONSUMER_REGISTERS = MANY_RESULTS ? 240 : 232;  // per thread
  static constexpr int PRODUCER_REGISTERS = MANY_RESULTS ? 24 : 40;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 128 bytes of 64 rows
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + WARPGROUPS * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(BM % BOX == 0 && BN % BOX == 0, "a tile is whole boxes");
  static_assert(SMEM_BYTES <= 227 * 1024);
};

constexpr int EARLY = 4;                  // k tiles that a block asks for before its barrier
constexpr int LEAST_K_TILES = 4;          // of a split
constexpr int GROUP_ROWS = 2048;          // of C: rows of tiles that are computed column by column
constexpr double KEPT = 2 * 1024 * 1024;  // bytes of B that L2 keeps while tiles go row by row

/// A product in tiles, as the host divides it: a division takes a thread some 60 clocks.
struct Grid {
  int tiles_m, tiles_n;  // of C
  int group_size_m;      // rows of tiles that are computed column by column: raster()
  int splits;            // of K, each by other blocks
  // Rows of A and B that a block copies: those that there are, and one at least for each wgmma. The others make results that C does
  // not have. Across k whole boxes: TMA fills with zeros what is not there.
  int box_m, box_n;
};

template <class Tile, Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc, Grid grid, float4* partials, unsigned* counters) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES, TURNS = Tile::TURNS;
  constexpr int BK = Tile::BK, BOX = Tile::BOX, K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr bool M_MAJOR = Tile::M_MAJOR, N_MAJOR = Tile::N_MAJOR;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int c_tiles = grid.tiles_m * grid.tiles_n;
  const int block = Tile::SPLITS ? blockIdx.x % c_tiles : blockIdx.x, blocks = Tile::SPLITS ? c_tiles : gridDim.x;
  const int split = Tile::SPLITS ? blockIdx.x / c_tiles : 0, splits = Tile::SPLITS ? grid.splits : 1;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  const auto first_result = [&](int c_tile) -> Coord {
    const auto [tile_row, tile_col] = raster(c_tile, grid.tiles_m, grid.tiles_n, grid.group_size_m);
    return {tile_row * BM, tile_col * BN};
  };

  // 2. set up
  const auto [first_k_tile, k_tiles] = k_tiles_of_split(split, splits, ceil_div(K, BK));
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  // [copies]
  // One thread: rows of A or columns of B, from `row` on, of the k tile that begins at k. Along k they are one box; across it there is a box
  // for every 64 of them.
  const auto copy = [&](bool across_k, uint32_t tile, const CUtensorMap& map, int row, int rows, int k,
                        uint32_t barrier) {
    if (!across_k) return cp_async_bulk_tensor_2d(tile, map, k, row, barrier);
    for (int i = 0; i < rows; i += BOX) cp_async_bulk_tensor_2d(tile + i * BK_BYTES, map, row + i, k, barrier);
  };
  // [/copies]
  const auto copy_k_tile = [&](PipelineState<STAGES> state, Coord first, int k) {
    const uint32_t barrier = full + state.index * 8;
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
    mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    mbarrier_arrive_expect_tx(barrier, (grid.box_m + grid.box_n) * BK_BYTES);
    copy(M_MAJOR, tile_a, map_a, first.row, grid.box_m, k, barrier);
    copy(N_MAJOR, tile_b, map_b, first.col, grid.box_n, k, barrier);
  };
  const int early = min(k_tiles, min(EARLY, STAGES));
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / TURNS / 32);
    }
    fence_mbarrier_init();
    for (int k_tile = 0; k_tile < early; ++k_tile)
      copy_k_tile({0, k_tile}, first_result(block), (first_k_tile + k_tile) * BK);
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp == 0 && elect_sync()) {
      state.advance(early);
      int step = BK;  // along k: every other tile backwards, to begin with what the L2 cache still has
      for (int c_tile = block; c_tile < c_tiles; c_tile += blocks, step = -step) {
        const Coord first = first_result(c_tile);
        int k_tile = c_tile == block ? early : 0;
        int k = (first_k_tile + (step > 0 ? k_tile : k_tiles - 1)) * BK;
        for (; k_tile < k_tiles; ++k_tile, ++state, k += step) copy_k_tile(state, first, k);
      }
    }
    return;
  }
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if (multiplied >= 0 && lane == 0) mbarrier_arrive(empty + multiplied * 8);
  };
  const auto multiply_k_tile = [&](float(&acc)[WM / 64][BN / 8][4]) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    // [descriptors]
    // Across k, 64 rows of A are one box, and all columns of B are several: the leading dimension goes from box to box.
    const uint64_t a = descriptor(tile_a + (TURNS == 1 ? warpgroup * WM * BK_BYTES : 0)),
                   b = descriptor(tile_a + BM * BK_BYTES, N_MAJOR ? BOX * BK_BYTES : 16);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
        wgmma<type, BN, M_MAJOR, N_MAJOR>(acc[i], a + (i * 64 * BK_BYTES + k_step * Tile::K_STEP_A) / 16,
                                          b + k_step * (Tile::K_STEP_B / 16), 1);
    // [/descriptors]
    wgmma_commit_group();
    wgmma_wait_group<1>();  // the previous k tile is multiplied
    consumer_release();
    multiplied = state.index;
    ++state;
  };

  int part_number = 0;  // of the buffers filled
  const int turn = warpgroup % TURNS;
  if (turn == 1) state.advance(k_tiles);  // the first tile is the other warpgroup's
  for (int c_tile = block + turn * blocks; c_tile < c_tiles; c_tile += TURNS * blocks) {
    const Coord of_block = first_result(c_tile), first{of_block.row + (TURNS == 1 ? warpgroup * WM : 0), of_block.col};
    float acc[WM / 64][BN / 8][4] = {};  // [64 rows][8 columns][results of this lane: mma_c]
    if (TURNS > 1 && c_tile != block)
      bar_sync(4 + warpgroup, Tile::CONSUMERS);  // the other warpgroup has issued all of its wgmma
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_results<Tile>(of_block, M, N, C, ldc);
      multiply_k_tile(acc);
    }
    if (TURNS > 1 && c_tile + blocks < c_tiles) bar_arrive(5 - warpgroup, Tile::CONSUMERS);  // the other's turn
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;
    if (TURNS > 1) state.advance(k_tiles);  // past the other warpgroup's tile

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

/// What a configuration would do for a product, and the time that it would take.
struct Choice {
  int index;  // of the configuration
  Grid grid;
  int blocks;           // in the grid
  double microseconds;  // infinite where it cannot
};

// [choice]
constexpr double CLOCK_REACHED = 0.86;  // of the SMs' highest clock, under load

template <class Tile, Type type, class TC>
Choice weigh(const Problem& p, int index, const DeviceLimits& card) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK;
  const double k_bytes = static_cast<double>(p.k) * Operand<type>::BYTES;
  const auto whole_lines = [](int ld) { return ld % BK == 0 || BK % ld == 0; };  // or whole rows in each line
  const TiledProduct product{p.m,
                             p.n,
                             ceil_div(p.k, BK),
                             whole_lines(p.lda) && whole_lines(p.ldb),
                             (p.m + static_cast<double>(p.n)) * k_bytes + static_cast<double>(p.m) * p.n * sizeof(TC),
                             sizeof(TC)};
  const auto box = [](bool across_k, int rows) { return across_k ? ceil_div(rows, Tile::BOX) * Tile::BOX : rows; };
  Grid grid{ceil_div(p.m, BM),
            ceil_div(p.n, BN),
            product.columns * k_bytes <= KEPT ? 1 : ceil_div(GROUP_ROWS, BM),
            1,
            box(Tile::M_MAJOR, min(BM, std::max(p.m, BM - 63))),
            box(Tile::N_MAJOR, min(BN, p.n))};
  const int tiles = grid.tiles_m * grid.tiles_n;
  if (Tile::SPLITS) grid.splits = min(card.sms / tiles, product.k_tiles / LEAST_K_TILES);
  if (Tile::SPLITS && grid.splits < 2) return {index, grid, 0, INFINITY};
  const Tiling tiling{BM, BN, 1, 1, card.sms, Tile::TURNS > 1, grid.splits, false};
  return {index, grid, min(tiles * grid.splits, card.sms),
          predicted_us(product, tiling, {CLOCK_REACHED * card.clock_mhz, card.memory_bytes_per_us()})};
}
// [/choice]

/// f<Tile<index, ...>>() for the layouts of this problem
template <int FIRST = 0, class F>
auto with_tile(const Problem& p, int index, F&& f) {
  if constexpr (FIRST + 1 < CONFIGURATION_COUNT)
    if (index != FIRST) return with_tile<FIRST + 1>(p, index, f);
  const bool m_major = p.layout_a == MatrixLayout::col_major, n_major = p.layout_b == MatrixLayout::row_major;
  if (m_major && n_major) return f.template operator()<Tile<FIRST, true, true>>();
  if (m_major) return f.template operator()<Tile<FIRST, true, false>>();
  if (n_major) return f.template operator()<Tile<FIRST, false, true>>();
  return f.template operator()<Tile<FIRST, false, false>>();
}

/// Of all configurations, in the order of the table.
template <Type type, class TC>
std::array<Choice, CONFIGURATION_COUNT> weighed(const Problem& p) {
  const DeviceLimits card = device_limits();
  std::array<Choice, CONFIGURATION_COUNT> found;
  for (int i = 0; i < CONFIGURATION_COUNT; ++i)
    found[i] = with_tile(p, i, [&]<class Tile>() { return weigh<Tile, type, TC>(p, i, card); });
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
  static thread_local std::map<std::array<int, 9>, Choice> known;
  int device = 0;
  cuda_check(cudaGetDevice(&device));
  const std::string name = preferred(in_layout("39", p), p);
  if (name.empty()) {
    const int a = static_cast<int>(p.layout_a), b = static_cast<int>(p.layout_b);
    const auto [place, is_new] = known.try_emplace({device, a, b, p.m, p.n, p.k, p.lda, p.ldb, p.ldc});
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
          {Tile::BM, Tile::BN, Tile::BK},
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
  const auto of = [&](bool across_k, const void* data, int rows, int ld, int box_rows) {
    return tensor_map<T>(data, across_k ? p.k : rows, across_k ? rows : p.k, ld, {across_k ? Tile::BK : box_rows},
                         CU_TENSOR_MAP_L2_PROMOTION_NONE);
  };
  return {of(Tile::M_MAJOR, p.a, p.m, p.lda, choice.grid.box_m), of(Tile::N_MAJOR, p.b, p.n, p.ldb, choice.grid.box_n),
          tensor_map<TC>(p.c, p.m, p.n, p.ldc, {Box::ROWS, Box::BYTES})};
}

template <class Tile, Type type, class TC>
void launch(const Problem& p, const Choice& choice, const Maps& maps) {
  cudaLaunchAttribute attribute{};  // all blocks at once, where they wait for one another
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = Tile::SPLITS;
  cudaLaunchConfig_t config{};
  config.gridDim = choice.blocks, config.blockDim = Tile::THREADS;
  config.dynamicSmemBytes = Tile::SMEM_BYTES, config.stream = p.stream;
  config.attrs = &attribute, config.numAttrs = Tile::SPLITS;
  cuda_check(cudaLaunchKernelEx(&config, gemm<Tile, type, TC>, p.m, p.n, p.k, p.alpha, maps.a, maps.b, maps.c, p.beta,
                                p.C<TC>(), p.ldc, choice.grid, static_cast<float4*>(p.workspace), p.locks));
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

/// f<type, TC>()
template <class F>
auto for_16_bits(const Problem& p, F&& f) {
  return visit(Types<Type::bf16, Type::f16>{}, p.type, p.out, f);
}

/// f<Tile, type, TC>(choice) for the one to launch.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_16_bits(p, [&]<Type type, class TC>() {
    const Choice best = choice<type, TC>(p);
    return with_tile(p, best.index, [&]<class Tile>() { return f.template operator()<Tile, type, TC>(best); });
  });
}

std::function<void(const Problem&)> prepare(const Problem& p) {
  return for_kernel(
      p, [&]<class Tile, Type type, class TC>(const Choice& choice) { return prepared<Tile, type, TC>(choice); });
}

std::vector<Plan> plans(const Problem& p) {
  return for_16_bits(p, [&]<Type type, class TC>() {
    std::vector<Plan> plans;
    for (const Choice& one : choices<type, TC>(p)) {
      if (one.microseconds == INFINITY) continue;
      plans.push_back(with_tile(p, one.index, [&]<class Tile>() -> Plan {
        return {Tile::CONFIGURATION.name, one.microseconds, resources<Tile, type, TC>(one),
                prepared<Tile, type, TC>(one)};
      }));
    }
    return plans;
  });
}

std::string explain(const Problem& p) {
  return for_16_bits(p, [&]<Type type, class TC>() {
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

/// What the chapter and tests take from here.
std::vector<Constants> constants() {
  std::vector<Constants> groups;
  for (const Configuration& c : CONFIGURATIONS)
    groups.push_back({c.name,
                      {{"bm", c.schedule == PING_PONG ? c.wm : c.warpgroups * c.wm},
                       {"bn", c.bn},
                       {"ping_pong", c.schedule == PING_PONG},
                       {"splits", c.splits == SPLITS_OVER_GRID}}});
  return groups;
}

const Registration registration{{
    .number = "39",
    .name = "layouts_16bit",
    .idea = "any layout: wgmma reads 16-bit operands along k or across it, so nothing is transposed",
    .predecessor = "33",
    .types = {Type::bf16, Type::f16},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .any_layout = true,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
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
