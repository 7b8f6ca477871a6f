// 22_wgmma · four warps multiply from shared memory
//
// Idea              mma.sync wants its operands in registers: ldmatrix brings each byte there, and bounds what a warp can hold.
//                   wgmma reads both tiles from shared memory itself, by two 64-bit matrix descriptors, and runs asynchronously to
//                   the warps. Its ceiling is 1.38 times that of mma.sync.
// Changed from 21   wgmma in place of ldmatrix and mma; 128 x 256 results per block, 64 x 256 per warpgroup; columns in the order of B;
//                   from common/hopper: tensor_map(), PipelineState
// Expect            L2 sets the floor: 64 k tiles of 1,199 clocks, 76,700 per tile of C. 16 takes 1.21 times its floor; as much here, and
//                   1,800 for stores of pairs, are 94,900 clocks, where 21 takes 115,800: 1.22 times 21, 0.81 of cuBLAS
// Limiter now       the wait and the barrier after each k tile, during which the tensor cores idle; the epilogue
// New instructions  wgmma.mma_async, .fence, .commit_group, .wait_group
// Limits            as 21
// Run               ./run_all.sh run 22 4096 4096 4096 --type bf16
// Read              docs/22_wgmma.md
#include "common/hopper/descriptor.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/prefetch.h"
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
  static constexpr int THREADS = BM / WM * 128;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + STAGES * 8;  // and an mbarrier per stage
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

// [descriptor]
/// A tile in shared memory, for wgmma: rows of 128 bytes along k, swizzled, at a multiple of 1024.
///   bits  0-13  address / 16
///        16-29  leading dimension byte offset / 16: unused where a row is as long as the swizzle
///        32-45  stride dimension byte offset / 16: from 8 rows to the next 8
///        62-63  swizzle mode: 1 is that of 128 bytes
constexpr __host__ __device__ uint64_t descriptor(uint32_t tile) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}
// The rungs after this one take it from common/hopper/descriptor.h: the same function.
static_assert(descriptor(0x12400) == ladder::descriptor(0x12400));
// [/descriptor]

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
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  const uint32_t full = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // mbarriers: the stage's k tile has landed
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage * 8, 1);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();

  // One lane of warp 0 issues all copies. They run ahead of the mma: they have their own tile of C, and their own k tile.
  int copy_c_tile = blockIdx.x, copy_k_tile = 0, copy_row = 0, copy_col = 0;
  PipelineState<STAGES> write_state;
  const auto copy = [&] {
    if (warp != 0 || copy_c_tile >= c_tiles) return;
    if (copy_k_tile == 0) {
      const auto [tile_row, tile_col] = raster(copy_c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
      copy_row = tile_row * BM, copy_col = tile_col * BN;
    }
    const uint32_t dst = shared_address(smem) + write_state.index * Tile::STAGE_BYTES,
                   barrier = full + write_state.index * 8;
    if (elect_sync()) {
      mbarrier_arrive_expect_tx(barrier, Tile::STAGE_BYTES);
      cp_async_bulk_tensor_2d(dst, map_a, copy_k_tile * BK, copy_row, barrier);
      cp_async_bulk_tensor_2d(dst + BM * BK_BYTES, map_b, copy_k_tile * BK, copy_col, barrier);
    }
    ++write_state;
    if (++copy_k_tile == k_tiles) copy_k_tile = 0, copy_c_tile += gridDim.x;
  };
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int LINES = BN * sizeof(TC) / 128;  // of a row of the tile
#pragma unroll 1
    for (int i = threadIdx.x; i < BM * LINES; i += Tile::THREADS) {
      const int m = tile_row * BM + i / LINES, n = tile_col * BN + i % LINES * (BN / LINES);
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  for (int stage = 0; stage < STAGES; ++stage) copy();

  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[copy stage]     smem[read stage] -wgmma-> acc
  PipelineState<STAGES> read_state;
  const auto multiply_k_tile = [&](float(&acc)[BN / 8][4]) {
    const uint32_t tile_a = shared_address(smem) + read_state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + warpgroup * WM * BK_BYTES), b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + read_state.index * 8, read_state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
      Operand<type>::wgmma(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16));
    wgmma_commit_group();
    wgmma_wait_group<0>();  // this k tile is multiplied
    __syncthreads();        // by everyone
    copy();                 // into its stage
    ++read_state;
  };
  // [/main-loop]

  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    float acc[BN / 8][4] = {};  // [8 columns][results of this lane: wgmma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_c(c_tile);
      multiply_k_tile(acc);
    }

    // [epilogue]
    // 4. epilogue: a lane holds two neighbouring results in each of two rows and of every 8 columns
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int first_row = tile_row * BM + wgmma_c(warp, lane, 0).row;
    const int first_col = tile_col * BN + wgmma_c(warp, lane, 0).col;
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
    .number = "22",
    .name = "wgmma",
    .idea = "wgmma: four warps multiply tiles in shared memory, given by matrix descriptors",
    .predecessor = "21",
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
    .constants =
        {{"Tile",
          {{"BN", Tile::BN}, {"WM", Tile::WM}, {"BK_BYTES", Tile::BK_BYTES}, {"MMA_K_BYTES", Tile::MMA_K_BYTES}}}},
}};

}  // namespace
