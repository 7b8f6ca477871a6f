// 42_fp8_block · scales of 128 neighbours along k, and sums of 128 promoted to FP32
//
// Idea              Each 128 elements along k of a row of A have a scale of their own, and each 128 x 128 of B. So a sum in the tensor
//                   cores may span 128 elements along k at most. They are a k tile: the warpgroup adds its partial sum, times both
//                   scales, to accumulators of its own, by FFMA in FP32. That also ends the rounding to 13 bits of long sums.
// Changed from 41   the main loop: partial sums that begin anew in each k tile, and their promotion; TMA brings the scales with the
//                   k tile; one tile, of 128x128
// Expect            two warpgroups of 64x128 multiply for 512 clocks per k tile. A warpgroup that promotes leaves the tensor cores to
//                   the other; where both have fallen into step, they idle: 6200 of 8192 FLOP per clock and SM, 0.79 times 41
// Limiter now       the promotion, during which the tensor cores idle, and copies: 32 KB per k tile
// New instructions  none; wgmma with scale-d = 0
// Limits            as 21; layout nt, and block scales
// Run               ./run_all.sh run 42 4096 4096 4096 --scales blocks --out same
// Read              docs/42_fp8_block.md
#include <array>

#include "common/hopper/descriptor.h"
#include "common/hopper/epilogue.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
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

struct Tile {
  static constexpr int WARPGROUPS = 2, TURNS = 1;      // that multiply, each its rows of the same tile
  static constexpr int WM = 64, BM = WARPGROUPS * WM;  // rows of C
  static constexpr int BN = 128;                       // columns of C, which have the same scale
  static constexpr bool SWAP_AB = false;               // what 28 has, and common/hopper/epilogue.h asks about
  static constexpr int BK_BYTES = 128, BK = BK_BYTES;  // bytes along k per tile, as many elements: those of a scale
  static constexpr int MMA_K_BYTES = 32;               // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 5;   // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int BUFFERS = 2;  // per warpgroup: one is filled, the other is being stored
  static constexpr int CONSUMERS = WARPGROUPS * 128;  // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;     // first comes the producer's warpgroup
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SCALE_A_BYTES = BM * 4, SCALE_B_BYTES = 16;  // of a k tile; TMA copies 16 bytes at least
  static constexpr int SCALES_BYTES = SCALE_A_BYTES + 128;          // of a stage
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: 128 bytes of 64 rows
  static constexpr int SMEM_BYTES =
      STAGES * (STAGE_BYTES + SCALES_BYTES) + WARPGROUPS * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(SCALE_BLOCK % BN == 0, "a tile's columns have the same scale");
  static_assert(SMEM_BYTES <= 227 * 1024);
};

constexpr int EARLY = 4;          // k tiles that a block asks for before its barrier
constexpr int GROUP_SIZE_M = 16;  // rows of tiles that are computed column by column

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_scale_a,
         const __grid_constant__ CUtensorMap map_scale_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK = Tile::BK, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int block = blockIdx.x, blocks = gridDim.x;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  const auto first_result = [&](int c_tile) -> Coord {  // of C, in this block's tile
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, GROUP_SIZE_M);
    return {tile_row * BM, tile_col * BN};
  };

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t scales = buffers + Tile::WARPGROUPS * Tile::BUFFERS * Tile::C_BYTES;
  const uint32_t full = scales + STAGES * Tile::SCALES_BYTES, empty = full + STAGES * 8;
  // [producer]
  // One thread: a k tile of A and B, and its scales.
  const auto copy_k_tile = [&](PipelineState<STAGES> state, Coord first, int k_tile) {
    const uint32_t barrier = full + state.index * 8;
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES, scale_b = scale_a + Tile::SCALE_A_BYTES;
    mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
    mbarrier_arrive_expect_tx(barrier, Tile::STAGE_BYTES + Tile::SCALE_A_BYTES + Tile::SCALE_B_BYTES);
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
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);
    }
    fence_mbarrier_init();
    for (int k_tile = 0; k_tile < early; ++k_tile) copy_k_tile({0, k_tile}, first_result(block), k_tile);
    prefetch_tensormap(map_c);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<40>();
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
  setmaxnreg_inc<232>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> partial -FFMA-> acc
  float partial[BN / 8][4] = {};  // sums of a k tile: [8 columns][results of this lane: mma_c]
  const auto multiply_k_tile = [&](float(&acc)[1][BN / 8][4], int k_tile) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + warpgroup * WM * BK_BYTES), b = descriptor(tile_a + BM * BK_BYTES);
    const uint32_t scale_a = scales + state.index * Tile::SCALES_BYTES, scale_b = scale_a + Tile::SCALE_A_BYTES;
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
    // [multiply]
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)  // the first does not add to what there is
      wgmma<type, BN>(partial, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                      k_step > 0);
    // [/multiply]
    wgmma_commit_group();
    float scale[2];  // of the two rows in which this lane has results
                     // [scale]
#pragma unroll
    for (int half = 0; half < 2; ++half)
      scale[half] = load_shared(scale_a + ((warp - 4) * 16 + mma_c(lane, half * 2).row) * 4) *
                    load_shared(scale_b + k_tile % 4 * 4);
    // [/scale]
    // [promote]
    wgmma_wait_group<0>();
    if (lane == 0) mbarrier_arrive(empty + state.index * 8);
#pragma unroll
    for (int j = 0; j < BN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[0][j][e] += scale[e / 2] * partial[j][e];
    // [/promote]
    ++state;
  };
  // [/main-loop]

  int part_number = 0;  // of the buffers filled
  for (int c_tile = block; c_tile < c_tiles; c_tile += blocks) {
    const Coord of_block = first_result(c_tile), first{of_block.row + warpgroup * WM, of_block.col};
    float acc[1][BN / 8][4] = {};
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      if (beta != 0.0F && k_tile == max(0, k_tiles - STAGES + 1)) prefetch_results<Tile>(of_block, M, N, C, ldc);
      multiply_k_tile(acc, k_tile);
    }

    // 4. store
    store_results<Tile>(acc, first, M, N, alpha, beta, C, ldc, map_c,
                        buffers + warpgroup * Tile::BUFFERS * Tile::C_BYTES, part_number);
  }
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
  const int k_tiles = ceil_div(p.k, Tile::BK);
  return {tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN}, CU_TENSOR_MAP_L2_PROMOTION_NONE),
          tensor_map<float>(p.scale_a, k_tiles, p.m, scale_ld_a(p.m), {1, Tile::SCALE_A_BYTES, false}),
          tensor_map<float>(p.scale_b, ceil_div(p.n, SCALE_BLOCK), k_tiles, scale_ld_b(p.k),
                            {1, Tile::SCALE_B_BYTES, false}),
          tensor_map<TC>(p.c, p.m, p.n, p.ldc, {64})};
}

template <Type type, class TC>
void launch(const Problem& p, const Maps& maps) {
  const int tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  gemm<type, TC><<<min(tiles, device_limits().sms), Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
      p.m, p.n, p.k, p.alpha, maps.a, maps.b, maps.scale_a, maps.scale_b, maps.c, p.beta, p.C<TC>(), p.ldc);
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
    .number = "42",
    .name = "fp8_block",
    .idea = "block scales: sums of 128 along k, scaled and promoted to FP32",
    .predecessor = "41",
    .types = {Type::e4m3},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::blocks},
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync_of<E4m3Types>,
    .resources =
        [](const Problem& p) {
          return visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() {
            return Resources{
                (const void*)gemm<type, TC>, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, Tile::BK}};
          });
        },
    .launch = [](const Problem& p) { prepare(p)(p); },
    .prepare = prepare,
}};

}  // namespace
