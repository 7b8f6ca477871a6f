// 52_cluster_launch_control · the GPU hands out the tiles
//
// Idea              In 51 each pair of blocks has its list of tiles before it begins. A pair that starts late, or on SMs that another
//                   kernel shares, makes all wait. Here the grid has a pair per tile, as a plain kernel has; a running pair
//                   cancels the launch of one that has not begun, and takes its tile.
// Changed from 51   a seventh warp, the scheduler, which asks for tiles; each warp takes its next tile from the answers, in two slots of
//                   shared memory; the grid
// Expect            not measured: nobody here has the GPU. Nothing where all SMs are free and all tiles alike. A pair that starts late
//                   makes the launch longer by at most a tile or two, where in 51 it is by as much as the pair is late
// Limiter now       as 51
// New instructions  clusterlaunchcontrol.try_cancel, .query_cancel
// Limits            as 47
// Run               ./run_all.sh run 52 300 264 200 --type bf16 --sim --sim-gpu b200
// Read              docs/52_cluster_launch_control.md
#include "common/blackwell/descriptor.h"
#include "common/blackwell/operand.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cluster.h"
#include "common/ptx/clusterlaunchcontrol.h"
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
  static constexpr int BN = 256;          // columns of C per pair of blocks, and of tensor memory
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per tcgen05.mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 6;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int PAIR = 2;          // blocks, one above the other in C
  static constexpr int GROUP_SIZE_M = 8;  // pairs per group: 74 pairs are about 8 x 9
  static constexpr int ACCUMULATORS = 2;  // of BN columns each: one is multiplied into, the other is read
  static constexpr int EPILOGUE = BM;     // threads: one per row
  static constexpr int THREADS = 96 + EPILOGUE;  // warps: producer, multiplier, four for the epilogue, scheduler
  static constexpr int SLOTS = 2;                // answers to the scheduler: one is read, the other awaited
  static constexpr int STAGE_BYTES = (BM + BN / PAIR) * BK_BYTES;
  static constexpr int C_BYTES = 32 * 128;  // a buffer for results of a warp: 128 bytes of each row
  static constexpr int BUFFERS = 2;         // per warp: one is filled, the other is being stored
  static constexpr int C_BUFFERS_BYTES = EPILOGUE / 32 * BUFFERS * C_BYTES;
  static constexpr int SMEM_BYTES =
      STAGES * STAGE_BYTES + C_BUFFERS_BYTES + SLOTS * 16 + (2 * STAGES + 2 * ACCUMULATORS + 2 * SLOTS + 1) * 8;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

template <Type type, class TC>
__global__ void __cluster_dims__(Tile::PAIR, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, PAIR = Tile::PAIR;
  constexpr int ACCUMULATORS = Tile::ACCUMULATORS, SLOTS = Tile::SLOTS;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, PAIR * BM), tiles_n = ceil_div(N, BN);  // of pairs
  const int rank = cluster_ctarank();
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  // mbarriers of each stage: its k tile has landed; it has been multiplied. Of each accumulator: all k tiles are in it;
  // it has been read. Of each answer: it has landed; all warps have read it. Those of rank 0 count what both blocks do: full,
  // acc_empty, answer_empty
  const uint32_t answers = buffers + Tile::C_BUFFERS_BYTES;
  const uint32_t full = answers + SLOTS * 16, empty = full + STAGES * 8;
  const uint32_t acc_full = empty + STAGES * 8, acc_empty = acc_full + ACCUMULATORS * 8;
  const uint32_t answer_full = acc_empty + ACCUMULATORS * 8, answer_empty = answer_full + SLOTS * 8;
  const uint32_t address = answer_empty + SLOTS * 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage)
      mbarrier_init(full + stage * 8, 1), mbarrier_init(empty + stage * 8, 1);
    for (int i = 0; i < ACCUMULATORS; ++i)
      mbarrier_init(acc_full + i * 8, 1), mbarrier_init(acc_empty + i * 8, PAIR * Tile::EPILOGUE / 32);
    for (int i = 0; i < SLOTS; ++i)
      mbarrier_init(answer_full + i * 8, 1), mbarrier_init(answer_empty + i * 8, PAIR * Tile::THREADS / 32);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  __syncwarp();
  if (warp == 1) {
    tcgen05_alloc_cta_group_2(address, ACCUMULATORS * BN);
    tcgen05_relinquish_alloc_permit_cta_group_2();
  }
  __syncwarp();
  cluster_arrive(), cluster_wait();
  const uint32_t accumulators = load_shared_u32(address);  // in tensor memory: lane i has the sums of row i

  // [next-tile]
  // A warp's next tile, from the next answer; -1 where there is none.
  PipelineState<SLOTS> answer_state;
  const auto next_tile = [&] {
    mbarrier_wait_parity(answer_full + answer_state.index * 8, answer_state.phase);
    int first_block = 0;
    const bool canceled = clusterlaunchcontrol_query_cancel(answers + answer_state.index * 16, first_block);
    fence_proxy_async_shared();  // it has been read: another answer may land there
    __syncwarp();
    if (elect_sync()) mbarrier_arrive_cluster(mapa(answer_empty + answer_state.index * 8, 0));
    ++answer_state;
    return canceled ? first_block / PAIR : -1;
  };
  const int first_tile = blockIdx.x / PAIR;
  // [/next-tile]

  if (warp == 0) {
    // [producer]
    // the producer: one thread issues all copies, in the order in which the multiplier takes them
    PipelineState<STAGES> state;  // of the next k tile
    for (int c_tile = first_tile; c_tile >= 0; c_tile = next_tile()) {
      if (elect_sync()) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int row = (tile_row * PAIR + rank) * BM, col = tile_col * BN + rank * (BN / PAIR);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          if (rank == 0) mbarrier_arrive_expect_tx(full + state.index * 8, PAIR * Tile::STAGE_BYTES);
          const uint32_t barrier = mapa(full + state.index * 8, 0);
          cp_async_bulk_tensor_2d_cta_group_2(tile_a, map_a, k_tile * BK, row, barrier);
          cp_async_bulk_tensor_2d_cta_group_2(tile_a + BM * BK_BYTES, map_b, k_tile * BK, col, barrier);
          ++state;
        }
      }
      __syncwarp();
    }
    // [/producer]
  } else if (warp == 1) {
    // [main-loop]
    // 3. main loop: gmem -TMA-> smem[stage] -tcgen05.mma-> acc in tensor memory. One thread of a pair; its mma run in its order
    constexpr uint32_t INSTRUCTION =
        blackwell::instruction_descriptor(Tcgen05<type>::FORMAT, Tcgen05<type>::FORMAT, PAIR * BM, BN);
    constexpr uint16_t BLOCKS = (1 << PAIR) - 1;
    PipelineState<STAGES> state;
    PipelineState<ACCUMULATORS> acc_state;
    for (int c_tile = first_tile; c_tile >= 0; c_tile = next_tile()) {
      if (rank == 0 && elect_sync()) {
        const uint32_t acc = accumulators + acc_state.index * BN;
        mbarrier_wait_parity(acc_empty + acc_state.index * 8, acc_state.phase ^ 1);
        tcgen05_fence_after_thread_sync();
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          const uint64_t a = blackwell::descriptor(tile_a), b = blackwell::descriptor(tile_a + BM * BK_BYTES);
          mbarrier_wait_parity(full + state.index * 8, state.phase);
#pragma unroll
          for (int k_step = 0; k_step < K_STEPS; ++k_step)
            Tcgen05<type>::mma_pair(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16),
                                    INSTRUCTION, k_tile + k_step > 0);  // the first of a tile of C finds no sums
          tcgen05_commit_multicast_cta_group_2(empty + state.index * 8, BLOCKS);  // when this k tile is multiplied
          ++state;
        }
        tcgen05_commit_multicast_cta_group_2(acc_full + acc_state.index * 8, BLOCKS);
        ++acc_state;
      }
      __syncwarp();
    }
    // [/main-loop]
  } else if (warp == Tile::THREADS / 32 - 1) {
    // [scheduler]
    // the scheduler: asks for the next tile as soon as there is a slot for the answer, which lands in both blocks
    PipelineState<SLOTS> state;
    for (int c_tile = first_tile; c_tile >= 0; c_tile = next_tile()) {
      if (elect_sync()) {
        if (rank == 0) mbarrier_wait_parity(answer_empty + state.index * 8, state.phase ^ 1);
        mbarrier_arrive_expect_tx(answer_full + state.index * 8, 16);
        if (rank == 0)
          clusterlaunchcontrol_try_cancel_multicast(answers + state.index * 16, answer_full + state.index * 8);
      }
      __syncwarp();
      ++state;
    }
    // [/scheduler]
  } else {
    const int quarter = warp % 4;  // of the lanes of tensor memory that this warp reaches
    PipelineState<ACCUMULATORS> acc_state;
    for (int c_tile = first_tile; c_tile >= 0; c_tile = next_tile()) {
      const uint32_t acc = accumulators + acc_state.index * BN;
      mbarrier_wait_parity(acc_full + acc_state.index * 8, acc_state.phase);
      tcgen05_fence_after_thread_sync();

      // [epilogue]
      // 4. epilogue: acc -tcgen05.ld-> registers -> smem -TMA-> gmem, for 32 rows of a warp 128 bytes of each at a time
      const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
      const int row = (tile_row * PAIR + rank) * BM + quarter * 32, m = row + lane;
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
          if (elect_sync()) mbarrier_arrive_cluster(mapa(acc_empty + acc_state.index * 8, 0));
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
      ++acc_state;
      // [/epilogue]
    }
    if (elect_sync()) cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  }
  __syncwarp();
  cluster_arrive(), cluster_wait();  // a block that has exited has no mbarriers to arrive at
  if (warp == 1) tcgen05_dealloc_cta_group_2(accumulators, ACCUMULATORS * BN);
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int pairs = ceil_div(p.m, Tile::PAIR * Tile::BM) * ceil_div(p.n, Tile::BN);
    kernel<<<pairs * Tile::PAIR, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN / Tile::PAIR}), tensor_map<TC>(p.c, p.m, p.n, p.ldc, {32}),
        p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "52",
    .name = "cluster_launch_control",
    .idea = "a running pair of blocks cancels the launch of another one and takes its tile",
    .predecessor = "51",
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
                             {Tile::PAIR * Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
