// 25_persistent · TMA stores C while the next tile is multiplied
//
// Idea              In 24 a lane stores 8 bytes at a time, and the tensor cores idle until the last store is queued. Here the results go
//                   through shared memory, 128 bytes per row, and TMA stores them from there: whole lines, while the warps
//                   already multiply the next tile.
// Changed from 24   the epilogue: two buffers per warpgroup, filled alternately; a tensor map for C
// Expect            24 spends 7300 of 77,500 clocks per tile of C on its epilogue (measured); 25 spends 2700 on filling
//                   buffers, if TMA reads them as fast as L2 takes the bytes: 1.06 times 24
// Limiter now       wgmma; the epilogue, during which the tensor cores still idle; the last wave
// New instructions  cp.async.bulk.tensor to global memory, its groups; fence.proxy.async; bar.sync of a warpgroup
// Limits            as 21
// Run               ./run_all.sh run 25 4096 4096 4096 --type bf16
// Read              docs/25_persistent.md
#include "common/hopper/descriptor.h"
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
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
  static constexpr int STAGES = TUNABLE(STAGES, 4);              // k tiles: one multiplied, the others copied
  static constexpr int CLUSTER = 2;                              // blocks, one above the other in C
  static constexpr int GROUP_SIZE_M = TUNABLE(GROUP_SIZE_M, 8);  // clusters per group: 66 clusters are about 8 x 8
  static constexpr int CONSUMERS = BM / WM * 128;                // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;                // first comes the producer's warpgroup
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = WM * 128;             // a buffer for results of a warpgroup: 128 bytes of each row
  static constexpr int BUFFERS = TUNABLE(BUFFERS, 2);  // per warpgroup: one is filled, the other is being stored
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + BM / WM * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
};

/// Two neighbouring elements of C into shared memory.
template <class TC>
__device__ __forceinline__ void store2_shared(uint32_t smem, const float (&x)[2]) {
  if constexpr (sizeof(TC) == 4) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem), "f"(x[0]), "f"(x[1]) : "memory");
  } else {
    union {
      TC element[2];
      uint32_t bits;
    } d = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem), "r"(d.bits) : "memory");
  }
}

template <Type type, class TC>
__global__ void __cluster_dims__(Tile::CLUSTER, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, CLUSTER = Tile::CLUSTER;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;  // of clusters
  const int cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, rank = cluster_ctarank();
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + BM / WM * Tile::BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, CLUSTER * Tile::CONSUMERS / 32);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  cluster_arrive(), cluster_wait();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<40>();
    if (warp == 0 && elect_sync()) {
      for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int row = (tile_row * CLUSTER + rank) * BM, half = rank * (BN / CLUSTER);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES);
          cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, row, full + state.index * 8);
          cp_async_bulk_tensor_2d_multicast(tile_a + (BM + half) * BK_BYTES, map_b, k_tile * BK, tile_col * BN + half,
                                            full + state.index * 8, (1 << CLUSTER) - 1);
          ++state;
        }
      }
    }
    __syncwarp();
    cluster_arrive(), cluster_wait();
    return;
  }
  // [/producer]
  setmaxnreg_inc<232>();
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int LINES = BN * sizeof(TC) / 128;  // of a row of the tile
#pragma unroll 1
    for (int i = threadIdx.x - 128; i < BM * LINES; i += Tile::CONSUMERS) {
      const int m = (tile_row * CLUSTER + rank) * BM + i / LINES, n = tile_col * BN + i % LINES * (BN / LINES);
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if (multiplied >= 0 && lane < CLUSTER) mbarrier_arrive_cluster(mapa(empty + multiplied * 8, lane));
  };
  const auto multiply_k_tile = [&](float(&acc)[BN / 8][4]) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + warpgroup * WM * BK_BYTES), b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
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

  for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters) {
    float acc[BN / 8][4] = {};  // [8 columns][results of this lane: mma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_c(c_tile);
      multiply_k_tile(acc);
    }
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;

    // 4. epilogue: acc -> smem -TMA-> gmem, 128 bytes of each row at a time
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int row = (tile_row * CLUSTER + rank) * BM + warpgroup * WM;  // the first of this warpgroup
    constexpr int COLUMNS = 128 / sizeof(TC);                           // per buffer
#pragma unroll
    for (int part = 0; part < BN / COLUMNS; ++part) {
      const int col = tile_col * BN + part * COLUMNS;
      // Neighbouring results of this lane, two by two: where in C, where in a buffer, and what.
      const auto each_pair = [&](auto store) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const auto [c_row, c_col] = mma_c(lane, half * 2);  // of 16 rows and 8 columns
            const int r = warp % 4 * 16 + c_row, m = row + r, j_col = j * 8 + c_col, n = col + j_col;
            const int byte = j_col * sizeof(TC);
            const float* const x = &acc[part * COLUMNS / 8 + j][half * 2];
            float d[2] = {alpha * x[0], alpha * x[1]};
            if (beta != 0.0F && m < M) {  // beta = 0 must not read C: it may hold NaN
              const TC* const gC = C + static_cast<size_t>(m) * ldc;
              if (n < N) d[0] += beta * to_float(gC[n]);
              if (n + 1 < N) d[1] += beta * to_float(gC[n + 1]);
            }
            store(m, n, swizzle_128b(r, byte / 16) + byte % 16, d);
          }
      };
      // TMA would write all of the 16 bytes in which N ends.
      if (N % (16 / sizeof(TC)) != 0 && col + COLUMNS > N) {
        each_pair([&](int m, int n, int, const float(&d)[2]) {
          for (int i = 0; i < 2; ++i)
            if (m < M && n + i < N) C[static_cast<size_t>(m) * ldc + n + i] = from_float<TC>(d[i]);
        });
        if (warp % 4 == 0 && elect_sync()) cp_async_bulk_commit_group();  // an empty one: the waits below count groups
        continue;
      }
      // [part]
      const uint32_t buffer = buffers + (warpgroup * Tile::BUFFERS + part % Tile::BUFFERS) * Tile::C_BYTES;
      if (warp % 4 == 0 && elect_sync())
        cp_async_bulk_wait_group_read<Tile::BUFFERS - 1>();  // the store from this buffer has read it
      bar_sync(1 + warpgroup, 128);
      each_pair([&](int, int, int offset, const float(&d)[2]) { store2_shared<TC>(buffer + offset, d); });
      fence_proxy_async_shared();
      bar_sync(1 + warpgroup, 128);
      if (warp % 4 == 0 && elect_sync()) {
        cp_async_bulk_tensor_2d_store(map_c, col, row, buffer);
        cp_async_bulk_commit_group();
      }
      // [/part]
    }
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
  cluster_arrive(), cluster_wait();  // a block that has exited has no mbarriers to arrive at
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int clusters = ceil_div(p.m, Tile::CLUSTER * Tile::BM) * ceil_div(p.n, Tile::BN);
    const int blocks = min(clusters, device_limits().sms / Tile::CLUSTER) * Tile::CLUSTER;
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, {Tile::BM}),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, {Tile::BN / Tile::CLUSTER}),
        tensor_map<TC>(p.c, p.m, p.n, p.ldc, {Tile::WM}), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "25",
    .name = "persistent",
    .idea = "C through shared memory, stored by TMA during the next tile's main loop",
    .predecessor = "24",
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
    .constants = {{"Tile",
                   {{"BM", Tile::BM},
                    {"BN", Tile::BN},
                    {"WM", Tile::WM},
                    {"STAGES", Tile::STAGES},
                    {"CLUSTER", Tile::CLUSTER},
                    {"GROUP_SIZE_M", Tile::GROUP_SIZE_M},
                    {"BUFFERS", Tile::BUFFERS}}}},
}};

}  // namespace
