// 48_tmem_epilogue · from tensor memory to C by whole lines
//
// Idea              In 47 a thread has a row of C: 32 lanes store to 32 rows, 16 bytes to each, and wait after every 8 columns. Here a warp
//                   loads 32 columns with one instruction, turns 32 rows of 128 bytes around in shared memory, and TMA stores them
//                   from there. A warp has 32 rows of its own and needs no other one: no barrier of the block in between.
// Changed from 47   the epilogue: tcgen05.ld of 32 columns; two buffers per warp, filled alternately; a tensor map for C; the descriptors
//                   from common/blackwell
// Expect            not measured: nobody here has the GPU. Per warp and tile of C in BF16, 32 waits for 8 columns become 4 for 64 columns;
//                   128 stores, each of a part of 32 sectors, become 4 stores of 4 KB by TMA: an eighth of the sectors
// Limiter now       the wait after each k tile; the tensor cores idle during the epilogue
// New instructions  tcgen05.ld of more columns
// Limits            as 47
// Run               ./run_all.sh run 48 300 264 200 --type bf16 --sim --sim-gpu b200
// Read              docs/48_tmem_epilogue.md
#include "common/blackwell/descriptor.h"
#include "common/blackwell/operand.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/ptx/tcgen05.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C per block: the lanes of tensor memory
  static constexpr int BN = 256;          // columns of C per block: so many of tensor memory
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per tcgen05.mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 4;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 148 tiles are about 8 x 18
  static constexpr int THREADS = BM;      // a thread per row in the epilogue
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = 32 * 128;  // a buffer for results of a warp: 128 bytes of each row
  static constexpr int BUFFERS = 2;         // per warp: one is filled, the other is being stored
  static constexpr int C_BUFFERS_BYTES = THREADS / 32 * BUFFERS * C_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + C_BUFFERS_BYTES + (STAGES + 2) * 8;  // mbarriers, an address
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  // mbarriers: the stage's k tile has landed; a k tile has been multiplied
  const uint32_t full = buffers + Tile::C_BUFFERS_BYTES, multiplied = full + STAGES * 8, address = multiplied + 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage * 8, 1);
    mbarrier_init(multiplied, 1);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  __syncwarp();
  if (warp == 0) {
    tcgen05_alloc(address, BN);
    tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const uint32_t acc = load_shared_u32(address);  // in tensor memory: lane i has the sums of row i

  // One lane of warp 0 issues all copies and all mma. Copies run ahead: they have their own tile of C, and their own k tile.
  int copy_c_tile = blockIdx.x, copy_k_tile = 0, copy_row = 0, copy_col = 0;
  PipelineState<STAGES> write_state;
  const auto copy = [&] {
    if (copy_c_tile >= c_tiles) return;
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
  if (warp == 0)
    for (int stage = 0; stage < STAGES; ++stage) copy();

  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[copy stage]     smem[read stage] -tcgen05.mma-> acc in tensor memory
  constexpr uint32_t INSTRUCTION =
      blackwell::instruction_descriptor(Tcgen05<type>::FORMAT, Tcgen05<type>::FORMAT, BM, BN);
  PipelineState<STAGES> read_state;
  uint32_t multiplied_phase = 0;
  const auto multiply_k_tile = [&](bool first) {
    const uint32_t tile_a = shared_address(smem) + read_state.index * Tile::STAGE_BYTES;
    const uint64_t a = blackwell::descriptor(tile_a), b = blackwell::descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + read_state.index * 8, read_state.phase);
    if (elect_sync()) {
#pragma unroll
      for (int k_step = 0; k_step < K_STEPS; ++k_step)
        Tcgen05<type>::mma(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                           INSTRUCTION, !first || k_step > 0);  // the first of a tile finds no sums
      tcgen05_commit(multiplied);
    }
    mbarrier_wait_parity(multiplied, multiplied_phase);  // this k tile is multiplied
    multiplied_phase ^= 1;
    copy();  // into its stage
    ++read_state;
  };
  // [/main-loop]

  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    if (warp == 0) {
      tcgen05_fence_after_thread_sync();
#pragma unroll 1
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) multiply_k_tile(k_tile == 0);
      tcgen05_fence_before_thread_sync();
    }
    __syncthreads();

    // [epilogue]
    // 4. epilogue: acc -tcgen05.ld-> registers -> smem -TMA-> gmem, for 32 rows of a warp 128 bytes of each at a time
    tcgen05_fence_after_thread_sync();
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int row = tile_row * BM + warp * 32, m = row + lane;
    constexpr int COLUMNS = 128 / sizeof(TC), CHUNK = 16 / sizeof(TC);  // per buffer, and per store to it
#pragma unroll 1
    for (int part = 0; part < BN / COLUMNS; ++part) {
      const int col = tile_col * BN + part * COLUMNS;
      float x[COLUMNS];
#pragma unroll
      for (int j = 0; j < COLUMNS; j += 32) tcgen05_ld_32x32b_x32(x + j, acc + (warp * 32 << 16) + part * COLUMNS + j);
      tcgen05_wait_ld(x);
      TC* const gC = C + static_cast<size_t>(m) * ldc + col;
      const auto result = [&](int j, const TC& c) {  // beta = 0 must not read C: it may hold NaN
        return from_float<TC>(beta == 0.0F ? alpha * x[j] : alpha * x[j] + beta * to_float(c));
      };
      if (N % CHUNK != 0 && col + COLUMNS > N) {  // TMA would write all of the 16 bytes in which N ends
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
          if (m < M && col + j < N) gC[j] = result(j, gC[j]);
        if (elect_sync()) cp_async_bulk_commit_group();  // an empty one: the waits below count groups
        __syncwarp();
        continue;
      }
      // [part]
      const uint32_t buffer = buffers + (warp * Tile::BUFFERS + part % Tile::BUFFERS) * Tile::C_BYTES;
      if (elect_sync()) cp_async_bulk_wait_group_read<Tile::BUFFERS - 1>();  // the store from this buffer has read it
      __syncwarp();
#pragma unroll
      for (int chunk = 0; chunk < COLUMNS / CHUNK; ++chunk) {
        Vector<TC> v = {};
        if (beta != 0.0F && m < M && col + chunk * CHUNK < N)
          v.bits = *reinterpret_cast<const uint4*>(gC + chunk * CHUNK);
#pragma unroll
        for (int j = 0; j < CHUNK; ++j) v.element[j] = result(chunk * CHUNK + j, v.element[j]);
        store16_shared(buffer + swizzle_128b(lane, chunk), v.bits);
      }
      fence_proxy_async_shared();
      __syncwarp();
      if (elect_sync()) {
        cp_async_bulk_tensor_2d_store(map_c, col, row, buffer);
        cp_async_bulk_commit_group();
      }
      __syncwarp();
      // [/part]
    }
    tcgen05_fence_before_thread_sync();
    __syncthreads();  // the sums have been read: the next tile may overwrite them
    // [/epilogue]
  }
  if (elect_sync()) cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
  if (warp == 0) tcgen05_dealloc(acc, BN);
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN}), tensor_map<TC>(p.c, p.m, p.n, p.ldc, {32}), p.beta, p.C<TC>(),
        p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "48",
    .name = "tmem_epilogue",
    .idea = "from tensor memory through shared memory: whole lines, stored by TMA",
    .predecessor = "47",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_100a",
    .instruction = MathInstruction::tcgen05,
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
