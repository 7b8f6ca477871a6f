// 45_epilogues · bias, activation, gate and residual between the accumulators and C; C in E4M3 with its scales
//
// Idea              An epilogue is a function of row, column and accumulator. Steps of a few lines are composed into one when the kernel
//                   is compiled, and applied in registers: nothing goes to memory and back for a bias or a GELU.
// Changed from 26   the epilogue: a chain of steps, then scales for E4M3. A gate's B lies behind B in shared memory: one wgmma multiplies
//                   both, so a thread holds both results of a place
// Expect            a warpgroup's epilogue hides behind the other's main loop, two special functions per result included: at K = 4096
//                   they are 3100 of 49,000 clocks. So 0.99 times 26; gate and quantise 0.86, for copies of 80 bytes per clock
// Limiter now       as 26; with gate and quantise copies into shared memory
// New instructions  ex2.approx, rcp.approx, cvt to e4m3x2
// Limits            as 21; no TF32; quantised, no residual; epilogues as listed
// Run               ./run_all.sh run 45 4096 4096 4096 --type bf16 --out same --epilogue bias,gelu
// Read              docs/45_epilogues.md
#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>

#include "common/epilogue.h"
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
#include "common/ptx/wgmma_n.h"
#include "common/quantise.h"
#include "common/rung.h"
#include "common/scales.h"

using namespace ladder;

namespace {

// [tile]
/// A gate's tile of B has two parts: columns of B, then the same columns of the gate's B. Scales need 128 columns of C per tile. With a gate,
/// too, these are 256 of both B, for which registers suffice in 64 rows.
template <Epilogue asked, class TC>
struct TileConfig {
  static constexpr int BM = asked.gate && asked.quantise ? 64 : 128;  // rows of C per tile: each warpgroup has its own
  static constexpr int CN = asked.quantise ? 128 : asked.gate ? 96 : 192;  // columns of C per tile
  static constexpr int PARTS = 1 + asked.gate;
  static constexpr int BN = CN * PARTS;   // columns of B per tile, and of the gate's
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES =
      BM + BN <= 256 ? 5 : 4;                // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int CLUSTER = 2;          // blocks, one above the other in C
  static constexpr int GROUP_SIZE_M = 8;     // clusters per group: 66 clusters are about 8 x 8
  static constexpr int CONSUMERS = 2 * 128;  // threads that multiply
  static constexpr int THREADS = 128 + CONSUMERS;  // first comes the producer's warpgroup
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int BOX_BYTES = CN * sizeof(TC) % 128 == 0 ? 128 : 64;  // of each row of C that TMA stores at a time
  static constexpr int C_BYTES = 64 * 128;  // a buffer for results of a warpgroup: a box of 64 rows
  static constexpr int BUFFERS = 2;         // per warpgroup: one is filled, the other is being stored
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + 2 * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
  static_assert(CN * sizeof(TC) % BOX_BYTES == 0);
  static_assert(PARTS == 1 || PARTS == CLUSTER, "each block of a cluster copies a part");
  static_assert(sizeof(TC) > 1 || CN % 128 == 0, "a scale is of 128 columns, all of which a warpgroup holds");
};
// [/tile]

/// What this rung is compiled for.
constexpr Epilogue EPILOGUES[] = {
    {},
    {.bias = true},
    {.bias = true, .activation = Activation::gelu},
    {.activation = Activation::silu},
    {.activation = Activation::silu, .gate = true},
    {.quantise = true},
    {.activation = Activation::silu, .gate = true, .quantise = true},
};

/// How C lies in memory, where results are of type T.
template <Epilogue asked, class T>
using Stored = std::conditional_t<asked.quantise, __nv_fp8_e4m3, T>;

/// Two neighbouring elements of C into shared memory; E4M3's are divided by their scale.
template <class TC>
__device__ __forceinline__ void store2_shared(uint32_t smem, const float (&x)[2], float inverse) {
  if constexpr (sizeof(TC) == 4) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem), "f"(x[0]), "f"(x[1]) : "memory");
  } else if constexpr (sizeof(TC) == 2) {
    union {
      TC element[2];
      uint32_t bits;
    } d = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem), "r"(d.bits) : "memory");
  } else {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(smem), "h"(quantised2(x[0], x[1], inverse)) : "memory");
  }
}

template <class Tile, Type type, class TC, class Steps>
__global__ void __cluster_dims__(Tile::CLUSTER, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_gate, const __grid_constant__ CUtensorMap map_c, Steps epilogue,
         TC* __restrict__ C, int ldc, float* __restrict__ scale_c) {
  constexpr int BM = Tile::BM, BN = Tile::BN, CN = Tile::CN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, CLUSTER = Tile::CLUSTER;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  constexpr bool GATED = Tile::PARTS == 2;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, CN), c_tiles = tiles_m * tiles_n;  // of clusters
  const int cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, rank = cluster_ctarank();
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const int k_tiles = ceil_div(K, BK);
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + 2 * Tile::BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, CLUSTER * 4);  // warps of the warpgroup whose tile it is
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_gate), prefetch_tensormap(map_c);
  }
  cluster_arrive(), cluster_wait();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < 4) {  // the producer: one thread issues all copies, in the order in which the consumers multiply
    setmaxnreg_dec<24>();
    if (warp == 0 && elect_sync()) {
      for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int row = (tile_row * CLUSTER + rank) * BM, half = rank * (BN / CLUSTER);
        const CUtensorMap& map_half = GATED && rank == 1 ? map_gate : map_b;
        const int col = tile_col * CN + (GATED ? 0 : half);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
          mbarrier_wait_parity(empty + state.index * 8, state.phase ^ 1);
          mbarrier_arrive_expect_tx(full + state.index * 8, Tile::STAGE_BYTES);
          cp_async_bulk_tensor_2d(tile_a, map_a, k_tile * BK, row, full + state.index * 8);
          cp_async_bulk_tensor_2d_multicast(tile_a + (BM + half) * BK_BYTES, map_half, k_tile * BK, col,
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
  setmaxnreg_inc<240>();
  bool reads_c = false;
  if constexpr (sizeof(TC) > 1) reads_c = epilogue.beta != 0.0F;
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int COLUMNS = 128 / sizeof(TC), LINES = ceil_div(CN, COLUMNS);  // of a line; lines of a row of the tile
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < BM * LINES; i += 128) {
      const int m = (tile_row * CLUSTER + rank) * BM + i / LINES, n = tile_col * CN + i % LINES * COLUMNS;
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  int multiplied = -1;  // stage of the previous k tile, which this warp has not released yet
  const auto consumer_release = [&] {
    if (multiplied >= 0 && lane < CLUSTER) mbarrier_arrive_cluster(mapa(empty + multiplied * 8, lane));
  };
  const auto multiply_k_tile = [&](float(&acc)[BM / 64][BN / 8][4]) {
    const uint32_t tile_a = shared_address(smem) + state.index * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a), b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
      for (int i = 0; i < BM / 64; ++i)
        wgmma<type, BN>(acc[i], a + (i * 64 * BK_BYTES + k_step * Tile::MMA_K_BYTES) / 16,
                        b + k_step * (Tile::MMA_K_BYTES / 16), 1);
    wgmma_commit_group();
    wgmma_wait_group<1>();  // the previous k tile is multiplied
    consumer_release();
    multiplied = state.index;
    ++state;
  };
  // [/main-loop]

  // [turns]
  int part_number = 0;                         // of the buffers filled
  if (warpgroup == 1) state.advance(k_tiles);  // the first tile is the other warpgroup's
  for (int c_tile = cluster + warpgroup * clusters; c_tile < c_tiles; c_tile += 2 * clusters) {
    float acc[BM / 64][BN / 8][4] = {};  // [64 rows][8 columns][results of this lane: mma_c]
    if (c_tile != cluster) bar_sync(3 + warpgroup, Tile::CONSUMERS);  // the other warpgroup has issued all of its wgmma
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (reads_c && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_c(c_tile);
      multiply_k_tile(acc);
    }
    if (c_tile + clusters < c_tiles) bar_arrive(4 - warpgroup, Tile::CONSUMERS);  // the other's turn
    wgmma_wait_group<0>();
    consumer_release();
    multiplied = -1;
    state.advance(k_tiles);  // past the other warpgroup's tile
    // [/turns]

    // [epilogue]
    // 4. epilogue: acc -steps-> results -> smem -TMA-> gmem, a box at a time
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int COLUMNS = Tile::BOX_BYTES / sizeof(TC);  // per buffer
#pragma unroll
    for (int i = 0; i < BM / 64; ++i)
#pragma unroll
      for (int part = 0; part < CN / COLUMNS; ++part) {
        const int row = (tile_row * CLUSTER + rank) * BM + i * 64, col = tile_col * CN + part * COLUMNS;
        // Neighbouring results of this lane, two by two: where in C, where in a buffer, and what.
        const auto each_pair = [&](auto f) {
#pragma unroll
          for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const auto [c_row, c_col] = mma_c(lane, half * 2);  // of 16 rows and 8 columns
              const int r = warp % 4 * 16 + c_row, j_col = j * 8 + c_col, byte = j_col * sizeof(TC);
              const int acc_j = part * COLUMNS / 8 + j, offset = swizzle(r, byte / 16, Tile::BOX_BYTES) + byte % 16;
              float d[2] = {acc[i][acc_j][half * 2], acc[i][acc_j][half * 2 + 1]};
              f(half, row + r, col + j_col, offset, d, &acc[i][acc_j + (GATED ? CN / 8 : 0)][half * 2]);
              acc[i][acc_j][half * 2] = d[0], acc[i][acc_j][half * 2 + 1] = d[1];
            }
        };
        each_pair([&](int, int m, int n, int, float(&d)[2], const float* gate) {
          for (int e = 0; e < 2; ++e) d[e] = epilogue(d[e], {m, n + e, gate[e]});
        });
        float inverse[2] = {1.0F, 1.0F};  // of the scales of this lane's two rows
        if constexpr (sizeof(TC) == 1) {  // a row's 128 columns are in the four lanes of a quad
          float largest[2] = {};
          each_pair([&](int half, int, int, int, const float(&d)[2], const float*) {
            largest[half] = fmaxf(largest[half], fmaxf(fabsf(d[0]), fabsf(d[1])));
          });
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            for (int lanes = 1; lanes < 4; lanes *= 2)
              largest[half] = fmaxf(largest[half], __shfl_xor_sync(~0U, largest[half], lanes));
            const float scale = scale_of(largest[half]);
            const int m = row + warp % 4 * 16 + mma_c(lane, half * 2).row;
            if (lane % 4 == 0 && m < M && col < N) scale_c[scale_index_a(Scales::blocks, M, N, m, col)] = scale;
            inverse[half] = 1.0F / scale;
          }
        }
        // TMA would write all of the 16 bytes in which N ends.
        if (N % (16 / sizeof(TC)) != 0 && col + COLUMNS > N) {
          each_pair([&](int half, int m, int n, int, const float(&d)[2], const float*) {
            for (int e = 0; e < 2; ++e)
              if (m < M && n + e < N) C[static_cast<size_t>(m) * ldc + n + e] = from_float<TC>(d[e] * inverse[half]);
          });
          if (warp % 4 == 0 && elect_sync())
            cp_async_bulk_commit_group();  // an empty one: the waits below count groups
          continue;
        }
        const uint32_t buffer = buffers + (warpgroup * Tile::BUFFERS + part_number++ % Tile::BUFFERS) * Tile::C_BYTES;
        if (warp % 4 == 0 && elect_sync())
          cp_async_bulk_wait_group_read<Tile::BUFFERS - 1>();  // the store from this buffer has read it
        bar_sync(1 + warpgroup, 128);
        each_pair([&](int half, int, int, int offset, const float(&d)[2], const float*) {
          store2_shared<TC>(buffer + offset, d, inverse[half]);
        });
        fence_proxy_async_shared();
        bar_sync(1 + warpgroup, 128);
        if (warp % 4 == 0 && elect_sync()) {
          cp_async_bulk_tensor_2d_store(map_c, col, row, buffer);
          cp_async_bulk_commit_group();
        }
      }
    // [/epilogue]
  }
  if (warp % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // shared memory must outlive the stores that read it
  __syncwarp();
  cluster_arrive(), cluster_wait();  // a block that has exited has no mbarriers to arrive at
}

/// f<asked, type, T>() for the epilogue, the operands' type and the result's type of a problem.
template <int INDEX = 0, class F>
auto for_epilogue(const Problem& p, F&& f) {
  if constexpr (INDEX + 1 < std::size(EPILOGUES))
    if (p.epilogue != EPILOGUES[INDEX]) return for_epilogue<INDEX + 1>(p, f);
  return visit(Types<Type::bf16, Type::f16>{}, p.type, p.out,
               [&]<Type type, class T>() { return f.template operator()<EPILOGUES[INDEX], type, T>(); });
}

template <Epilogue asked, Type type, class T>
constexpr auto kernel_for() {
  using TC = Stored<asked, T>;
  return gemm<TileConfig<asked, TC>, type, TC, decltype(chain_of<asked, T>(Problem{}))>;
}

void launch(const Problem& p) {
  for_epilogue(p, [&]<Epilogue asked, Type type, class T>() {
    using Element = typename Operand<type>::Element;
    using TC = Stored<asked, T>;
    using Tile = TileConfig<asked, TC>;
    const auto kernel = kernel_for<asked, type, T>();
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int clusters = ceil_div(p.m, Tile::CLUSTER * Tile::BM) * ceil_div(p.n, Tile::CN);
    const int blocks = min(clusters, device_limits().sms / Tile::CLUSTER) * Tile::CLUSTER;
    const auto map_b = [&](const void* b) {
      return tensor_map<Element>(b, p.n, p.k, p.ldb, {Tile::BN / Tile::CLUSTER});
    };
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, tensor_map<Element>(p.a, p.m, p.k, p.lda, {Tile::BM}), map_b(p.b),
        map_b(asked.gate ? p.b_gate : p.b), tensor_map<TC>(p.c, p.m, p.n, p.ldc, {64, Tile::BOX_BYTES}),
        chain_of<asked, T>(p), p.C<TC>(), p.ldc, p.scale_c);
    cuda_check(cudaGetLastError());
  });
}

std::string refuses(const Problem& p) {
  if (std::find(std::begin(EPILOGUES), std::end(EPILOGUES), p.epilogue) == std::end(EPILOGUES))
    return "is not compiled for this epilogue: see EPILOGUES in its source";
  return refuses_mma_sync(p);
}

const Registration registration{{
    .number = "45",
    .name = "epilogues",
    .idea = "bias, activation, gate and E4M3 with its scales between the accumulators and C",
    .predecessor = "26",
    .types = {Type::bf16, Type::f16},
    .arch = "sm_90a",
    .instruction = MathInstruction::wgmma,
    .layout_b = MatrixLayout::col_major,
    .epilogues = true,
    .row_align_bytes = 16,
    .refuses = refuses,
    .resources =
        [](const Problem& p) {
          return for_epilogue(p, [&]<Epilogue asked, Type type, class T>() {
            using Tile = TileConfig<asked, Stored<asked, T>>;
            return Resources{(const void*)kernel_for<asked, type, T>(),
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::CN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
