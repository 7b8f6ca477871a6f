// 54_nvfp4 · 4 bits, and a scale for every 16 values
//
// Idea              E2M1 has 8 magnitudes, 0 to 6. With a scale of 8 bits for each 16 neighbours (NVFP4) a value takes 4.5 bits.
//                   tcgen05.mma of kind mxf4nvf4 multiplies 64 of k with 32 bytes of a row, and takes four scales per row.
// Changed from 53   E2M1, two in a byte; UE4M3 scales, of which a k step has a column of tensor memory per 128 rows to itself; three stages;
//                   the last k tile has as many k steps as there are scales
// Expect            not measured: nobody here has the GPU. A k tile is as many bytes as in 53 and has twice as many products, in as many
//                   clocks at the published rate, 32768 FLOP per clock and SM; scales are 11 % of its bytes
// Limiter now       shared memory, as in 49
// New instructions  tcgen05.mma of kind mxf4nvf4
// Limits            sm_100a; e2m1 with --scales nv; K even; rows of A, B and C at multiples of 16 bytes
// Run               ./run_all.sh run 54 300 264 416 --scales nv --sim --sim-gpu b200
// Read              docs/54_nvfp4.md
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
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 256 elements
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per tcgen05.mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 3;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 148 tiles are about 8 x 18
  static constexpr int EPILOGUE = BM;     // threads: one per row
  static constexpr int THREADS = 64 + EPILOGUE;  // first come the producer's warp and the multiplier's
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SCALES = 512;                            // bytes: of 128 rows, for a k step
  static constexpr int STEP_SCALES = (BM + BN) / 128 * SCALES;  // of a k step of A and of B
  static constexpr int SCALES_BYTES = K_STEPS * STEP_SCALES;
  static constexpr int TMEM_COLUMNS = 512;  // BN of sums, then 4 per 128 rows of scales and k step
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

/// What is multiplied, both operands E2M1 with k contiguous, into FP32, with scales in UE4M3 (bit 23 is 0).
///   bits  7- 9  type of A, 10-11 of B: 1 is E2M1
///        17-22  columns of D / 8
///        24-28  rows of D / 16
constexpr __host__ __device__ uint32_t instruction_descriptor(uint32_t rows, uint32_t columns) {
  return uint32_t{1} << 7 | uint32_t{1} << 10 | columns / 8 << 17 | rows / 16 << 24;
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
  constexpr int BK = BK_BYTES * 2, MMA_K = Tile::MMA_K_BYTES * 2;  // two elements in a byte
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;

  // 2. set up
  const int k_tiles = ceil_div(K, BK), k_steps = ceil_div(K, MMA_K);          // k steps of all k tiles
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
    const auto copy_scales = [&](uint32_t to, const unsigned char* from, int rows, int row, int k_step,
                                 uint32_t barrier) {
      const int last = (rows - 1) / 128;  // of a tile that has no such rows: any, its results are not stored
      cp_async_bulk(to, from + (static_cast<size_t>(min(row / 128, last)) * k_steps + k_step) * Tile::SCALES,
                    Tile::SCALES, barrier);
    };
    if (elect_sync()) {
      PipelineState<STAGES> state;  // of the next k tile
      for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          const int steps = min(K_STEPS, k_steps - k_tile * K_STEPS);
          mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES + steps * Tile::STEP_SCALES);
          cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK_BYTES, tile_row * BM, full + state.index * 8);
          cp_async_bulk_tensor_2d(tile_a + BM * BK_BYTES, map_b, k_tile * BK_BYTES, tile_col * BN,
                                  full + state.index * 8);
          // [copy-scales]
          for (int k_step = 0; k_step < steps; ++k_step) {
            const uint32_t to = scales + state.index * Tile::SCALES_BYTES + k_step * Tile::STEP_SCALES;
            const int of_all = k_tile * K_STEPS + k_step;
            copy_scales(to, scale_a, M, tile_row * BM, of_all, full + state.index * 8);
            for (int i = 0; i < BN / 128; ++i)
              copy_scales(to + (1 + i) * Tile::SCALES, scale_b, N, tile_col * BN + i * 128, of_all,
                          full + state.index * 8);
          }
          // [/copy-scales]
          ++state;
        }
      }
    }
    // [/producer]
  } else if (warp == 1) {
    // [main-loop]
    // 3. main loop: gmem -TMA-> smem[stage] -tcgen05.mma-> acc in tensor memory. One thread; its mma run in its order
    if (elect_sync()) {
      constexpr uint32_t INSTRUCTION = instruction_descriptor(BM, BN);
      const uint32_t scales_a = acc + BN, scales_b = scales_a + 4 * K_STEPS;  // per k step 4 columns for 128 rows
      PipelineState<STAGES> state;
      PipelineState<1> acc_state;
      for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
        mbarrier_wait_parity(acc_empty, acc_state.phase ^ 1);
        tcgen05_fence_after_thread_sync();
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          const uint64_t a = blackwell::descriptor(tile_a), b = blackwell::descriptor(tile_a + BM * BK_BYTES);
          mbarrier_wait_parity(full + state.index * 8, state.phase);
          // [k-steps]
          const int steps = min(K_STEPS, k_steps - k_tile * K_STEPS);
          // In order: tcgen05.cp after the mma of the last k tile, which read the scales there, and before its own
          for (int k_step = 0; k_step < steps; ++k_step) {
            const uint32_t from = scales + state.index * Tile::SCALES_BYTES + k_step * Tile::STEP_SCALES;
            const uint32_t of_a = scales_a + 4 * k_step, of_b = scales_b + 4 * (BN / 128) * k_step;
            tcgen05_cp_32x128b_warpx4(of_a, scales_descriptor(from));
            for (int i = 0; i < BN / 128; ++i)
              tcgen05_cp_32x128b_warpx4(of_b + 4 * i, scales_descriptor(from + (1 + i) * Tile::SCALES));
            tcgen05_mma_mxf4nvf4(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                                 INSTRUCTION, of_a, of_b, k_tile + k_step > 0);
          }
          // [/k-steps]
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
  visit(E2m1Types{}, p.type, p.out, [&]<Type type, class TC>() {
    const auto kernel = gemm<TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<unsigned char>(p.a, p.m, p.k / 2, p.lda / 2, {Tile::BM}),
        tensor_map<unsigned char>(p.b, p.n, p.k / 2, p.ldb / 2, {Tile::BN}), tensor_map<TC>(p.c, p.m, p.n, p.ldc, {32}),
        reinterpret_cast<const unsigned char*>(p.scale_a), reinterpret_cast<const unsigned char*>(p.scale_b), p.beta,
        p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "54",
    .name = "nvfp4",
    .idea = "4 bits per value, and a scale for every 16",
    .predecessor = "53",
    .types = {Type::e2m1},
    .arch = "sm_100a",
    .instruction = MathInstruction::tcgen05,
    .layout_b = MatrixLayout::col_major,
    .scales = {Scales::nv},
    .row_align_bytes = 16,
    .refuses =
        [](const Problem& p) {
          return p.k % 2 != 0 ? "takes whole bytes of two elements, so K must be even"
                              : refuses_mma_sync_of<E2m1Types>(p);
        },
    .resources =
        [](const Problem& p) {
          return visit(E2m1Types{}, p.type, p.out, [&]<Type type, class TC>() {
            return Resources{
                (const void*)gemm<TC>, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, 2 * Tile::BK_BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
