// 53_mxfp8 · a scale for every 32 values, in the tensor cores
//
// Idea              A number of 8 bits has little range, so neighbours share a scale. On Hopper 42 and 43 multiply sums of 128 products by
//                   FP32 scales, with the CUDA cores. tcgen05.mma of kind mxf8f6f4 takes a scale for each 32 values of a row of A and of
//                   a column of B, a power of 2, and multiplies by both itself. It reads them from tensor memory.
// Changed from 49   E4M3; per k tile a bulk copy brings 128 scales for each 32 of k, and tcgen05.cp takes them to tensor memory; the
//                   scales of a k step are named in the instruction descriptor
// Expect            not measured: nobody here has the GPU. A k tile is as many bytes as in 49 and has twice as many products, in as many
//                   clocks at the published rate, 16384 FLOP per clock and SM; scales are 3 % of its bytes
// Limiter now       shared memory, as in 49
// New instructions  tcgen05.mma of kind mxf8f6f4, tcgen05.cp, cp.async.bulk to shared memory
// Limits            sm_100a; e4m3 with --scales mx; rows of A, B and C at multiples of 16 bytes
// Run               ./run_all.sh run 53 300 264 208 --scales mx --sim --sim-gpu b200
// Read              docs/53_mxfp8.md
#include "common/blackwell/descriptor.h"
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
#include "common/scales.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C per block: the lanes of tensor memory
  static constexpr int BN = 256;          // columns of C per block, and of tensor memory
  static constexpr int BK_BYTES = 128;    // bytes along k per tile, and elements
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per tcgen05.mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 4;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 148 tiles are about 8 x 18
  static constexpr int EPILOGUE = BM;     // threads: one per row
  static constexpr int THREADS = 64 + EPILOGUE;  // first come the producer's warp and the multiplier's
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SCALES = 512;                             // bytes: of 128 rows, for a k tile
  static constexpr int SCALES_BYTES = (BM + BN) / 128 * SCALES;  // of a k tile of A and of B
  static constexpr int TMEM_COLUMNS = 512;                       // BN of sums, then 4 per 128 rows of scales
  static constexpr int C_BYTES = 32 * 128;  // a buffer for results of a warp: 128 bytes of each row
  static constexpr int BUFFERS = 1;         // per warp
  static constexpr int C_BUFFERS_BYTES = EPILOGUE / 32 * BUFFERS * C_BYTES;
  static constexpr int SMEM_BYTES = STAGES * (STAGE_BYTES + SCALES_BYTES) + C_BUFFERS_BYTES + (2 * STAGES + 3) * 8;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

// [descriptors]
/// 128 rows of scales in shared memory, for tcgen05.cp: 32 rows of 16 bytes, not swizzled; 128 bytes from 8 of them to the next 8.
constexpr __host__ __device__ uint64_t scales_descriptor(uint32_t scales) {
  return uint64_t{scales & 0x3FFFF} >> 4 | uint64_t{128 >> 4} << 32 | uint64_t{1} << 46;
}

/// What is multiplied, both operands E4M3 with k contiguous, into FP32.
///   bits  4- 5  which of the four bytes of a column is the scale of B
///        17-22  columns of D / 8
///        23     scales are UE8M0
///        24-28  rows of D / 16
///        29-30  which byte is the scale of A
constexpr __host__ __device__ uint32_t instruction_descriptor(uint32_t byte, uint32_t rows, uint32_t columns) {
  return byte << 4 | columns / 8 << 17 | uint32_t{1} << 23 | rows / 16 << 24 | byte << 29;
}
// [/descriptors]

template <class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c,
         const unsigned char* __restrict__ scale_a, const unsigned char* __restrict__ scale_b, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  constexpr int BK = BK_BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  const uint32_t scales = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of each stage
  const uint32_t buffers = scales + STAGES * Tile::SCALES_BYTES;              // of C
  // mbarriers of each stage: its k tile has landed; it has been multiplied. Of acc: all k tiles are in it; it has been read
  const uint32_t full = buffers + Tile::C_BUFFERS_BYTES, empty = full + STAGES * 8;
  const uint32_t acc_full = empty + STAGES * 8, acc_empty = acc_full + 8, address = acc_empty + 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage)
      mbarrier_init(full + stage * 8, 1), mbarrier_init(empty + stage * 8, 1);
    mbarrier_init(acc_full, 1), mbarrier_init(acc_empty, Tile::EPILOGUE / 32);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  __syncwarp();
  if (warp == 1) {
    tcgen05_alloc(address, Tile::TMEM_COLUMNS);
    tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const uint32_t acc = load_shared_u32(address);  // in tensor memory: lane i has the sums of row i

  if (warp == 0) {
    // [producer]
    // the producer: one thread issues all copies, in the order in which the multiplier takes them
    // [copy-scales]
    const auto copy_scales = [&](uint32_t to, const unsigned char* from, int rows, int row, int k_tile,
                                 uint32_t barrier) {
      const int last = (rows - 1) / 128;  // of a tile that has no such rows: any, its results are not stored
      cp_async_bulk(to, from + (static_cast<size_t>(min(row / 128, last)) * k_tiles + k_tile) * Tile::SCALES,
                    Tile::SCALES, barrier);
    };
    // [/copy-scales]
    if (elect_sync()) {
      PipelineState<STAGES> state;  // of the next k tile
      for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES + Tile::SCALES_BYTES);
          cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, tile_row * BM, full + state.index * 8);
          cp_async_bulk_tensor_2d(tile_a + BM * BK_BYTES, map_b, k_tile * BK, tile_col * BN, full + state.index * 8);
          const uint32_t to = scales + state.index * Tile::SCALES_BYTES;
          copy_scales(to, scale_a, M, tile_row * BM, k_tile, full + state.index * 8);
          for (int i = 0; i < BN / 128; ++i)
            copy_scales(to + (1 + i) * Tile::SCALES, scale_b, N, tile_col * BN + i * 128, k_tile,
                        full + state.index * 8);
          ++state;
        }
      }
    }
    // [/producer]
  } else if (warp == 1) {
    // [main-loop]
    // 3. main loop: gmem -TMA-> smem[stage] -tcgen05.mma-> acc in tensor memory. One thread; its mma run in its order
    if (elect_sync()) {
      const uint32_t scales_a = acc + BN, scales_b = scales_a + 4;  // in tensor memory: 4 columns for 128 rows
      PipelineState<STAGES> state;
      PipelineState<1> acc_state;
      for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
        mbarrier_wait_parity(acc_empty, acc_state.phase ^ 1);
        tcgen05_fence_after_thread_sync();
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          const uint64_t a = blackwell::descriptor(tile_a), b = blackwell::descriptor(tile_a + BM * BK_BYTES);
          mbarrier_wait_parity(full + state.index * 8, state.phase);
          // [scales]
          const uint32_t from = scales + state.index * Tile::SCALES_BYTES;
          // In order: after the mma before, which reads the last k tile's scales, and before those below
          tcgen05_cp_32x128b_warpx4(scales_a, scales_descriptor(from));
#pragma unroll
          for (int i = 0; i < BN / 128; ++i)
            tcgen05_cp_32x128b_warpx4(scales_b + 4 * i, scales_descriptor(from + (1 + i) * Tile::SCALES));
#pragma unroll
          for (int k_step = 0; k_step < K_STEPS; ++k_step)
            tcgen05_mma_mxf8f6f4(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                                 instruction_descriptor(k_step, BM, BN), scales_a, scales_b, k_tile + k_step > 0);
          // [/scales]
          tcgen05_commit(empty + state.index * 8);  // arrives when this k tile is multiplied
          ++state;
        }
        tcgen05_commit(acc_full);
        ++acc_state;
      }
    }
    // [/main-loop]
  } else {
    const int quarter = warp % 4;  // of the lanes of tensor memory that this warp reaches
    PipelineState<1> acc_state;
    for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
      mbarrier_wait_parity(acc_full, acc_state.phase);
      tcgen05_fence_after_thread_sync();
      ++acc_state;

      // [epilogue]
      // 4. epilogue: acc -tcgen05.ld-> registers -> smem -TMA-> gmem, for 32 rows of a warp 128 bytes of each at a time
      const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
      const int row = tile_row * BM + quarter * 32, m = row + lane;
      constexpr int COLUMNS = 128 / sizeof(TC), CHUNK = 16 / sizeof(TC);  // per buffer, and per store to it
#pragma unroll 1
      for (int part = 0; part < BN / COLUMNS; ++part) {
        const int col = tile_col * BN + part * COLUMNS;
        float x[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 32)
          tcgen05_ld_32x32b_x32(x + j, acc + (quarter * 32 << 16) + part * COLUMNS + j);
        tcgen05_wait_ld(x);
        if (part == BN / COLUMNS - 1) {  // the sums have been read: the next tile may overwrite them
          tcgen05_fence_before_thread_sync();
          __syncwarp();
          if (elect_sync()) mbarrier_arrive(acc_empty);
        }
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
        const uint32_t buffer = buffers + (quarter * Tile::BUFFERS + part % Tile::BUFFERS) * Tile::C_BYTES;
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
      }
      // [/epilogue]
    }
    if (elect_sync()) cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  }
  __syncwarp();
  __syncthreads();
  if (warp == 1) tcgen05_dealloc(acc, Tile::TMEM_COLUMNS);
}

void launch(const Problem& p) {
  visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN}), tensor_map<TC>(p.c, p.m, p.n, p.ldc, {32}),
        reinterpret_cast<const unsigned char*>(p.scale_a), reinterpret_cast<const unsigned char*>(p.scale_b), p.beta,
        p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "53",
    .name = "mxfp8",
    .idea = "a scale for every 32 values of E4M3, which tcgen05.mma applies",
    .predecessor = "49",
    .types = {Type::e4m3},
    .arch = "sm_100a",
    .instruction = MathInstruction::tcgen05,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::mx},
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync_of<E4m3Types>,
    .resources =
        [](const Problem& p) {
          return visit(E4m3Types{}, p.type, p.out, [&]<Type type, class TC>() {
            return Resources{
                (const void*)gemm<TC>, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, Tile::BK_BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
