// 46_grouped_fp8 · FP8 with block scales in groups: 44's scheduler over 43's promoting warpgroups
//
// Idea              44 multiplies many groups in one launch, in 16 bits. In FP8 a group's B has half of the bytes, so its products take
//                   half of the time, if the tensor cores and the promotion keep up with DRAM. A tile has up to 192 rows of one group, 64
//                   for each of 43's three warpgroups. A warpgroup whose rows the group does not have only passes its stages on.
// Changed from 42   a third warpgroup, and the epilogue under the next tile's first wgmma, as in 43; tiles of groups, drawn and found by
//                   the producer, as in 44; A comes in boxes of 64 rows; results that end inside a group's last 64 rows are not stored by
//                   TMA
// Expect            64 groups of 128 rows, N 4096, K 7168: 1.88 GB of B at the 2340 bytes per clock that the link between L2's halves gave 44:
//                   535 us at 1500 MHz, 1.82 times 44 in BF16. Per k tile the link needs 924 clocks, DRAM 772, the tensor cores 512
// Limiter now       the link between the halves of L2; with many rows per group the tensor cores
// New instructions  none
// Limits            as 42
// Run               ./run_all.sh run 46 1024 512 512 --scales blocks --out same --groups 8 --group-rows random
// Read              docs/46_grouped_fp8.md
#include <array>
#include <limits>

#include "common/hopper/descriptor.h"
#include "common/hopper/epilogue.h"
#include "common/hopper/group_scheduler.h"
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
#include "common/ptx/wgmma.h"
#include "common/ptx/wgmma_n.h"
#include "common/rung.h"
#include "common/scales.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int WARPGROUPS = TUNABLE(WARPGROUPS, 3), TURNS = 1;  // that multiply, each its rows of the same tile
  static constexpr int WM = 64, BM = WARPGROUPS * WM;                   // rows of C per warpgroup, and at most per tile
  static constexpr int BN = 128;                                        // columns of C, which have the same scale
  static constexpr bool SWAP_AB = false;               // what 28 has, and common/hopper/epilogue.h asks about
  static constexpr int BK_BYTES = 128, BK = BK_BYTES;  // bytes along k per tile, as many elements: those of a scale
  static constexpr int MMA_K_BYTES = 32;               // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = TUNABLE(STAGES, 4);    // k tiles in shared memory: one is multiplied, the others copied
  static constexpr int BUFFERS = TUNABLE(BUFFERS, 2);  // per warpgroup: one is filled, the other is being stored
  static constexpr int CONSUMERS = WARPGROUPS * 128;   // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;      // first comes the producer's warpgroup
  static constexpr int PRODUCER_REGISTERS = WARPGROUPS == 2 ? 40 : 32, CONSUMER_REGISTERS = WARPGROUPS == 2 ? 232 : 160;
  static constexpr int GROUP_SIZE_M = ceil_div(2048, BM);  // rows of tiles that are computed column by column
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SCALE_A_BYTES = BM * 4 + 16, SCALE_B_BYTES = 16;  // of a k tile; TMA copies whole 16 bytes
  static constexpr int SCALES_BYTES = ceil_div(SCALE_A_BYTES, 128) * 128 + 128;  // of a stage
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 128 bytes of 64 rows
  // Offset of two mbarriers and of a GroupTile per stage.
  static constexpr int BARRIERS = STAGES * (STAGE_BYTES + SCALES_BYTES) + WARPGROUPS * BUFFERS * C_BYTES;
  static constexpr int SMEM_BYTES = BARRIERS + STAGES * (16 + sizeof(GroupTile));
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(SCALE_BLOCK % BN == 0, "a tile's columns have the same scale");
  static_assert(SMEM_BYTES <= 227 * 1024);
};

/// `drawn`: as in 44.
template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, int groups, const int* __restrict__ first_row, unsigned* drawn, float alpha,
         const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_scale_a, const __grid_constant__ CUtensorMap map_scale_b,
         const __grid_constant__ CUtensorMap map_c, float beta, TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK = Tile::BK, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t scales = buffers + Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES;
  const uint32_t full = shared_address(smem) + Tile::BARRIERS, empty = full + STAGES * 8;
  // The tile that a stage's k tile belongs to, where it is the first of it.
  GroupTile* const group_tiles = reinterpret_cast<GroupTile*>(smem + Tile::BARRIERS + STAGES * 16);
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_c);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile
  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<Tile::PRODUCER_REGISTERS>();
    if (warp != 0) return;
    GroupScheduler<Tile> scheduler(M, N, groups, first_row);
    for (int c_tile = blockIdx.x;;) {
      const GroupTile tile = scheduler.find(c_tile);
      if (tile.bm == 0) {
        if (elect_sync()) {
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          group_tiles[state.index] = tile;
          mbarrier_arrive(full + state.index * 8);  // no k tile comes: the consumers shall end, too
          // A block draws once per tile. So this is the last of all draws, and the next launch finds 0 again.
          if (c_tile - static_cast<int>(gridDim.x) == scheduler.tiles() - 1) st_release_gpu(drawn, 0);
        }
        return;
      }
      unsigned next = 0;
      if (elect_sync()) {
        next = atom_add_relaxed_gpu(drawn, 1);  // comes during the copies
        // Past the end of their group, copies bring rows, columns and scales of the next one, whose products are not stored.
        const int rows = ceil_div(tile.end_row - tile.row, WM) * WM;  // of the warpgroups that have any
        const int row_b = tile.group * N + tile.col;
        const int scale_row_b = tile.group * ceil_div(N, SCALE_BLOCK) + tile.col / SCALE_BLOCK;
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ++state) {
          const uint32_t barrier = full + state.index * 8;
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          if (k_tile == 0) group_tiles[state.index] = tile;
          mbarrier_arrive_expect_tx(barrier, (rows + BN) * BK_BYTES + Tile::SCALE_A_BYTES + Tile::SCALE_B_BYTES);
          cp_async_bulk_tensor_2d(tile_a + BM * BK_BYTES, map_b, k_tile * BK, row_b, barrier);
          for (int row = 0; row < rows; row += WM)
            cp_async_bulk_tensor_2d(tile_a + row * BK_BYTES, map_a, k_tile * BK, tile.row + row, barrier);
          // Boxes begin at multiples of 16 bytes.
          cp_async_bulk_tensor_2d(scale_a, map_scale_a, tile.row / 4 * 4, k_tile, barrier);
          cp_async_bulk_tensor_2d(scale_a + Tile::SCALES_BYTES - 128, map_scale_b, k_tile / 4 * 4, scale_row_b,
                                  barrier);
        }
      }
      c_tile = gridDim.x + __reduce_max_sync(0xffffffff, next);  // the other lanes have 0
    }
  }
  // [/producer]
  setmaxnreg_inc<Tile::CONSUMER_REGISTERS>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> partial -FFMA-> acc
  float partial[BN / 8][4] = {};  // sums of a k tile: [8 columns][results of this lane: mma_c]
  float acc[1][BN / 8][4] = {};
  const auto issue = [&] {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + warpgroup * WM * BK_BYTES), b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)  // the first does not add to what there is
      wgmma<type, BN>(partial, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                      k_step > 0);
    wgmma_commit_group();
  };
  const auto promote = [&](int row, int k_tile) {  // row: of the tile
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES, scale_b = scale_a + Tile::SCALES_BYTES - 128;
    float scale[2];  // of the two rows in which this lane has results
#pragma unroll
    for (int half = 0; half < 2; ++half)
      scale[half] = load_shared(scale_a + (row % 4 + (warp - 4) * 16 + mma_c(lane, half * 2).row) * 4) *
                    load_shared(scale_b + k_tile % 4 * 4);
    wgmma_wait_group<0>();
    if (lane == 0) mbarrier_arrive(empty + state.index * 8);
#pragma unroll
    for (int j = 0; j < BN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[0][j][e] += scale[e / 2] * partial[j][e];
    ++state;
  };
  // [/main-loop]

  // [store]
  // 4. store
  GroupTile before;     // whose results are in acc; bm = 0: there are none
  int part_number = 0;  // of the buffers filled
  const auto store = [&] {
    if (before.bm == 0) return;
    const Coord first{before.row + warpgroup * WM, before.col};
    const uint32_t own = buffers + warpgroup * Tile::BUFFERS * Tile::C_BYTES;
    if (first.row + WM <= before.end_row)
      store_results<Tile>(acc, first, M, N, alpha, beta, C, ldc, map_c, own, part_number);
    else  // TMA would store into the next group's rows
      store_without_tma<Tile>(acc, first, before.end_row, N, alpha, beta, C, ldc, own);
    before.bm = 0;
#pragma unroll
    for (int j = 0; j < BN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[0][j][e] = 0;
  };
  // [/store]

  // [tiles]
  while (true) {
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    const GroupTile tile = group_tiles[state.index];
    __syncwarp();  // all lanes have read it: one of them will release the stage
    // Rows that are left for this warpgroup, the same for all lanes.
    const int rows = __shfl_sync(0xffffffff, tile.end_row - tile.row - warpgroup * WM, 0);
    if (beta != 0.0F) prefetch_results<Tile>({tile.row, tile.col}, tile.end_row, N, C, ldc);
    if (rows <= 0) {
      store();
      if (__shfl_sync(0xffffffff, tile.bm, 0) == 0) break;
#pragma unroll 1
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ++state) {
        mbarrier_wait_parity(full + state.index * 8, state.phase);
        if (lane == 0) mbarrier_arrive(empty + state.index * 8);
      }
      continue;
    }
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      issue();
      if (k_tile == 0) store();  // the tensor cores have work
      promote(tile.row, k_tile);
    }
    before = tile;
  }
  // [/tiles]
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
}

/// How TMA loads operands and scales, and stores C.
struct Maps {
  CUtensorMap a, b, scale_a, scale_b, c;
};

template <Type type, class TC>
Maps maps(const Problem& p) {
  using T = typename Operand<type>::Element;
  const int k_tiles = ceil_div(p.k, Tile::BK), groups = max(1, p.groups);
  return {tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::WM}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<T>(p.b, groups * p.n, p.k, p.ldb, {Tile::BN}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<float>(p.scale_a, k_tiles, p.m, scale_ld_a(p.m), {1, Tile::SCALE_A_BYTES, false}),
          tensor_map<float>(p.scale_b, groups * ceil_div(p.n, SCALE_BLOCK), k_tiles, scale_ld_b(p.k),
                            {1, Tile::SCALE_B_BYTES, false}),
          tensor_map<TC>(p.c, p.m, p.n, p.ldc, {64})};
}

template <Type type, class TC>
void launch(const Problem& p, const Maps& maps) {
  gemm<type, TC><<<device_limits().sms, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
      p.m, p.n, p.k, max(1, p.groups), p.groups > 0 ? p.first_row : nullptr, p.locks, p.alpha, maps.a, maps.b,
      maps.scale_a, maps.scale_b, maps.c, p.beta, p.C<TC>(), p.ldc);
  cuda_check(cudaGetLastError());
}

/// A launch whose pointers, factors and stream may change. The maps are made anew when a matrix lies elsewhere.
std::function<void(const Problem&)> prepare(const Problem& p) {
  return visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() -> std::function<void(const Problem&)> {
    cuda_check(cudaFuncSetAttribute(gemm<type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    return [known = Maps{}, of = std::array<const void*, 5>{}](const Problem& p) mutable {
      if (const std::array<const void*, 5> now = {p.a, p.b, p.scale_a, p.scale_b, p.c}; of != now)
        known = maps<type, TC>(p), of = now;
      launch<type, TC>(p, known);
    };
  });
}

const Registration registration{{
    .number = "46",
    .name = "grouped_fp8",
    .idea = "block-scaled FP8 in groups: warpgroups without rows only pass their stages on",
    .predecessor = "42",
    .types = {Type::e4m3},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::blocks},
    .grouped = true,
    .row_align_bytes = 16,
    .refuses = [](const Problem& p) -> std::string {
      if (static_cast<long long>(max(1, p.groups)) * p.n > std::numeric_limits<int>::max() - Tile::BN)
        return "counts the rows of all B in an int";
      return refuses_mma_sync_of<E4m3Types>(p);
    },
    .resources =
        [](const Problem& p) {
          return visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK},
                             /*workspace_bytes=*/0,
                             /*locks=*/1};
          });
        },
    .launch = [](const Problem& p) { prepare(p)(p); },
    .prepare = prepare,
}};

}  // namespace
