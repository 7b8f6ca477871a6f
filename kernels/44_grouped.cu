// 44_grouped · many products in one launch, each with rows and a B of its own
//
// Idea              A mixture of experts multiplies a few rows by each of many B. One after another, such products fill the GPU badly, and
//                   each waits for the last block of the one before. Here one persistent kernel walks over the tiles of all of them.
//                   With operands swapped a tile has as many rows of C as its group needs, so B, which is nearly all of the bytes, is
//                   read once. Tiles differ in their rows, so a block that is ready draws the number of its next tile from a counter.
// Changed from 28   the scheduler, in the producer alone: a scan over 32 groups finds a tile, which travels to the consumers with its first
//                   k tile; a tensor map and a main loop for each number of rows; no pairs; stores that end where the group ends
// Expect            8192 rows in 64 groups, N 4096, K 7168: 3.5 GB from DRAM at 4.2 TB/s, and 3 % until the last block ends: 1.45 of cuBLAS
// Limiter now       with few rows per group the bytes of B from DRAM, with many wgmma; between the two the link of the halves of L2
// New instructions  none
// Limits            as 21
// Run               ./run_all.sh run 44 1024 512 512 --type bf16 --groups 8 --group-rows random
// Read              docs/44_grouped.md
#include <limits>
#include <utility>

#include "common/hopper/descriptor.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
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

/// A tile of C.
struct WorkTile {
  int bm = 0;        ///< its rows, a multiple of BM_STEP; 0: there are no more tiles
  int group;         ///< whose B it multiplies by
  int row, end_row;  ///< of C; the last rows are not stored where the group has fewer
  int col;
};

struct Tile {
  static constexpr int WARPGROUPS = 2;                              // that multiply
  static constexpr int WN = TUNABLE(WN, 64), BN = WARPGROUPS * WN;  // columns of C per warpgroup, and per tile
  static constexpr int MOST_BM = TUNABLE(MOST_BM, 256);  // rows of C per tile, a multiple of BM_STEP: row_tiles()
  static constexpr int BM_STEP = TUNABLE(BM_STEP, 32);
  static constexpr int GROUP_SIZE_M = TUNABLE(GROUP_SIZE_M, 8);  // tiles per group of raster()
  static constexpr int BK_BYTES = 128;                           // bytes along k per tile: 64 elements of 16 bits
  static constexpr int MMA_K_BYTES = 32;                         // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = TUNABLE(STAGES, 4);   // k tiles in shared memory: one is multiplied, the others copied
  static constexpr int CONSUMERS = WARPGROUPS * 128;  // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;     // first comes the producer's warpgroup
  static constexpr int STAGE_BYTES = (BN + MOST_BM) * BK_BYTES;
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 64 columns of C
  static constexpr int BUFFERS = 2;         // per warpgroup: one is filled, the other is being stored
  // Offsets in shared memory: of two mbarriers and of a WorkTile per stage.
  static constexpr int BARRIERS = STAGES * STAGE_BYTES + WARPGROUPS * BUFFERS * C_BYTES;
  static constexpr int WORK_TILES = BARRIERS + STAGES * 16;
  static constexpr int SMEM_BYTES = WORK_TILES + STAGES * sizeof(WorkTile);
  static_assert(BN <= 256 && MOST_BM <= 256, "a box has at most 256 rows");
  static_assert(BM_STEP % 16 == 0 && MOST_BM % BM_STEP == 0, "results are stored 16 rows at a time");
  static_assert(SMEM_BYTES <= 227 * 1024, "the shared memory of a block");
};

/// Tensor maps of A, one for each number of rows that a tile may have.
struct RowMaps {
  CUtensorMap of[Tile::MOST_BM / Tile::BM_STEP];
};

/// f<BM>() where BM is `rows`, a multiple of BM_STEP. All threads of a warp have the same.
template <class F>
__device__ __forceinline__ void for_rows(int rows, F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (void)((rows == (I + 1) * Tile::BM_STEP && (f.template operator()<(I + 1) * Tile::BM_STEP>(), true)) || ...);
  }
  (std::make_integer_sequence<int, Tile::MOST_BM / Tile::BM_STEP>());
}

// [scheduler]
/// Finds tiles by their number, in ascending order. They are counted group by group; in a group as raster() counts them, so
/// that tiles that read the same columns of B are neighbours. All lanes of a warp together.
class Scheduler {
 public:
  __device__ Scheduler(int M, int N, int groups, const int* first_row)
      : M_(M), tiles_n_(ceil_div(N, Tile::BN)), groups_(groups), first_row_(first_row) {}

  __device__ __forceinline__ WorkTile find(int c_tile) {
    const int lane = threadIdx.x % 32;
    for (; group_ < groups_; group_ += 32) {
      // Each lane looks at a group: how many tiles there are up to the end of it.
      const int first = row_of(group_ + lane), rows = row_of(group_ + lane + 1) - first;
      const RowTiles row_tiles = ladder::row_tiles(rows, Tile::MOST_BM, Tile::BM_STEP);
      const int tiles = row_tiles.tiles * tiles_n_;
      int up_to = tiles;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int below = __shfl_up_sync(0xffffffff, up_to, distance);
        if (lane >= distance) up_to += below;
      }
      up_to += tiles_before_;
      const unsigned not_before = __ballot_sync(0xffffffff, up_to > c_tile);
      if (not_before != 0) {
        const int owner = __ffs(not_before) - 1;
        const auto of_owner = [&](int x) { return __shfl_sync(0xffffffff, x, owner); };
        group_ += owner;
        tiles_before_ = of_owner(up_to - tiles);
        const auto [i, j] = raster(c_tile - tiles_before_, of_owner(row_tiles.tiles), tiles_n_, Tile::GROUP_SIZE_M);
        const int bm = of_owner(row_tiles.rows), row = of_owner(first) + i * bm;
        return {bm, group_, row, min(row + bm, of_owner(first + rows)), j * Tile::BN};
      }
      tiles_before_ = __shfl_sync(0xffffffff, up_to, 31);
    }
    return {};
  }

  /// Tiles of all groups, once find() has found none.
  __device__ __forceinline__ int tiles() const { return tiles_before_; }

 private:
  /// The first row of a group; M after the last. One group has no list.
  __device__ __forceinline__ int row_of(int group) const {
    if (group >= groups_) return M_;
    return first_row_ == nullptr ? 0 : first_row_[group];
  }

  int M_, tiles_n_, groups_;
  const int* first_row_;
  int group_ = 0, tiles_before_ = 0;  // where the search goes on; tiles of the groups before that one
};
// [/scheduler]

/// `drawn`: how many tiles were drawn so far, beside the first of each block. 0 before and after.
template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, int groups, const int* __restrict__ first_row, unsigned* drawn, float alpha,
         const __grid_constant__ RowMaps maps_a, const __grid_constant__ CUtensorMap map_b, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BN = Tile::BN, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t full = shared_address(smem) + Tile::BARRIERS, empty = full + STAGES * 8;
  // The tile that a stage's k tile belongs to, where it is the first of it.
  WorkTile* const work_tiles = reinterpret_cast<WorkTile*>(smem + Tile::WORK_TILES);
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_b);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<40>();
    if (warp != 0) return;
    Scheduler scheduler(M, N, groups, first_row);
    for (int c_tile = blockIdx.x;;) {
      const WorkTile tile = scheduler.find(c_tile);
      if (tile.bm == 0) {
        if (elect_sync()) {
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          work_tiles[state.index] = tile;
          mbarrier_arrive(full + state.index * 8);  // no k tile comes: the consumers shall end, too
          // A block draws once per tile. So this is the last of all draws, and the next launch finds 0 again.
          if (c_tile - static_cast<int>(gridDim.x) == scheduler.tiles() - 1) st_release_gpu(drawn, 0);
        }
        return;
      }
      unsigned next = 0;
      if (elect_sync()) {
        next = atom_add_relaxed_gpu(drawn, 1);  // comes during the copies
        // Past the end of their group, both copies bring rows of the next one, whose products are not stored.
        const CUtensorMap& map_a = maps_a.of[tile.bm / Tile::BM_STEP - 1];
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_b = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          if (k_tile == 0) work_tiles[state.index] = tile;
          mbarrier_arrive_expect_tx(full + state.index * 8, (BN + tile.bm) * BK_BYTES);
          cp_async_bulk_tensor_2d(tile_b, map_b, k_tile * BK, tile.group * N + tile.col, full + state.index * 8);
          cp_async_bulk_tensor_2d(tile_b + BN * BK_BYTES, map_a, k_tile * BK, tile.row, full + state.index * 8);
          ++state;
        }
      }
      c_tile = gridDim.x + __reduce_max_sync(0xffffffff, next);  // the other lanes have 0
    }
  }
  // [/producer]
  setmaxnreg_inc<232>();

  int part_number = 0;  // of the buffers filled
  while (true) {
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    const WorkTile tile = work_tiles[state.index];
    __syncwarp();  // all lanes have read it: one of them will release the stage
    const int bm = __shfl_sync(0xffffffff, tile.bm, 0);
    if (bm == 0) break;
    for_rows(bm, [&]<int BM>() {
      // [main-loop]
      // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
      float acc[WN / 64][BM / 8][4] = {};  // [64 columns of C][8 rows][results of this lane: mma_c, of the transpose]
      int multiplied = -1;                 // stage of the previous k tile, which this warp has not released yet
      const auto consumer_release = [&] {
        if (multiplied >= 0 && lane == 0) mbarrier_arrive(empty + multiplied * 8);
      };
#pragma unroll 1
      for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
        const uint32_t tile_b = shared_address(smem) + state.index * Tile::STAGE_BYTES;
        const uint64_t b = descriptor(tile_b + warpgroup * WN * BK_BYTES), a = descriptor(tile_b + BN * BK_BYTES);
        mbarrier_wait_parity(full + state.index * 8, state.phase);
        wgmma_fence();
#pragma unroll
        for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
          for (int i = 0; i < WN / 64; ++i)
            wgmma<type, BM>(acc[i], b + (i * 64 * BK_BYTES + k_step * Tile::MMA_K_BYTES) / 16,
                            a + k_step * (Tile::MMA_K_BYTES / 16), 1);
        wgmma_commit_group();
        wgmma_wait_group<1>();  // the previous k tile is multiplied
        consumer_release();
        multiplied = state.index;
        ++state;
      }
      wgmma_wait_group<0>();
      consumer_release();
      // [/main-loop]

      // [epilogue]
      // 4. epilogue: acc -> smem -> gmem, 64 columns of C and as many rows as a buffer holds at a time
      const int first_col = tile.col + warpgroup * WN;
#pragma unroll
      for (int x = 0; x < WN / 64 * BM / 2; ++x) acc[x / (BM / 2)][x / 4 % (BM / 8)][x % 4] *= alpha;
      if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
#pragma unroll
        for (int i = 0; i < WN / 64; ++i)
#pragma unroll
          for (int j = 0; j < BM / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const auto [c, r] = mma_c(lane, e);
              const int m = tile.row + j * 8 + r, n = first_col + i * 64 + warp % 4 * 16 + c;
              if (m < tile.end_row && n < N) acc[i][j][e] += beta * to_float(C[static_cast<size_t>(m) * ldc + n]);
            }
      }
      constexpr int ROWS = Tile::C_BYTES / (64 * sizeof(TC)), COLUMNS = 128 / sizeof(TC), CHUNK = 16 / sizeof(TC);
      constexpr int PARTS = (BM + ROWS - 1) / ROWS;
      // Where in a buffer 16 bytes of C lie that begin in row r and column c.
      const auto place = [](int r, int c) { return c / COLUMNS * (ROWS * 128) + swizzle(r, c % COLUMNS / CHUNK, 128); };
#pragma unroll
      for (int part = 0; part < WN / 64 * PARTS; ++part) {
        const int i = part / PARTS, part_row = part % PARTS * ROWS;
        const int buffer = (warpgroup * Tile::BUFFERS + part_number++ % Tile::BUFFERS) * Tile::C_BYTES;
#pragma unroll
        for (int j = 0; j < ROWS / 8 && part_row + j * 8 < BM; j += 2) {
          const float(*const x)[4] = &acc[i][part_row / 8 + j];  // 8 rows of C, and the next 8
          if constexpr (sizeof(TC) == 2) {
            uint32_t packed[4];  // of columns 0 to 7 and 8 to 15 of 8 rows, then of the next 8
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
              union {
                TC element[2];
                uint32_t bits;
              } d = {{from_float<TC>(x[pair / 2][pair % 2 * 2]), from_float<TC>(x[pair / 2][pair % 2 * 2 + 1])}};
              packed[pair] = d.bits;
            }
            const int matrix = lane / 8, c = warp % 4 * 16 + matrix % 2 * 8, r = (j + matrix / 2) * 8 + lane % 8;
            stmatrix_x4_trans(buffers + buffer + place(r, c), packed);
          } else {
#pragma unroll
            for (int e = 0; e < 8; ++e) {
              const auto [c, r] = mma_c(lane, e % 4);
              const int column = warp % 4 * 16 + c;
              store_shared(buffers + buffer + place((j + e / 4) * 8 + r, column) + column % CHUNK * 4, x[e / 4][e % 4]);
            }
          }
        }
        bar_sync(1 + warpgroup, 128);       // the buffer is full; the one before, which comes next, has been read
        constexpr int CHUNKS = 64 / CHUNK;  // of a row
        const int c = threadIdx.x % CHUNKS * CHUNK, n = first_col + i * 64 + c;
        for (int r = threadIdx.x % 128 / CHUNKS; r < ROWS; r += 128 / CHUNKS) {
          const int m = tile.row + part_row + r;
          if (m >= tile.end_row || n >= N) break;
          const unsigned char* const from = smem + STAGES * Tile::STAGE_BYTES + buffer + place(r, c);
          TC* const to = C + static_cast<size_t>(m) * ldc + n;
          if (n + CHUNK <= N) {
            *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
          } else {
#pragma unroll 1
            for (int x = 0; x < N - n; ++x) to[x] = reinterpret_cast<const TC*>(from)[x];
          }
        }
      }
      // [/epilogue]
    });
  }
}

using GroupedTypes = Types<Type::bf16, Type::f16>;

void launch(const Problem& p) {
  visit(GroupedTypes{}, p.type, p.out, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int groups = max(1, p.groups);
    RowMaps maps_a;
    for (int i = 0; i < Tile::MOST_BM / Tile::BM_STEP; ++i)
      maps_a.of[i] = tensor_map<T>(p.a, p.m, p.k, p.lda, {(i + 1) * Tile::BM_STEP});
    kernel<<<device_limits().sms, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, groups, p.groups > 0 ? p.first_row : nullptr, p.locks, p.alpha, maps_a,
        tensor_map<T>(p.b, groups * p.n, p.k, p.ldb, {Tile::BN}), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "44",
    .name = "grouped",
    .idea = "many products of few rows in one launch; a block draws its next tile when it is ready",
    .predecessor = "28",
    .types = {Type::bf16, Type::f16},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .grouped = true,
    .row_align_bytes = 16,
    .refuses = [](const Problem& p) -> std::string {
      if (static_cast<long long>(max(1, p.groups)) * p.n > std::numeric_limits<int>::max() - Tile::BN)
        return "counts the rows of all B in an int";
      return refuses_mma_sync(p);
    },
    .resources =
        [](const Problem& p) {
          return visit(GroupedTypes{}, p.type, p.out, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::MOST_BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES},
                             /*workspace_bytes=*/0,
                             /*locks=*/1};
          });
        },
    .launch = launch,
}};

}  // namespace
