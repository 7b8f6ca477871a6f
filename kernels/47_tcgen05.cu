// 47_tcgen05 · one thread multiplies, and the sums stay out of the registers
//
// Idea              wgmma holds a warpgroup's 64 x 256 sums in 128 registers of each thread, and four warps issue it together. tcgen05.mma
//                   of sm_100a is issued by one thread; it reads A and B from shared memory and keeps D in tensor memory, 128 lanes x 512
//                   columns that belong to the SM. The registers are free, and so are the other threads.
// Changed from 22   tcgen05.mma in place of wgmma: one warp waits, one lane of it multiplies and copies; a block's warps meet before
//                   and after an epilogue alone; the epilogue reads tensor memory
// Expect            not measured: nobody here has the GPU. A k tile takes 2 x 128 x 256 x 64 / 8192 = 512 clocks of the tensor cores at the
//                   published rate. After each they rest until one lane has noticed, copied, waited and issued again
// Limiter now       the wait after each k tile, during which the tensor cores idle; 8 columns per load, 32 rows per store in the epilogue
// New instructions  tcgen05.alloc, .relinquish_alloc_permit, .dealloc, .mma, .commit, .ld, .wait::ld, .fence
// Limits            sm_100a; bf16, f16, tf32; rows of A, B and C at multiples of 16 bytes
// Run               ./run_all.sh run 47 300 264 200 --type bf16 --sim --sim-gpu b200
// Read              docs/47_tcgen05.md
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
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + (STAGES + 2) * 8;  // mbarriers, and an address
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

// [descriptor]
/// A tile in shared memory, for tcgen05.mma: rows of 128 bytes along k, swizzled, at a multiple of 1024.
///   bits  0-13  address / 16
///        16-29  leading dimension byte offset / 16: unused where a row is as long as the swizzle
///        32-45  stride dimension byte offset / 16: from 8 rows to the next 8
///        46-48  1
///        61-63  swizzle mode: 2 is that of 128 bytes
constexpr __host__ __device__ uint64_t descriptor(uint32_t tile) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 |
         uint64_t{2} << 61;
}

/// What is multiplied, both operands with k contiguous, into FP32.
///   bits  4- 5  type of D: 1 is FP32
///         7- 9  type of A, 10-12 of B: 0 is FP16, 1 BF16, 2 TF32
///        17-22  columns of D / 8
///        24-28  rows of D / 16
constexpr __host__ __device__ uint32_t instruction_descriptor(uint32_t a_type, uint32_t b_type, uint32_t rows,
                                                              uint32_t columns) {
  return uint32_t{1} << 4 | a_type << 7 | b_type << 10 | columns / 8 << 17 | rows / 16 << 24;
}
// The rungs after this one take them from common/blackwell/descriptor.h: the same functions.
static_assert(descriptor(0x12400) == blackwell::descriptor(0x12400));
static_assert(instruction_descriptor(1, 1, 128, 256) == blackwell::instruction_descriptor(1, 1, 128, 256));
// [/descriptor]

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, float beta, TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = warp_index_sync();

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers: the stage's k tile has landed; a k tile has been multiplied
  const uint32_t full = shared_address(smem) + STAGES * Tile::STAGE_BYTES, multiplied = full + STAGES * 8;
  const uint32_t address = multiplied + 8;
  // [set-up]
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage * 8, 1);
    mbarrier_init(multiplied, 1);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncwarp();
  if (warp == 0) {
    tcgen05_alloc(address, BN);
    tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  // [/set-up]
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
  constexpr uint32_t INSTRUCTION = instruction_descriptor(Tcgen05<type>::FORMAT, Tcgen05<type>::FORMAT, BM, BN);
  PipelineState<STAGES> read_state;
  uint32_t multiplied_phase = 0;
  const auto multiply_k_tile = [&](bool first) {
    const uint32_t tile_a = shared_address(smem) + read_state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a), b = descriptor(tile_a + BM * BK_BYTES);
    // [multiply]
    mbarrier_wait_parity(full + read_state.index * 8, read_state.phase);
    // [issue]
    if (elect_sync()) {
#pragma unroll
      for (int k_step = 0; k_step < K_STEPS; ++k_step)
        Tcgen05<type>::mma(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                           INSTRUCTION, !first || k_step > 0);  // the first of a tile finds no sums
      tcgen05_commit(multiplied);
    }
    // [/issue]
    mbarrier_wait_parity(multiplied, multiplied_phase);  // this k tile is multiplied
    multiplied_phase ^= 1;
    copy();  // into its stage
    ++read_state;
    // [/multiply]
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
    // 4. epilogue: a thread has a row. A warp reaches the 32 lanes of tensor memory that its number modulo 4 names
    tcgen05_fence_after_thread_sync();
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    // [row]
    const int m = tile_row * BM + threadIdx.x;
    // [/row]
#pragma unroll 1
    for (int j = 0; j < BN; j += 8) {
      // [tensor-memory]
      float x[8];
      tcgen05_ld_32x32b_x8(x, acc + (warp * 32 << 16) + j);
      tcgen05_wait_ld(x);
      // [/tensor-memory]
      TC* const gC = C + static_cast<size_t>(m) * ldc + tile_col * BN + j;
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const int n = tile_col * BN + j + i;
        if (m >= M) continue;
        float d[2] = {alpha * x[i], alpha * x[i + 1]};
        if (n < N && beta != 0.0F) d[0] += beta * to_float(gC[i]);  // beta = 0 must not read C: it may hold NaN
        if (n + 1 < N && beta != 0.0F) d[1] += beta * to_float(gC[i + 1]);
        if (n + 1 < N)
          store2(gC + i, d);
        else if (n < N)
          gC[i] = from_float<TC>(d[0]);
      }
    }
    tcgen05_fence_before_thread_sync();
    __syncthreads();  // the sums have been read: the next tile may overwrite them
    // [/epilogue]
  }
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
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN}), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "47",
    .name = "tcgen05",
    .idea = "tcgen05.mma: one thread multiplies, into tensor memory",
    .predecessor = "22",
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
