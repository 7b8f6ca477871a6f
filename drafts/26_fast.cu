// 26_fast · a draft: one text for many tiles, of which the shape of the product will choose
//
// Idea              Which tile is best depends on the shape: one that fills the last wave, one whose epilogue is hidden under another
//                   tile's main loop, or several blocks per tile where tiles are few.
// Changed from 25   the tile is a parameter: its width (N of wgmma is any multiple of 8), two warpgroups that share it or take turns
//                   with tiles of their own; every other tile backwards along k; slices of K in a cluster, added through distributed
//                   shared memory; stmatrix
// State             right on the simulator in every configuration of drafts/configurations_26.txt; never timed. Still to come: the choice
//                   by shape (a cost model fitted to a sweep), C by the copy engine where beta is not 0, halved tiles in the last wave
// Run               ./run_all.sh run 26 512 512 512 --type bf16 --with drafts
#include <cuda.h>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/stmatrix.h"
#include "common/ptx/wgmma.h"
#include "common/ptx/wgmma_n.h"
#include "common/rung.h"

using namespace ladder;

namespace {

/// A configuration: a warpgroup multiplies WM x BN results. Two share a block's tile, one above the other, or they take turns with
/// tiles of their own.
///   CLUSTER  blocks, one above the other in C, that share tiles of B
///   SLICES   blocks of a cluster that share a tile of C, each with a slice of K: for products with few tiles
template <int WM_, int BN_, bool TAKE_TURNS_, int CLUSTER_, int STAGES_, int BUFFERS_, int SLICES_ = 1>
struct Tile {
  static constexpr int WM = WM_;                       // rows of C per warpgroup
  static constexpr int BN = BN_;                       // columns of C, which each warpgroup has all of
  static constexpr bool TAKE_TURNS = TAKE_TURNS_;      // ping-pong: one multiplies while the other stores
  static constexpr int BM = TAKE_TURNS ? WM : 2 * WM;  // rows of C per tile
  static constexpr int CLUSTER = CLUSTER_, SLICES = SLICES_;
  static constexpr int STAGES = STAGES_;    // k tiles in shared memory
  static constexpr int BUFFERS = BUFFERS_;  // of a warpgroup for results: one is filled, the others are being stored
  static constexpr int BK_BYTES = 128;      // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;    // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int GROUP_SIZE_M = ceil_div(2048, CLUSTER* BM);  // clusters per group of rows
  static constexpr int CONSUMERS = 256, THREADS = 128 + CONSUMERS;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int C_BYTES = 64 * 128;  // a buffer: 128 bytes of each of 64 rows
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + 2 * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "the copy engine swizzles by bits of the address: 8 rows of 128 bytes");
  static_assert(SMEM_BYTES <= 232448 - 1024);
  static_assert(SLICES == 1 ||
                    (CLUSTER == 1 && !TAKE_TURNS && STAGES * STAGE_BYTES >= BM * BN * 4 && BN / 8 % SLICES == 0),
                "slices: one tile per block, whose sums take the place of its k tiles");
};

/// A tile in shared memory, for wgmma: rows of 128 bytes along k, swizzled, at a multiple of 1024.
///   bits  0-13  address / 16
///        16-29  bytes to the next tile along k / 16; of no meaning here, where a row is as long as the swizzle
///        32-45  bytes from 8 rows to the next 8 / 16
///        62-63  swizzle: 1 is that of 128 bytes
__device__ __forceinline__ uint64_t descriptor(uint32_t tile) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

/// Bytes of each row of C per box of the copy engine: the most that it can swizzle of those that divide a tile's row.
constexpr LADDER_HOST_DEVICE int box_bytes(int row_bytes) {
  return row_bytes % 128 == 0 ? 128 : row_bytes % 64 == 0 ? 64 : 32;
}

/// The copy engine's swizzle in rows of `pitch` bytes, 128, 64 or 32: byte at which chunk `chunk` of row `row` lies.
constexpr LADDER_HOST_DEVICE int swizzle(int row, int chunk, int pitch) {
  return row * pitch + (chunk ^ row * pitch / 128 % (pitch / 16)) * 16;
}

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

/// Four sums into this block's shared memory, and from that of any block of the cluster.
__device__ __forceinline__ void store4_shared(uint32_t smem, const float (&x)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}
__device__ __forceinline__ void load4_cluster(float (&x)[4], uint32_t address) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(address)
               : "memory");
}

template <class Tile, Type type, class TC>
__global__ void __cluster_dims__(Tile::CLUSTER* Tile::SLICES, 1, 1) __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, float beta,
         TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, CLUSTER = Tile::CLUSTER, BUFFERS = Tile::BUFFERS;
  constexpr int SLICES = Tile::SLICES;
  constexpr bool TAKE_TURNS = Tile::TAKE_TURNS;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;  // of clusters
  constexpr int BLOCKS = CLUSTER * SLICES;  // of a cluster
  const int cluster = blockIdx.x / BLOCKS, clusters = gridDim.x / BLOCKS;
  const int rank = CLUSTER == 1 ? 0 : cluster_ctarank(), slice = SLICES == 1 ? 0 : cluster_ctarank();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const auto [first_k_tile, k_tiles] = slice_of(slice, SLICES, ceil_div(K, BK));
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + 2 * BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, CLUSTER * (TAKE_TURNS ? 4 : 8));
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b), prefetch_tensormap(map_c);
  }
  if constexpr (BLOCKS > 1)
    cluster_arrive(), cluster_wait();
  else
    __syncthreads();

  int stage = 0;        // of the next k tile
  uint32_t parity = 0;  // of its phase
  const auto next_stage = [&] {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  };

  // [producer]
  if (warp < 4) {  // the producer: one thread copies all tiles, in the order in which they will be multiplied
    setmaxnreg_dec<40>();
    if (threadIdx.x == 0) {
      bool backwards = false;  // along k, every other tile: it begins with what the L2 cache still has
      for (int c_tile = cluster; c_tile < c_tiles; c_tile += clusters) {
        const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int row = (tile_row * CLUSTER + rank) * BM, part = rank * (BN / CLUSTER);
        for (int i = 0; i < k_tiles; ++i) {
          const int k = (first_k_tile + (backwards ? k_tiles - 1 - i : i)) * BK;
          const uint32_t tile_a = shared_address(smem) + stage * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
          mbarrier_wait_parity(empty + stage * 8, parity ^ 1);  // of the phase before; at first there is none
          mbarrier_arrive_expect_tx(full + stage * 8, Tile::STAGE_BYTES);
          cp_async_bulk_tensor_2d(tile_a, map_a, k, row, full + stage * 8);
          if constexpr (CLUSTER > 1)
            cp_async_bulk_tensor_2d_multicast(tile_b + part * BK_BYTES, map_b, k, tile_col * BN + part,
                                              full + stage * 8, (1 << CLUSTER) - 1);
          else
            cp_async_bulk_tensor_2d(tile_b, map_b, k, tile_col * BN, full + stage * 8);
          next_stage();
        }
        backwards = !backwards;
      }
    }
    __syncwarp();
    if constexpr (SLICES > 1) cluster_arrive(), cluster_wait();  // the sums are there
    if constexpr (BLOCKS > 1) cluster_arrive(), cluster_wait();
    return;
  }
  // [/producer]
  setmaxnreg_inc<232>();
  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[stage] -wgmma-> acc
  float acc[WM / 64][BN / 8][4];  // [64 rows][8 columns][results of this lane: mma_c]
  int multiplied = -1;            // the stage of the k tile before, which this warp has not given back yet
  const auto give_back = [&] {
    if constexpr (CLUSTER > 1) {
      if (multiplied >= 0 && lane < CLUSTER) mbarrier_arrive_cluster(mapa(empty + multiplied * 8, lane));
    } else {
      if (multiplied >= 0 && lane == 0) mbarrier_arrive(empty + multiplied * 8);
    }
  };
  const auto multiply_k_tile = [&](int accumulate) {
    const uint32_t tile_a = shared_address(smem) + stage * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + (TAKE_TURNS ? 0 : warpgroup * WM * BK_BYTES)),
                   b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + stage * 8, parity);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
        wgmma<type, BN>(acc[i], a + (i * 64 * BK_BYTES + k_step * Tile::MMA_K_BYTES) / 16,
                        b + k_step * Tile::MMA_K_BYTES / 16, k_step > 0 || accumulate);
    wgmma_commit_group();
    wgmma_wait_group<1>();  // the k tile before is multiplied
    give_back();
    multiplied = stage;
    next_stage();
  };
  const auto skip_tile = [&] {  // it is the other warpgroup's
    stage += k_tiles;
    parity ^= stage / STAGES & 1;
    stage %= STAGES;
  };
  // [/main-loop]

  int part_number = 0;
  for (int i = 0, c_tile = cluster; c_tile < c_tiles; ++i, c_tile += clusters) {
    if (TAKE_TURNS && i % 2 != warpgroup) {
      skip_tile();
      continue;
    }
    if (TAKE_TURNS && i > 0) bar_sync(3 + warpgroup, 256);  // until the other has issued its tile
    multiply_k_tile(0);
#pragma unroll 1
    for (int k_tile = 1; k_tile < k_tiles; ++k_tile) multiply_k_tile(1);
    if (TAKE_TURNS && c_tile + clusters < c_tiles) bar_arrive(4 - warpgroup, 256);
    wgmma_wait_group<0>();
    give_back();
    multiplied = -1;

    // [slices]
    constexpr int J = BN / 8 / SLICES;  // columns / 8 that a block of the cluster adds and stores
    if constexpr (SLICES > 1) {
      const int thread = threadIdx.x - 128;
      const uint32_t sums = shared_address(smem) + thread * 16;  // of this thread, 4 at a time
      bar_sync(3, 256);                                          // both warpgroups have multiplied their last k tile
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
#pragma unroll
        for (int j = 0; j < BN / 8; ++j) store4_shared(sums + (i * (BN / 8) + j) * 256 * 16, acc[i][j]);
      cluster_arrive(), cluster_wait();
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
#pragma unroll
        for (int j = 0; j < J; ++j) {
          const uint32_t mine = sums + (i * (BN / 8) + slice * J + j) * 256 * 16;
          float(&sum)[4] = acc[i][j];
          load4_cluster(sum, mapa(mine, 0));
#pragma unroll
          for (int other = 1; other < SLICES; ++other) {
            float x[4];
            load4_cluster(x, mapa(mine, other));
            for (int e = 0; e < 4; ++e) sum[e] += x[e];
          }
        }
      const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
#pragma unroll
        for (int j = 0; j < J; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto [c_row, c_col] = mma_c(lane, e);
            const int m = tile_row * BM + warpgroup * WM + i * 64 + warp % 4 * 16 + c_row;
            const int n = tile_col * BN + (slice * J + j) * 8 + c_col;
            if (m >= M || n >= N) continue;
            TC& c = C[static_cast<size_t>(m) * ldc + n];
            float d = alpha * acc[i][j][e];
            if (beta != 0.0F) d += beta * to_float(c);
            c = from_float<TC>(d);
          }
      continue;  // there is no other tile
    }
    // [/slices]

    // [epilogue]
    // 4. epilogue: acc -> smem -TMA-> gmem, 128 bytes of each of 64 rows at a time
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int tile_m = (tile_row * CLUSTER + rank) * BM + (TAKE_TURNS ? 0 : warpgroup * WM);
    constexpr int PITCH = box_bytes(BN * sizeof(TC)), COLUMNS = PITCH / sizeof(TC);  // of a box of C
#pragma unroll
    for (int part = 0; part < WM / 64 * (BN / COLUMNS); ++part) {
      const int row = tile_m + part / (BN / COLUMNS) * 64, part_col = part % (BN / COLUMNS) * COLUMNS;
      const int col = tile_col * BN + part_col;
      auto& part_acc = acc[part / (BN / COLUMNS)];
      if (beta != 0.0F) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto [c_row, c_col] = mma_c(lane, e);
            const int m = row + warp % 4 * 16 + c_row, n = col + j * 8 + c_col;
            float& x = part_acc[part_col / 8 + j][e];
            x *= alpha;
            if (m < M && n < N) x += beta * to_float(C[static_cast<size_t>(m) * ldc + n]);
          }
      } else {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) part_acc[part_col / 8 + j][e] *= alpha;
      }
      // The copy engine would write all of the 16 bytes in which N ends.
      if (N % (16 / sizeof(TC)) != 0 && col + COLUMNS > N) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto [c_row, c_col] = mma_c(lane, e);
            const int m = row + warp % 4 * 16 + c_row, n = col + j * 8 + c_col;
            if (m < M && n < N) C[static_cast<size_t>(m) * ldc + n] = from_float<TC>(part_acc[part_col / 8 + j][e]);
          }
        if (threadIdx.x % 128 == 0) cp_async_bulk_commit_group();  // an empty one: the waits below count groups
        ++part_number;
        continue;
      }
      const uint32_t buffer = buffers + (warpgroup * BUFFERS + part_number % BUFFERS) * Tile::C_BYTES;
      ++part_number;
      if (threadIdx.x % 128 == 0) cp_async_bulk_wait_group_read<BUFFERS - 1>();  // what was in it is read
      bar_sync(1 + warpgroup, 128);
      if constexpr (sizeof(TC) == 2) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j += 2) {
          uint32_t r[4];
#pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            const float* const x = &part_acc[part_col / 8 + j + pair / 2][pair % 2 * 2];
            union {
              TC element[2];
              uint32_t bits;
            } d = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
            r[pair] = d.bits;
          }
          stmatrix_x4(buffer + swizzle(warp % 4 * 16 + lane % 16, j + lane / 16, PITCH), r);
        }
      } else {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const auto [c_row, c_col] = mma_c(lane, half * 2);
            const int byte = (j * 8 + c_col) * 4;
            const float(&d)[2] = reinterpret_cast<const float(&)[2]>(part_acc[part_col / 8 + j][half * 2]);
            store2_shared<TC>(buffer + swizzle(warp % 4 * 16 + c_row, byte / 16, PITCH) + byte % 16, d);
          }
      }
      fence_proxy_async_shared();
      bar_sync(1 + warpgroup, 128);
      if (threadIdx.x % 128 == 0) {
        cp_async_bulk_tensor_2d_store(map_c, col, row, buffer);
        cp_async_bulk_commit_group();
      }
    }
    // [/epilogue]
  }
  if (threadIdx.x % 128 == 0) cp_async_bulk_wait_group_read<0>();  // shared memory must be there until it is read
  __syncwarp();
  if constexpr (BLOCKS > 1) cluster_arrive(), cluster_wait();  // a block that has ended has no mbarriers to arrive at
}

/// Describes `rows` rows of `columns` elements T, `ld` apart, to the copy engine, in boxes of `box_rows` rows of 128 bytes.
template <class T>
CUtensorMap tensor_map(const void* matrix, int rows, int columns, int ld, int box_rows, int box_bytes = 128) {
  static const auto encode = [] {  // of the driver, which programs of the runtime do not link
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) cuda_check(cudaErrorSymbolNotFound);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  constexpr cuuint64_t BYTES = sizeof(T);
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {ld * BYTES};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_bytes / BYTES), static_cast<cuuint32_t>(box_rows)},
                   every[] = {1, 1};
  CUtensorMap map;
  const CUresult result = encode(&map, BYTES == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
                                 const_cast<void*>(matrix), size, row_bytes, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 box_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                 : box_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                   : CU_TENSOR_MAP_SWIZZLE_32B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) cuda_check(cudaErrorInvalidValue);
  return map;
}

using Chosen = Tile<128, 192, false, 2, 3, 3>;  // sweep_26.py replaces the numbers

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<Chosen, type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Chosen::SMEM_BYTES));
    const int clusters = ceil_div(p.m, Chosen::CLUSTER * Chosen::BM) * ceil_div(p.n, Chosen::BN);
    const int blocks = Chosen::SLICES > 1 ? clusters * Chosen::SLICES
                                          : min(clusters, device_limits().sms / Chosen::CLUSTER) * Chosen::CLUSTER;
    kernel<<<blocks, Chosen::THREADS, Chosen::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, Chosen::BM),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, Chosen::BN / Chosen::CLUSTER),
        tensor_map<TC>(p.c, p.m, p.n, p.ldc, 64, box_bytes(Chosen::BN * sizeof(TC))), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "26",
    .name = "fast",
    .idea = "configurations by shape",
    .predecessor = "25",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_90a",
    .unit = Unit::wgmma,
    .layout_b = LayoutB::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_types(p, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<Chosen, type, TC>,
                             Chosen::THREADS,
                             Chosen::SMEM_BYTES,
                             {Chosen::BM, Chosen::BN, 128 / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
