// 43b_fp8_last_wave · the tiles of the last wave, cut in three
//
// Idea              4096 x 4096 has 704 tiles of 192x128: five waves of 132, and 44 tiles for which 88 SMs wait. Here each of the 44 is
//                   cut into three parts of 64 rows, 132 in all. The three warpgroups share the columns of a part, so a part needs no
//                   sums of others: the pipeline goes on from a tile to a part as from tile to tile.
// Changed from 43   the last wave: a second main loop with narrower wgmma; its results go without TMA
// Expect            a k tile of a part takes 356 clocks, the time of its 24.5 KB from L2, and one of a tile 803: 1.09 times 43 at 4096 cubed
// Limiter now       as 43; in the last wave wgmma of 48 columns, which take 31 clocks where their operations need 24
// New instructions  none
// Limits            as 42
// Run               ./run_all.sh run 43b 4096 4096 4096 --scales blocks --out same
// Read              docs/43b_fp8_last_wave.md
#include <algorithm>
#include <array>
#include <cstdio>

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

using namespace ladder;

namespace {

/// What the parts of a launch cost, in clocks of an SM.
struct Clocks {
  double start;   ///< the launch and the first copies
  double k_tile;  ///< one k tile
  double c_tile;  ///< a tile of C, in addition to its k tiles
  double part;    ///< a k tile of a part in the last wave; 0: there are none
};

struct Configuration {
  const char* name;
  int warpgroups;  ///< that multiply
  int slices;      ///< 1: each computes 64 rows of a tile; else all compute the same 64, each its share of the k tiles
  int bn;          ///< columns of C
  int stages;      ///< k tiles in shared memory: one is multiplied, the others are being copied
  int buffers;  ///< for 128 bytes of 64 rows of C, per warpgroup that stores: one is filled, the others are being stored
  Clocks clocks;
};

// [configurations]
// Names: rows x columns of a tile; k: the warpgroups share its k tiles.
constexpr Configuration CONFIGURATIONS[] = {
    // name, warpgroups, slices, columns, stages, buffers, clocks
    {"192x128", 3, 1, 128, 4, 2, {9500, 803, 1900, 600}},
    {"128x128", 2, 1, 128, 6, 1, {10900, 680, 870, 500}},
    {"64x128k", 3, 3, 128, 6, 2, {11100, 390, 2700, 0}},
    {"64x64k", 3, 3, 64, 9, 1, {11600, 290, 1000, 0}},
};
// [/configurations]
constexpr int CONFIGURATION_COUNT = std::size(CONFIGURATIONS);

/// The constants of configuration INDEX, under the names of 42.
template <int INDEX>
struct Tile {
  static constexpr Configuration CONFIGURATION = CONFIGURATIONS[INDEX];
  static constexpr int WARPGROUPS = CONFIGURATION.warpgroups, TURNS = 1;  // that multiply
  static constexpr int SLICES = CONFIGURATION.slices;                     // of k tiles
  static constexpr int STORING = WARPGROUPS / SLICES;                     // warpgroups that store
  static constexpr int PARTS = SLICES == 1 ? WARPGROUPS : 0;              // of a tile of the last wave
  static constexpr int WM = 64, BM = STORING * WM;                        // rows of C
  static constexpr int BN = CONFIGURATION.bn;                             // columns of C, which have the same scale
  static constexpr bool SWAP_AB = false;               // what 28 has, and common/hopper/epilogue.h asks about
  static constexpr int BK_BYTES = 128, BK = BK_BYTES;  // bytes along k per tile, as many elements: those of a scale
  static constexpr int MMA_K_BYTES = 32;               // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = CONFIGURATION.stages, BUFFERS = CONFIGURATION.buffers;
  static constexpr int CONSUMERS = WARPGROUPS * 128;  // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;     // first comes the producer's warpgroup
  static constexpr int PRODUCER_REGISTERS = WARPGROUPS == 2 ? 40 : 32, CONSUMER_REGISTERS = WARPGROUPS == 2 ? 232 : 160;
  static constexpr int GROUP_SIZE_M = ceil_div(2048, BM);  // rows of tiles that are computed column by column
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SCALE_A_BYTES = BM * 4, SCALE_B_BYTES = 16;  // of a k tile; TMA copies 16 bytes at least
  static constexpr int SCALES_BYTES = ceil_div(SCALE_A_BYTES, 128) * 128 + 128;  // of a stage
  static constexpr int C_BYTES = 64 * 128;                                       // a buffer for results of a warpgroup
  static constexpr int SUMS_BYTES = (SLICES - 1) * BM * BN * 4;                  // of the warpgroups that do not store
  static constexpr int SMEM_BYTES =
      STAGES * (STAGE_BYTES + SCALES_BYTES) + STORING * BUFFERS * C_BYTES + SUMS_BYTES + STAGES * 24;
  static_assert(STAGES % SLICES == 0, "a stage is always the same warpgroup's");
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(SCALE_BLOCK % BN == 0, "a tile's columns have the same scale");
  static_assert(SMEM_BYTES <= 227 * 1024);
};

// [part]
/// A part of a tile in the last wave: 64 rows and all columns. Each warpgroup multiplies BN of them from number first_column() on. Those of
/// neighbours overlap where their number is not a multiple of 16.
template <class Of>
struct Part {
  static constexpr int BN = ceil_div(Of::BN / Of::WARPGROUPS, 16) * 16;
  static constexpr int STEP = (Of::BN - BN) / (Of::WARPGROUPS - 1);

  static __device__ int first_column(int warpgroup) { return warpgroup * STEP; }
  /// After the last one that the warpgroup stores.
  static __device__ int end_column(int warpgroup) {
    return warpgroup + 1 < Of::WARPGROUPS ? (warpgroup + 1) * STEP : Of::BN;
  }
};

/// alpha * acc + beta * C into C, from the registers: two results at a time. Columns from number `end` on are not stored.
template <class Part, class TC>
__device__ __forceinline__ void store_part(const float (&acc)[1][Part::BN / 8][4], Coord first, int M, int end,
                                           float alpha, float beta, TC* __restrict__ C, int ldc) {
  struct alignas(2 * sizeof(TC)) Pair {
    TC element[2];
  };
#pragma unroll
  for (int j = 0; j < Part::BN / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto [r, c] = mma_c(threadIdx.x % 32, half * 2);
      const int m = first.row + threadIdx.x / 32 % 4 * 16 + r, n = first.col + j * 8 + c;
      if (m >= M || n >= end) continue;
      TC* const to = C + static_cast<size_t>(m) * ldc + n;
      const auto result = [&](int e) {  // beta = 0 must not read C: it may hold NaN
        const float d = alpha * acc[0][j][half * 2 + e];
        return from_float<TC>(beta == 0.0F ? d : d + beta * to_float(to[e]));
      };
      if (n + 1 < end)
        *reinterpret_cast<Pair*>(to) = {{result(0), result(1)}};
      else
        *to = result(0);
    }
}
// [/part]

constexpr int EARLY = 3;  // k tiles that a block asks for before its barrier

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
    gemm(int M, int N, int K, int whole_tiles, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_part_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_scale_a, const __grid_constant__ CUtensorMap map_scale_b,
         const __grid_constant__ CUtensorMap map_c, float beta, TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK = Tile::BK, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, SLICES = Tile::SLICES;
  constexpr bool HIDDEN = SLICES == 1;  // the epilogue, by the first wgmma of the next tile
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int block = blockIdx.x, blocks = gridDim.x;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  const int slice = SLICES > 1 ? warpgroup : 0, row_of_warpgroup = SLICES > 1 ? 0 : warpgroup * WM;
  const auto first_result = [&](int c_tile) -> Coord {  // of C, in this block's tile
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    return {tile_row * BM, tile_col * BN};
  };

  // The tiles from number whole_tiles on are computed in parts, one per block.
  const bool has_part = block < (c_tiles - whole_tiles) * Tile::PARTS;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t sums = buffers + Tile::STORING * Tile::BUFFERS * Tile::C_BYTES;
  const uint32_t scales = sums + Tile::SUMS_BYTES;
  const uint32_t full = scales + STAGES * Tile::SCALES_BYTES, empty = full + STAGES * 8;
  const uint32_t places = empty + STAGES * 8;  // of each stage: row and column of the first result of its tile
  // [producer]
  // One thread: a k tile of A and B, its scales, and where its tile of C is. To find that takes four divisions; the consumers have no
  // time for them.
  const auto copy_k_tile = [&](PipelineState<STAGES> state, const CUtensorMap& map_a, int rows, Coord first,
                               int k_tile) {
    const uint32_t barrier = full + state.index * 8;
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES, scale_b = scale_a + Tile::SCALES_BYTES - 128;
    mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    store2_shared(places + state.index * 8, {__int_as_float(first.row), __int_as_float(first.col)});
    mbarrier_arrive_expect_tx(barrier, (rows + BN) * BK_BYTES + Tile::SCALE_A_BYTES + Tile::SCALE_B_BYTES);
    cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, first.row, barrier);
    cp_async_bulk_tensor_2d(tile_b, map_b, k_tile * BK, first.col, barrier);
    cp_async_bulk_tensor_2d(scale_a, map_scale_a, first.row, k_tile, barrier);
    cp_async_bulk_tensor_2d(scale_b, map_scale_b, k_tile / 4 * 4, first.col / SCALE_BLOCK,
                            barrier);  // a multiple of 16 bytes
  };
  const int early = min(k_tiles, EARLY);
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / SLICES / 32);
    }
    fence_mbarrier_init();
    for (int k_tile = 0; k_tile < early; ++k_tile) copy_k_tile({0, k_tile}, map_a, BM, first_result(block), k_tile);
    prefetch_tensormap(map_c);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp == 0 && elect_sync()) {
      state.advance(early);
      for (int c_tile = block, k_tile = early; c_tile < whole_tiles; c_tile += blocks, k_tile = 0) {
        const Coord first = first_result(c_tile);
        for (; k_tile < k_tiles; ++k_tile, ++state) copy_k_tile(state, map_a, BM, first, k_tile);
      }
      if constexpr (Tile::PARTS > 0)
        if (has_part) {
          Coord first = first_result(whole_tiles + block / Tile::PARTS);
          first.row += block % Tile::PARTS * WM;
          for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ++state) copy_k_tile(state, map_part_a, WM, first, k_tile);
        }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> partial -FFMA-> acc
  float partial[BN / 8][4] = {};  // sums of a k tile: [8 columns][results of this lane: mma_c]
  float acc[1][BN / 8][4] = {};
  const auto clear = [&] {
#pragma unroll
    for (int j = 0; j < BN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[0][j][e] = 0;
  };
  const auto issue = [&]<int J>(float(&partial)[J][4], int row, int col) {  // of the tile: of A, and of B
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + row * BK_BYTES), b = descriptor(tile_a + (BM + col) * BK_BYTES);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)  // the first does not add to what there is
      wgmma<type, J * 8>(partial, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                         k_step > 0);
    wgmma_commit_group();
  };
  Coord first = {};  // result of this tile
  const auto promote = [&]<int J>(float(&acc)[1][J][4], const float(&partial)[J][4], int row, int k_tile) {
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES, scale_b = scale_a + Tile::SCALES_BYTES - 128;
    float scale[2];  // of the two rows in which this lane has results
#pragma unroll
    for (int half = 0; half < 2; ++half)
      scale[half] = load_shared(scale_a + (row + warp % 4 * 16 + mma_c(lane, half * 2).row) * 4) *
                    load_shared(scale_b + k_tile % 4 * 4);
    float place[2];
    load2_shared(place, places + state.index * 8);
    first = {__float_as_int(place[0]), __float_as_int(place[1])};
    wgmma_wait_group<0>();
    if (lane == 0) mbarrier_arrive(empty + state.index * 8);
#pragma unroll
    for (int j = 0; j < J; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[0][j][e] += scale[e / 2] * partial[j][e];
    state.advance(SLICES);
  };
  // [/main-loop]

  // 4. store
  int part_number = 0;  // of the buffers filled
  const auto store = [&] {
    store_results<Tile>(acc, {first.row + row_of_warpgroup, first.col}, M, N, alpha, beta, C, ldc, map_c,
                        buffers + row_of_warpgroup / WM * Tile::BUFFERS * Tile::C_BYTES, part_number);
  };

  state.advance(slice);
  for (int c_tile = block, k_tile = slice; c_tile < whole_tiles; c_tile += blocks, k_tile -= k_tiles) {
    if (beta != 0.0F) prefetch_results<Tile>(first_result(c_tile), M, N, C, ldc);
#pragma unroll 1
    for (; k_tile < k_tiles; k_tile += SLICES) {
      issue(partial, row_of_warpgroup, 0);
      if (HIDDEN && k_tile == 0 && c_tile != block) store(), clear();  // the tensor cores have work
      promote(acc, partial, row_of_warpgroup, k_tile);
    }
    if constexpr (!HIDDEN) {
      sum_slices<Tile>(acc, sums);
      if (warpgroup == 0) store();
      clear();
    }
  }
  if constexpr (HIDDEN) {
    if (!has_part) {
      store();
    } else {
      // [last-wave]
      using Part = Part<Tile>;
      const int col = Part::first_column(warpgroup);
      float partial[Part::BN / 8][4] = {};
      issue(partial, 0, col);
      store();  // the tensor cores have work
      float acc[1][Part::BN / 8][4] = {};
      promote(acc, partial, 0, 0);
#pragma unroll 1
      for (int k_tile = 1; k_tile < k_tiles; ++k_tile) {
        issue(partial, 0, col);
        promote(acc, partial, 0, k_tile);
      }
      const int end = min(N, first.col + Part::end_column(warpgroup));
      store_part<Part>(acc, {first.row, first.col + col}, M, end, alpha, beta, C, ldc);
      // [/last-wave]
    }
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
}

/// What a configuration would do for a product, and the time that it would take.
struct Choice {
  int index;             // of the configuration
  int c_tiles, k_tiles;  // of the block that has most
  bool has_part;         // in addition, in the last wave
  double microseconds;
};

// [choice]
constexpr double CLOCK_REACHED = 0.86;  // of the SMs' highest clock, under load; less in the largest products

/// Tiles that are computed whole. Those of the last wave are not where there are enough blocks for all their parts.
template <class Tile>
int whole_tiles(int tiles, int blocks) {
  const int last = tiles % blocks;
  return last * Tile::PARTS <= blocks && Tile::PARTS > 0 ? tiles - last : tiles;
}

template <class Tile>
Choice weigh(const Problem& p, int index, const DeviceLimits& card) {
  const Clocks& cost = Tile::CONFIGURATION.clocks;
  const int tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), blocks = min(tiles, card.sms);
  const int whole = whole_tiles<Tile>(tiles, blocks), k_tiles = ceil_div(p.k, Tile::BK);
  const int c_tiles = ceil_div(whole, blocks);
  const bool has_part = whole < tiles;
  const double part = has_part ? k_tiles * cost.part + cost.c_tile : 0;
  const double clocks = cost.start + c_tiles * (k_tiles * cost.k_tile + cost.c_tile) + part;
  return {index, c_tiles, c_tiles * k_tiles, has_part, clocks / (CLOCK_REACHED * card.clock_mhz)};
}
// [/choice]

/// f<Tile<index>>()
template <int FIRST = 0, class F>
auto with_tile(int index, F&& f) {
  if constexpr (FIRST + 1 < CONFIGURATION_COUNT)
    if (index != FIRST) return with_tile<FIRST + 1>(index, f);
  return f.template operator()<Tile<FIRST>>();
}

/// The fastest first. Warpgroups that share k tiles each need one: of a tile without, the first would not know where to store it.
std::vector<Choice> choices(const Problem& p) {
  const DeviceLimits card = device_limits();
  std::vector<Choice> found;
  for (int i = 0; i < CONFIGURATION_COUNT; ++i)
    with_tile(i, [&]<class Tile>() {
      if (Tile::SLICES == 1 || ceil_div(p.k, Tile::BK) >= Tile::SLICES) found.push_back(weigh<Tile>(p, i, card));
    });
  std::stable_sort(found.begin(), found.end(),
                   [](const Choice& a, const Choice& b) { return a.microseconds < b.microseconds; });
  return found;
}

/// The one to launch: what was measured to be the fastest, else what is predicted to be.
Choice choice(const Problem& p) {
  const std::string name = preferred("43b", p);
  const std::vector<Choice> all = choices(p);
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
  CUtensorMap a, part_a, b, scale_a, scale_b, c;
};

template <class Tile, Type type, class TC>
Maps maps(const Problem& p) {
  using T = typename Operand<type>::Element;
  const int k_tiles = ceil_div(p.k, Tile::BK);
  return {tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::WM}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<float>(p.scale_a, k_tiles, p.m, scale_ld_a(p.m), {1, Tile::SCALE_A_BYTES, false}),
          tensor_map<float>(p.scale_b, ceil_div(p.n, SCALE_BLOCK), k_tiles, scale_ld_b(p.k),
                            {1, Tile::SCALE_B_BYTES, false}),
          tensor_map<TC>(p.c, p.m, p.n, p.ldc, {64})};
}

template <class Tile, Type type, class TC>
void launch(const Problem& p, const Maps& maps) {
  const int tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), blocks = min(tiles, device_limits().sms);
  gemm<Tile, type, TC><<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
      p.m, p.n, p.k, whole_tiles<Tile>(tiles, blocks), p.alpha, maps.a, maps.part_a, maps.b, maps.scale_a, maps.scale_b,
      maps.c, p.beta, p.C<TC>(), p.ldc);
  cuda_check(cudaGetLastError());
}

/// A launch whose pointers, factors and stream may change. The maps are made anew when a matrix lies elsewhere.
template <class Tile, Type type, class TC>
std::function<void(const Problem&)> prepared() {
  cuda_check(cudaFuncSetAttribute(gemm<Tile, type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  return [known = Maps{}, of = std::array<const void*, 5>{}](const Problem& p) mutable {
    if (const std::array<const void*, 5> now = {p.a, p.b, p.scale_a, p.scale_b, p.c}; of != now)
      known = maps<Tile, type, TC>(p), of = now;
    launch<Tile, type, TC>(p, known);
  };
}

/// f<Tile, type, TC>() for the one to launch.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() {
    return with_tile(choice(p).index, [&]<class Tile>() { return f.template operator()<Tile, type, TC>(); });
  });
}

std::function<void(const Problem&)> prepare(const Problem& p) {
  return for_kernel(p, [&]<class Tile, Type type, class TC>() { return prepared<Tile, type, TC>(); });
}

std::vector<Plan> plans(const Problem& p) {
  return visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() {
    std::vector<Plan> plans;
    for (const Choice& one : choices(p))
      plans.push_back(with_tile(one.index, [&]<class Tile>() -> Plan {
        return {Tile::CONFIGURATION.name, one.microseconds, resources<Tile, type, TC>(), prepared<Tile, type, TC>()};
      }));
    return plans;
  });
}

std::string explain(const Problem& p) {
  std::string text = "predicted, the fastest first:\n";
  for (const Choice& one : choices(p)) {
    char line[128];
    std::snprintf(line, sizeof line, "  %-7s %9.1f us: most work of a block: %d tile%s, %d k tiles%s\n",
                  CONFIGURATIONS[one.index].name, one.microseconds, one.c_tiles, one.c_tiles == 1 ? "" : "s",
                  one.k_tiles, one.has_part ? ", and a part" : "");
    text += line;
  }
  return text;
}

std::vector<Constants> constants() {
  std::vector<Constants> groups;
  for (const Configuration& one : CONFIGURATIONS)
    groups.push_back({one.name,
                      {{"bm", one.slices == 1 ? 64 * one.warpgroups : 64},
                       {"bn", one.bn},
                       {"start", one.clocks.start},
                       {"k_tile", one.clocks.k_tile},
                       {"c_tile", one.clocks.c_tile},
                       {"part", one.clocks.part}}});
  return groups;
}

const Registration registration{{
    .number = "43b",
    .name = "fp8_last_wave",
    .idea = "tiles of the last wave are cut into parts of 64 rows, whose columns warpgroups share",
    .predecessor = "43",
    .types = {Type::e4m3},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::blocks},
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync_of<E4m3Types>,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>() { return resources<Tile, type, TC>(); });
        },
    .launch = [](const Problem& p) { prepare(p)(p); },
    .explain = explain,
    .plans = plans,
    .constants = constants(),
    .prepare = prepare,
}};

}  // namespace
