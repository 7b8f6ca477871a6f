// 23_warp_specialized · a producer warp and two consumer warpgroups
//
// Idea              In 22 the warps that multiply also issue the copies, and meet at a barrier in each k tile: one late warp delays all.
//                   Here a producer warp does nothing but issue copies. Before each copy it waits on an "empty" mbarrier of the
//                   stage, on which the consumer warps arrive after multiplying. The two warpgroups no longer wait for each other.
// Changed from 22   a third warpgroup, of which one thread issues the copies; an empty mbarrier per stage in place of __syncthreads();
//                   setmaxnreg moves registers from producer to consumers; from common/hopper: descriptor()
// Expect            1.17 times 22, 0.99 of cuBLAS: while a warpgroup waits, the other multiplies; L2 at 41 bytes per clock then needs
//                   76,700 clocks per tile of C, and the stores 5,000, where 22 takes 95,800
// Limiter now       wgmma; the epilogue, during which the tensor cores idle
// New instructions  setmaxnreg, mbarrier.arrive
// Limits            as 21
// Run               ./run_all.sh run 23 4096 4096 4096 --type bf16
// Read              docs/23_warp_specialized.md
#include "common/hopper/descriptor.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/wgmma.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C per block
  static constexpr int BN = 256;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warpgroup, which has all columns
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 4;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 132 tiles are about 8 x 16
  static constexpr int CONSUMERS = BM / WM * 128;  // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;  // first comes the producer's warpgroup
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + STAGES * 16;  // and two mbarriers per stage
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, float beta, TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t full = shared_address(smem) + STAGES * Tile::STAGE_BYTES, empty = full + STAGES * 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      // [arrivals]
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);
      // [/arrivals]
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<40>();
    if (warp != 0 || !elect_sync()) return;
    for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
      const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
        // [producer-acquire]
        mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
        // [/producer-acquire]
        mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES);
        cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, tile_row * BM, full + state.index * 8);
        cp_async_bulk_tensor_2d(tile_a + BM * BK_BYTES, map_b, k_tile * BK, tile_col * BN, full + state.index * 8);
        ++state;
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<232>();
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int LINES = BN * sizeof(TC) / 128;  // of a row of the tile
#pragma unroll 1
    for (int i = threadIdx.x - 128; i < BM * LINES; i += Tile::CONSUMERS) {
      const int m = tile_row * BM + i / LINES, n = tile_col * BN + i % LINES * (BN / LINES);
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    // [consumer-release]
    if (multiplied >= 0 && lane == 0) mbarrier_arrive(empty + multiplied * 8);
    // [/consumer-release]
  };
  const auto multiply_k_tile = [&](float(&acc)[BN / 8][4]) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + warpgroup * WM * BK_BYTES), b = descriptor(tile_a + BM * BK_BYTES);
    // [consumer-wait]
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    // [/consumer-wait]
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
      Operand<type>::wgmma(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16));
    wgmma_commit_group();
    wgmma_wait_group<1>();  // the previous k tile is multiplied
    consumer_release();
    multiplied = state.index;
    ++state;
  };
  // [/main-loop]

  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    float acc[BN / 8][4] = {};  // [8 columns][results of this lane: wgmma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_c(c_tile);
      multiply_k_tile(acc);
    }
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;

    // [epilogue]
    // 4. epilogue: a lane holds two neighbouring results in each of two rows and of every 8 columns
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int first_row = tile_row * BM + wgmma_c(warp - 4, lane, 0).row;
    const int first_col = tile_col * BN + wgmma_c(warp - 4, lane, 0).col;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = first_row + half * 8;
      if (m >= M) continue;
      TC* const gC = C + static_cast<size_t>(m) * ldc;
#pragma unroll
      for (int j = 0; j < BN / 8; ++j) {
        const int n = first_col + j * 8;
        float d[2] = {alpha * acc[j][half * 2], alpha * acc[j][half * 2 + 1]};
        if (n < N && beta != 0.0F) d[0] += beta * to_float(gC[n]);  // beta = 0 must not read C: it may hold NaN
        if (n + 1 < N && beta != 0.0F) d[1] += beta * to_float(gC[n + 1]);
        if (n + 1 < N)
          store2(gC + n, d);
        else if (n < N)
          gC[n] = from_float<TC>(d[0]);
      }
    }
    // [/epilogue]
  }
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN}), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "23",
    .name = "warp_specialized",
    .idea = "one warp copies, two warpgroups multiply; full and empty mbarriers between them",
    .predecessor = "22",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_types(p, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
