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

#include <type_traits>

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
///   CLUSTER     blocks, one above the other in C, that share tiles of B
///   SLICES      blocks of a cluster that share a tile of C, each with a slice of K: for products with few tiles
///   TRANSPOSED  C^T = B^T A^T is computed: BN, which is any multiple of 16, is a number of rows of C
///   HALVES      where the last wave's tiles fill at most half of the clusters, two clusters share each
template <int WM_, int BN_, bool TAKE_TURNS_, int CLUSTER_, int STAGES_, int BUFFERS_, int SLICES_ = 1,
          bool TRANSPOSED_ = false, bool HALVES_ = false>
struct Tile {
  static constexpr int WM = WM_;                       // rows of C per warpgroup
  static constexpr int BN = BN_;                       // columns of C, which each warpgroup has all of
  static constexpr bool TAKE_TURNS = TAKE_TURNS_;      // ping-pong: one multiplies while the other stores
  static constexpr int BM = TAKE_TURNS ? WM : 2 * WM;  // rows of C per tile
  static constexpr int CLUSTER = CLUSTER_, SLICES = SLICES_;
  static constexpr bool TRANSPOSED = TRANSPOSED_, HALVES = HALVES_;
  static constexpr int STAGES = STAGES_;    // k tiles in shared memory
  static constexpr int BUFFERS = BUFFERS_;  // of a warpgroup for results: one is filled, the others are being stored
  static constexpr int BK_BYTES = 128;      // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;    // bytes along k per wgmma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int GROUP_SIZE_M = ceil_div(2048, CLUSTER* BM);  // clusters per group of rows
  static constexpr int CONSUMERS = 256, THREADS = 128 + CONSUMERS;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int BOX_M = HALVES ? BM / 2 : BM;  // rows of A per copy
  static constexpr int C_BYTES = 64 * 128;            // a buffer: 128 bytes of each of 64 rows
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + 2 * BUFFERS * C_BYTES + STAGES * 16;
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "the copy engine swizzles by bits of the address: 8 rows of 128 bytes");
  static_assert(SMEM_BYTES <= 232448 - 1024);
  static_assert(SLICES == 1 ||
                    (CLUSTER == 1 && !TAKE_TURNS && STAGES * STAGE_BYTES >= BM * BN * 4 && BN / 8 % SLICES == 0),
                "slices: one tile per block, whose sums take the place of its k tiles");
  static_assert(!HALVES || (WM == 128 && !TAKE_TURNS), "each warpgroup has 64 rows of half a tile");
};

/// A tile in shared memory, for wgmma: rows of 128 bytes along k, swizzled, at a multiple of 1024.
///   bits  0-13  address / 16
///        16-29  bytes to the next tile along k / 16; of no meaning here, where a row is as long as the swizzle
///        32-45  bytes from 8 rows to the next 8 / 16
///        62-63  swizzle: 1 is that of 128 bytes
__device__ __forceinline__ uint64_t descriptor(uint32_t tile) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

/// What the copy engine stores of C at a time, from a buffer that holds `BUFFERED` columns of D: boxes of rows of `BYTES` bytes.
/// Without transposition 64 rows, with as many bytes as it can swizzle that divide a tile's row; with it rows of 128 bytes, as many
/// as divide a tile's columns.
template <class Tile, class TC>
struct CBox {
  static constexpr int BUFFERED = 128 / sizeof(TC);
  static constexpr int ROW_BYTES = Tile::BN * sizeof(TC);
  static constexpr int BYTES = Tile::TRANSPOSED || ROW_BYTES % 128 == 0 ? 128 : ROW_BYTES % 64 == 0 ? 64 : 32;
  static constexpr int MOST_ROWS = Tile::BN % 64 == 0 ? 64 : Tile::BN % 32 == 0 ? 32 : 16;
  static constexpr int ROWS = !Tile::TRANSPOSED ? 64 : MOST_ROWS < BUFFERED ? MOST_ROWS : BUFFERED;
  static constexpr int COLUMNS = BYTES / sizeof(TC);
};

/// The copy engine's swizzle in rows of `pitch` bytes, 128, 64 or 32: byte at which chunk `chunk` of row `row` lies.
constexpr LADDER_HOST_DEVICE int swizzle(int row, int chunk, int pitch) {
  return row * pitch + (chunk ^ row * pitch / 128 % (pitch / 16)) * 16;
}

/// One and two results into shared memory.
__device__ __forceinline__ void store_shared(uint32_t smem, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(smem), "f"(x) : "memory");
}
__device__ __forceinline__ void store2_shared(uint32_t smem, const float (&x)[2]) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem), "f"(x[0]), "f"(x[1]) : "memory");
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
  constexpr bool TAKE_TURNS = Tile::TAKE_TURNS, TRANSPOSED = Tile::TRANSPOSED;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;  // of clusters
  constexpr int BLOCKS = CLUSTER * SLICES;  // of a cluster
  const int cluster = blockIdx.x / BLOCKS, clusters = gridDim.x / BLOCKS;
  // The tiles of the last wave, if at most half of the clusters have one, in halves: two units of work each, others one.
  const int whole = Tile::HALVES && c_tiles % clusters * 2 <= clusters ? c_tiles / clusters * clusters : c_tiles;
  const int units = whole + 2 * (c_tiles - whole);
  struct Unit {
    int row, col;  // of the first result of the cluster's first block
    bool half;
  };
  const auto unit_at = [&](int i) -> Unit {
    const bool half = i >= whole;
    const auto [tile_row, tile_col] = raster(half ? whole + (i - whole) / 2 : i, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    return {tile_row * CLUSTER * BM + (half ? (i - whole) % 2 * (CLUSTER * BM / 2) : 0), tile_col * BN, half};
  };
  // C's element of row m and column n of D
  const auto at = [&](int m, int n) {
    return TRANSPOSED ? static_cast<size_t>(n) * ldc + m : static_cast<size_t>(m) * ldc + n;
  };
  const int rank = CLUSTER == 1 ? 0 : cluster_ctarank(), slice = SLICES == 1 ? 0 : cluster_ctarank();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;

  // 2. set up
  const auto [first_k_tile, k_tiles] = slice_of(slice, SLICES, ceil_div(K, BK));
  // mbarriers of each stage: its k tile has landed; it has been multiplied
  const uint32_t buffers = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // of C
  const uint32_t full = buffers + 2 * BUFFERS * Tile::C_BYTES, empty = full + STAGES * 8;
  // A product of fewer rows or columns than a tile is copied without the rest, which is zeroed here, once.
  const int box_m = min(Tile::BOX_M, M), box_n = min(BN / CLUSTER, N);
  if (box_m < Tile::BOX_M || box_n < BN / CLUSTER) {
    for (int i = threadIdx.x; i < STAGES * (BM + BN) * (BK_BYTES / 16); i += Tile::THREADS) {
      const int row = i / (BK_BYTES / 16) % (BM + BN);
      if (row < BM ? row % Tile::BOX_M >= box_m : (row - BM) % (BN / CLUSTER) >= box_n)
        store4_shared(shared_address(smem) + i * 16, {0.0F, 0.0F, 0.0F, 0.0F});
    }
    fence_proxy_async_shared();
  }
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
      for (int unit = cluster; unit < units; unit += clusters) {
        const auto [first_row, col, half] = unit_at(unit);
        const int row = first_row + rank * (half ? BM / 2 : BM), part = rank * (BN / CLUSTER);
        const int bytes = (half ? box_m : Tile::HALVES ? 2 * box_m : box_m) * BK_BYTES + CLUSTER * box_n * BK_BYTES;
        for (int i = 0; i < k_tiles; ++i) {
          const int k = (first_k_tile + (backwards ? k_tiles - 1 - i : i)) * BK;
          const uint32_t tile_a = shared_address(smem) + stage * Tile::STAGE_BYTES, tile_b = tile_a + BM * BK_BYTES;
          mbarrier_wait_parity(empty + stage * 8, parity ^ 1);  // of the phase before; at first there is none
          mbarrier_arrive_expect_tx(full + stage * 8, bytes);
          cp_async_bulk_tensor_2d(tile_a, map_a, k, row, full + stage * 8);
          if (Tile::HALVES && !half)
            cp_async_bulk_tensor_2d(tile_a + BM / 2 * BK_BYTES, map_a, k, row + BM / 2, full + stage * 8);
          if constexpr (CLUSTER > 1)
            cp_async_bulk_tensor_2d_multicast(tile_b + part * BK_BYTES, map_b, k, col + part, full + stage * 8,
                                              (1 << CLUSTER) - 1);
          else
            cp_async_bulk_tensor_2d(tile_b, map_b, k, col, full + stage * 8);
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
  const auto multiply_k_tile = [&]<int ROWS>(std::integral_constant<int, ROWS>, int accumulate) {
    const uint32_t tile_a = shared_address(smem) + stage * Tile::STAGE_BYTES;
    const uint64_t a = descriptor(tile_a + (TAKE_TURNS ? 0 : warpgroup * ROWS * BK_BYTES)),
                   b = descriptor(tile_a + BM * BK_BYTES);
    mbarrier_wait_parity(full + stage * 8, parity);
    wgmma_fence();
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step)
#pragma unroll
      for (int i = 0; i < ROWS / 64; ++i)
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

  const auto multiply_tile = [&](auto rows) {  // per warpgroup
    multiply_k_tile(rows, 0);
#pragma unroll 1
    for (int k_tile = 1; k_tile < k_tiles; ++k_tile) multiply_k_tile(rows, 1);
  };

  int part_number = 0;
  for (int i = 0, unit = cluster; unit < units; ++i, unit += clusters) {
    if (TAKE_TURNS && i % 2 != warpgroup) {
      skip_tile();
      continue;
    }
    const auto [first_row, tile_col, half] = unit_at(unit);
    const int rows = half ? WM / 2 : WM;  // of this warpgroup
    const int tile_row = first_row + (TAKE_TURNS ? rank : rank * 2 + warpgroup) * rows;
    if (TAKE_TURNS && i > 0) bar_sync(3 + warpgroup, 256);  // until the other has issued its tile
    if (Tile::HALVES && half)
      multiply_tile(std::integral_constant < int, Tile::HALVES ? WM / 2 : WM > ());
    else
      multiply_tile(std::integral_constant<int, WM>());
    if (TAKE_TURNS && unit + clusters < units) bar_arrive(4 - warpgroup, 256);
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
#pragma unroll
      for (int i = 0; i < WM / 64; ++i)
#pragma unroll
        for (int j = 0; j < J; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto [c_row, c_col] = mma_c(lane, e);
            const int m = tile_row + i * 64 + warp % 4 * 16 + c_row, n = tile_col + (slice * J + j) * 8 + c_col;
            if (m >= M || n >= N) continue;
            TC& c = C[at(m, n)];
            float d = alpha * acc[i][j][e];
            if (beta != 0.0F) d += beta * to_float(c);
            c = from_float<TC>(d);
          }
      continue;  // there is no other tile
    }
    // [/slices]

    // [epilogue]
    // 4. epilogue: acc -> smem -TMA-> gmem, 64 rows of D at a time, of as many columns as a buffer has room for
    using Box = CBox<Tile, TC>;
    constexpr int PARTS = ceil_div(BN, Box::BUFFERED);  // of 64 rows
#pragma unroll
    for (int part = 0; part < WM / 64 * PARTS; ++part) {
      if (Tile::HALVES && half && part >= WM / 128 * PARTS) break;
      const int first_col = part % PARTS * Box::BUFFERED, columns = min(Box::BUFFERED, BN - first_col);
      const int row = tile_row + part / PARTS * 64, col = tile_col + first_col;
      auto& part_acc = acc[part / PARTS];
#pragma unroll
      for (int j = 0; j < columns / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) part_acc[first_col / 8 + j][e] *= alpha;
      const auto each = [&](auto f) {  // f(row, column, result) for those of this lane that C has
#pragma unroll
        for (int j = 0; j < columns / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto [c_row, c_col] = mma_c(lane, e);
            const int m = row + warp % 4 * 16 + c_row, n = col + j * 8 + c_col;
            if (m < M && n < N) f(C[at(m, n)], part_acc[first_col / 8 + j][e]);
          }
      };
      if (beta != 0.0F) each([&](const TC& c, float& d) { d += beta * to_float(c); });
      // The copy engine would write all of the 16 bytes in which a row of C ends.
      constexpr int CHUNK = 16 / sizeof(TC);
      if (TRANSPOSED ? M % CHUNK != 0 && row + 64 > M : N % CHUNK != 0 && col + columns > N) {
        each([](TC& c, float d) { c = from_float<TC>(d); });
        if (threadIdx.x % 128 == 0) cp_async_bulk_commit_group();  // an empty one: the waits below count groups
        ++part_number;
        continue;
      }
      const uint32_t buffer = buffers + (warpgroup * BUFFERS + part_number % BUFFERS) * Tile::C_BYTES;
      ++part_number;
      if (threadIdx.x % 128 == 0) cp_async_bulk_wait_group_read<BUFFERS - 1>();  // what was in it is read
      bar_sync(1 + warpgroup, 128);
      // Where in the buffer 16 bytes of C lie that begin in row r of 64 and column c of `columns` of D.
      const auto place = [&](int r, int c) {
        if constexpr (TRANSPOSED)
          return r / Box::COLUMNS * (Box::BUFFERED * 128) + swizzle(c, r % Box::COLUMNS / CHUNK, 128);
        return c / Box::COLUMNS * (64 * Box::BYTES) + swizzle(r, c % Box::COLUMNS / CHUNK, Box::BYTES);
      };
      if constexpr (sizeof(TC) == 2) {
#pragma unroll
        for (int j = 0; j < columns / 8; j += 2) {
          uint32_t r[4];  // of rows 0 to 7 and 8 to 15 of 8 columns, then of the next 8
#pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            const float* const x = &part_acc[first_col / 8 + j + pair / 2][pair % 2 * 2];
            union {
              TC element[2];
              uint32_t bits;
            } d = {{from_float<TC>(x[0]), from_float<TC>(x[1])}};
            r[pair] = d.bits;
          }
          const int matrix = lane / 8, first = warp % 4 * 16 + matrix % 2 * 8, c = (j + matrix / 2) * 8;
          if constexpr (TRANSPOSED)
            stmatrix_x4_trans(buffer + place(first, c + lane % 8), r);
          else
            stmatrix_x4(buffer + place(first + lane % 8, c), r);
        }
      } else {
#pragma unroll
        for (int j = 0; j < columns / 8; ++j)
#pragma unroll
          for (int pair = 0; pair < 2; ++pair) {
            const auto [c_row, c_col] = mma_c(lane, pair * 2);
            const int r = warp % 4 * 16 + c_row, c = j * 8 + c_col;
            const float* const x = &part_acc[first_col / 8 + j][pair * 2];
            if constexpr (TRANSPOSED) {
              store_shared(buffer + place(r, c) + r % CHUNK * 4, x[0]);
              store_shared(buffer + place(r, c + 1) + r % CHUNK * 4, x[1]);
            } else {
              store2_shared(buffer + place(r, c) + c % CHUNK * 4, {x[0], x[1]});
            }
          }
      }
      fence_proxy_async_shared();
      bar_sync(1 + warpgroup, 128);
      if (threadIdx.x % 128 == 0) {
        if constexpr (TRANSPOSED) {
#pragma unroll
          for (int r = 0; r < 64; r += Box::COLUMNS)
#pragma unroll
            for (int c = 0; c < columns; c += Box::ROWS)
              cp_async_bulk_tensor_2d_store(map_c, row + r, col + c, buffer + place(r, c));
        } else {
#pragma unroll
          for (int c = 0; c < columns; c += Box::COLUMNS)
            cp_async_bulk_tensor_2d_store(map_c, col + c, row, buffer + place(0, c));
        }
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
    using Box = CBox<Chosen, TC>;
    // The product whose rows are the tiles' rows: that of the problem, or its transpose.
    struct Matrix {
      const void* data;
      int rows, ld;
    } a = {p.a, p.m, p.lda}, b = {p.b, p.n, p.ldb};
    if (Chosen::TRANSPOSED) std::swap(a, b);
    const int clusters = ceil_div(a.rows, Chosen::CLUSTER * Chosen::BM) * ceil_div(b.rows, Chosen::BN);
    int blocks = clusters * Chosen::SLICES;
    if (Chosen::SLICES == 1) {
      const int resident = device_limits().sms / Chosen::CLUSTER;
      blocks = min(Chosen::HALVES ? 2 * clusters : clusters, resident) * Chosen::CLUSTER;
    }
    kernel<<<blocks, Chosen::THREADS, Chosen::SMEM_BYTES, p.stream>>>(
        a.rows, b.rows, p.k, p.alpha, tensor_map<T>(a.data, a.rows, p.k, a.ld, min(Chosen::BOX_M, a.rows)),
        tensor_map<T>(b.data, b.rows, p.k, b.ld, min(Chosen::BN / Chosen::CLUSTER, b.rows)),
        tensor_map<TC>(p.c, p.m, p.n, p.ldc, Box::ROWS, Box::BYTES), p.beta, p.C<TC>(), p.ldc);
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
    .refuses = [](const Problem& p) -> std::string {
      if (ceil_div(p.k, Chosen::BK_BYTES / operand_bytes(p.type)) < Chosen::SLICES)
        return "fewer tiles along k than slices";
      return refuses_mma_sync(p);
    },
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
