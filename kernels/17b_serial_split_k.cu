// 17b_serial_split_k · the splits of a tile add their partial sums one after the other, without a reduction kernel
//
// Idea              17's reduction kernel has to start, and it loads what was just stored. Here the warps of split s wait until the same
//                   warps of split s - 1 have stored their partial sums, and add their own. The last split stores C.
// Changed from 17   a lock per warp and tile of C, which a warp waits for and releases before the epilogue (CUTLASS: Semaphore); the
//                   model chooses between serial and parallel split-K
// Expect            1024 x 1024 x 1024 in BF16: 1.16 times 17 by the model. With two splits one wait of 3700 clocks is added; the
//                   reduction kernel costs 8400 there, so that 17 does not split K at all
// Limiter now       as 17
// New instructions  ld.acquire.gpu, st.release.gpu
// Limits            as 16
// Run               ./run_all.sh run 17b 1024 1024 1024 --type bf16
// Read              docs/17b_serial_split_k.md
#include <limits>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/semaphore.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"
#include "common/split_k.h"

using namespace ladder;

namespace {

template <int BLOCK_M, int WARP_N, int DEPTH>
struct TileConfig {
  static constexpr int BM = BLOCK_M;      // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = WARP_N;       // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = DEPTH;       // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int COPY_STEPS = 3;       // the copies of a k tile are spread over this many k steps
  static constexpr int GROUP_SIZE_M = 8;     // tile rows per group: 132 tiles are about 8 x 16
  static constexpr bool SERIAL = BM == 128;  // whether split-K may be serial: a larger tile takes twice as long
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int COPIES = (BM + BN) / COPY_ROWS;         // per thread and k tile
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
  static_assert(BM % COPY_ROWS == 0 && BN % COPY_ROWS == 0, "one copy is of A or of B");
  static_assert(COPY_ROWS % 8 == 0, "all rows that a thread copies have the same row % 8");
  static_assert(COPY_ROWS % 32 == 0 && WN % 32 == 0, "a thread's columns of B are COPY_ROWS apart, permuted or not");
  static_assert(K_STEPS % 2 == 0, "the fragments of a k tile's first step lie in rA[0] and rB[0]");
  static_assert(COPY_STEPS < K_STEPS, "all copies of a k tile are committed before the wait for the next one");
};
using Large = TileConfig<256, 64, 3>;  // 144 KB of shared memory: A100, H100, H200
using Deep = TileConfig<128, 32, 7>;   // 224 KB: H100, H200; more copies on their way, for few tiles of C
using Small = TileConfig<128, 32, 3>;  // 96 KB: RTX 30, 40 and 50

/// RESIDUE: the last k tile is a residue tile, so copies are predicated: each says how many of its bytes lie inside the matrix.
template <class Tile, Type type, class TC, bool RESIDUE>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc,
         int splits, size_t split_stride, float4* partials, unsigned* locks) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int COPY_ROWS = Tile::COPY_ROWS, COPIES = Tile::COPIES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, SIZE = Vector<TC>::SIZE;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int work_tiles = c_tiles * splits;  // work tile w is split w % splits of tile w / splits
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile

  // 2. set up
  const int k_bytes = K * static_cast<int>(sizeof(T)), k_tiles = ceil_div(k_bytes, BK_BYTES);
  // The copies run ahead of the mma: they have their own work tile, and their own count of k tiles.
  int copy_work_tile = blockIdx.x, copy_k_tiles_left;
  const unsigned char* cp_async_src[COPIES];  // what this thread copies next: rows of A, then columns of B
  int copy_bytes = 16;                        // of each copy; the rest is filled with zeros
  const auto start_work_tile = [&] {
    // Past the last row or column, read the last one: its results are not stored. After the last work tile, copy it once
    // more; the copies are never used. The tile at the end of K comes first; it may be a residue tile.
    if (copy_work_tile >= work_tiles) return;
    const int work_tile = copy_work_tile;
    const auto [tile_row, tile_col] = raster(work_tile / splits, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const KTileRange of_split = k_tiles_of_split(work_tile % splits, splits, k_tiles);
    copy_k_tiles_left = of_split.k_tiles;
    const int block_row = tile_row * BM, block_col = tile_col * BN, copy_col = permuted_column(copy_row, SIZE);
    const int k_offset_bytes = (k_tiles - 1 - of_split.first) * BK_BYTES;
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const T* const start = i < BM / COPY_ROWS
                                 ? A + static_cast<size_t>(min(block_row + copy_row + i * COPY_ROWS, M - 1)) * lda
                                 : B + static_cast<size_t>(min(block_col + copy_col + i * COPY_ROWS - BM, N - 1)) * ldb;
      cp_async_src[i] = reinterpret_cast<const unsigned char*>(start) + k_offset_bytes + copy_chunk * 16;
    }
    if (RESIDUE) copy_bytes = min(max(k_bytes - k_offset_bytes - copy_chunk * 16, 0), 16);
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
  const auto next_k_tile = [&] {
    if (--copy_k_tiles_left > 0) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) cp_async_src[i] -= BK_BYTES;
      if (RESIDUE) copy_bytes = 16;
    } else {
      if (beta != 0.0F && copy_k_tiles_left == 0) prefetch_c(copy_work_tile / splits);
      copy_work_tile += gridDim.x;
      start_work_tile();
    }
  };

  // Copies this thread's 16-byte chunks [first, last) of a k tile. COPY_ROWS rows further down, a chunk has the same place in
  // its row.
  const uint32_t cp_async_dst = shared_address(smem) + swizzle_128b(copy_row, copy_chunk);
  const auto copy = [&](uint32_t write_stage_bytes, int first, int last) {
#pragma unroll
    for (int i = first; i < last; ++i) {
      const uint32_t dst = cp_async_dst + write_stage_bytes + i * COPY_ROWS * BK_BYTES;
      if (RESIDUE)
        cp_async_cg_16(dst, cp_async_src[i], copy_bytes);
      else
        cp_async_cg_16(dst, cp_async_src[i]);
    }
  };

  // The row whose address this lane gives to ldmatrix, per k step, in stage 0. An ldmatrix loads four matrices of 8 rows of 16 bytes:
  // of A two below one another and two along k, of B two along k and two next to one another.
  uint32_t ldsm_a_addr[K_STEPS], ldsm_b_addr[K_STEPS];
#pragma unroll
  for (int k_step = 0; k_step < K_STEPS; ++k_step) {
    ldsm_a_addr[k_step] =
        shared_address(smem) + swizzle_128b(warp_row + ldsm_a(lane).row, k_step * 2 + ldsm_a(lane).col);
    ldsm_b_addr[k_step] =
        shared_address(smem) + BM * BK_BYTES + swizzle_128b(warp_col + ldsm_b(lane).row, k_step * 2 + ldsm_b(lane).col);
    keep_in_register(ldsm_a_addr[k_step]), keep_in_register(ldsm_b_addr[k_step]);
  }
  uint32_t rA[2][WM / 16][4];  // [k step % 2][16 rows][words of this lane: mma_a]
  uint32_t rB[2][WN / 16][4];  // [k step % 2][16 columns][words of this lane: mma_b of the first 8, then of the others]
  const auto load_fragments = [&](uint32_t stage_bytes, int k_step) {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
      ldmatrix_x4(rA[k_step % 2][i], ldsm_a_addr[k_step] + stage_bytes + i * 16 * BK_BYTES);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j)
      ldmatrix_x4(rB[k_step % 2][j], ldsm_b_addr[k_step] + stage_bytes + j * 16 * BK_BYTES);
  };

  start_work_tile();
#pragma unroll 1
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage > 0) next_k_tile();
    copy(stage * Tile::STAGE_BYTES, 0, COPIES);
    cp_async_commit_group();
  }
  cp_async_wait_group<STAGES - 2>();
  __syncthreads();
  load_fragments(0, 0);

  // [main-loop]
  // 3. main loop: gmem -cp.async-> smem[write stage]     smem[read stage] -ldmatrix-> registers -mma-> acc
  // Consumes one stage; returns the next one's offset.
  const auto multiply_k_tile = [&](uint32_t read_stage_bytes, float(&acc)[WM / 16][WN / 8][4]) {
    const uint32_t next_stage_bytes =
        read_stage_bytes + Tile::STAGE_BYTES == Tile::SMEM_BYTES ? 0 : read_stage_bytes + Tile::STAGE_BYTES;
    const uint32_t write_stage_bytes =
        (read_stage_bytes == 0 ? Tile::SMEM_BYTES : read_stage_bytes) - Tile::STAGE_BYTES;
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      if (k_step == K_STEPS - 1) {          // the next stage is needed
        cp_async_wait_group<STAGES - 2>();  // my copies into it have landed
        __syncthreads();                    // everyone's have, and everyone is done with this stage
      }
      load_fragments(k_step == K_STEPS - 1 ? next_stage_bytes : read_stage_bytes, (k_step + 1) % K_STEPS);
      if (k_step == 0) next_k_tile();
      if (k_step < Tile::COPY_STEPS)  // into the stage that everyone was done with at the last barrier
        copy(write_stage_bytes, COPIES * k_step / Tile::COPY_STEPS, COPIES * (k_step + 1) / Tile::COPY_STEPS);
      if (k_step == Tile::COPY_STEPS - 1) cp_async_commit_group();
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {
          const uint32_t b[2] = {rB[k_step % 2][j / 2][j % 2 * 2], rB[k_step % 2][j / 2][j % 2 * 2 + 1]};
          Operand<type>::mma(acc[i][j], rA[k_step % 2][i], b);
        }
    }
    return next_stage_bytes;
  };
  // [/main-loop]

  uint32_t read_stage_bytes = 0;
  for (int work_tile = blockIdx.x; work_tile < work_tiles; work_tile += gridDim.x) {
    const int c_tile = work_tile / splits, split = work_tile % splits;
    float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles_of_split(split, splits, k_tiles).k_tiles; k_tiles_left > 0; --k_tiles_left)
      read_stage_bytes = multiply_k_tile(read_stage_bytes, acc);

    // [serial]
    if (Tile::SERIAL &&
        locks != nullptr) {  // each thread adds to the partial sums of the same thread index of split - 1
      float4* const partial = partials + c_tile * (BM * BN / 4) + threadIdx.x;  // of this thread, THREADS apart
      unsigned* const lock = locks + c_tile * (Tile::THREADS / 32) + warp;      // the split that may add next
      if (split > 0) {
        while (ld_acquire_gpu(lock) != split) {
        }
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
          for (int j = 0; j < WN / 8; ++j) {
            const float4 sum = partial[(i * (WN / 8) + j) * Tile::THREADS];
            acc[i][j][0] += sum.x, acc[i][j][1] += sum.y, acc[i][j][2] += sum.z, acc[i][j][3] += sum.w;
          }
      }
      if (split < splits - 1) {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
          for (int j = 0; j < WN / 8; ++j)
            partial[(i * (WN / 8) + j) * Tile::THREADS] = {acc[i][j][0], acc[i][j][1], acc[i][j][2], acc[i][j][3]};
      }
      __syncwarp();                                               // all lanes have read and written
      if (lane == 0) st_release_gpu(lock, (split + 1) % splits);  // the last one leaves 0, for the next launch
      if (split < splits - 1) continue;
    }
    // [/serial]

    // [epilogue]
    // 4. epilogue: of every 16 rows a lane holds VECTORS vectors of SIZE neighbouring results, alternately in rows g and g + 8
    constexpr int VECTORS = 2 * WN / (4 * SIZE), TOGETHER = 16 / SIZE;  // loads of C in flight together
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int first_row = tile_row * BM + warp_row + mma_c(lane, 0).row;
    const int first_col = tile_col * BN + warp_col + lane % 4 * SIZE;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
      const auto row = [&](int v) { return first_row + i * 16 + v % 2 * 8; };
      const auto col = [&](int v) { return first_col + v / 2 * 4 * SIZE; };
      const auto gC = [&](int v) { return C + split * split_stride + static_cast<size_t>(row(v)) * ldc + col(v); };
      const auto columns_left = [&](int v) { return row(v) < M ? N - col(v) : 0; };  // of C, from here on
#pragma unroll
      for (int first = 0; first < VECTORS; first += TOGETHER) {
        Vector<TC> c[TOGETHER] = {};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
#pragma unroll
          for (int v = first; v < first + TOGETHER; ++v)
            if (columns_left(v) > 0) c[v - first].bits = *reinterpret_cast<const uint4*>(gC(v));
        }
#pragma unroll
        for (int v = first; v < first + TOGETHER; ++v) {
          Vector<TC> d;
#pragma unroll
          for (int e = 0; e < SIZE; ++e) {
            const float x = alpha * acc[i][v / 2 * SIZE / 2 + e / 2][v % 2 * 2 + e % 2];
            d.element[e] = from_float<TC>(beta == 0.0F ? x : x + beta * to_float(c[v - first].element[e]));
          }
          if (columns_left(v) >= SIZE) *reinterpret_cast<uint4*>(gC(v)) = d.bits;
          if (N % SIZE != 0) {  // then the last ones go one by one: the padding of C must stay as it is
#pragma unroll
            for (int e = 0; e < SIZE; ++e)
              if (e < columns_left(v) && columns_left(v) < SIZE) gC(v)[e] = d.element[e];
          }
        }
      }
    }
    // [/epilogue]
  }
}

/// Clocks of an H200, fitted to a run of bench/sweep_17.py before the recorded one.
template <class Tile>
constexpr SplitCosts costs = {.start = 14400,
                              .k_tile = Tile::BM == 256 ? 1790 : 1040,
                              .work_tile = Tile::BM == 256 ? 4400 : 1500,
                              .reduction = 3600,
                              .reduction_split = 140,
                              .reduction_byte = 1 / 14.0};

template <class Tile, Type type>
constexpr TileShape shape = {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES};

/// How many splits, and how their partial sums are added.
struct Plan : SplitPlan {
  bool serial;  ///< else parallel, with a reduction kernel
};

// [serial-clocks]
/// Clocks until the last split has added its partial sums. All splits must run at once.
template <class Tile>
double serial_clocks(const TiledProduct& t, int splits) {
  if (!Tile::SERIAL || t.c_tiles * splits > t.sms) return std::numeric_limits<double>::max();
  const double tile_bytes = 4.0 * Tile::BM * Tile::BN;
  return multiply_clocks(costs<Tile>, t, splits) + (splits - 1) * (1850 + tile_bytes / 35);
}
// [/serial-clocks]

/// The best plan with this tile.
template <class Tile>
Plan plan(const TiledProduct& t) {
  const SplitPlan parallel = best_splits(t.k_tiles, [&](int splits) {
    return multiply_clocks(costs<Tile>, t, splits) + reduction_clocks(costs<Tile>, t, splits);
  });
  const SplitPlan serial = best_splits(t.k_tiles, [&](int splits) { return serial_clocks<Tile>(t, splits); });
  return TUNABLE(SERIAL, serial.clocks < parallel.clocks) ? Plan{serial, true} : Plan{parallel, false};
}

/// Calls `f` with the tile and the types, and its plan: of the tiles that the GPU has the shared memory for, the fastest.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    const DeviceLimits gpu = device_limits();  // once per launch: it asks the driver
    const Plan large = plan<Large>(tiled(p, shape<Large, type>, gpu.sms));
    const Plan small = plan<Small>(tiled(p, shape<Small, type>, gpu.sms));
    if (gpu.smem_block_bytes >= Large::SMEM_BYTES && TUNABLE(LARGE, large.clocks <= small.clocks))
      return f.template operator()<Large, type, TC>(large);
    return gpu.smem_block_bytes >= Deep::SMEM_BYTES ? f.template operator()<Deep, type, TC>(small)
                                                    : f.template operator()<Small, type, TC>(small);
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class Tile, Type type, class TC>(const Plan& plan) {
    using T = typename Operand<type>::Element;
    const auto run = [&]<class Sum>(float alpha, float beta, Sum* C, int ldc) {
      const bool residue = p.k % shape<Tile, type>.k != 0;
      const auto kernel = residue ? gemm<Tile, type, Sum, true> : gemm<Tile, type, Sum, false>;
      cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
      const int work_tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN) * plan.splits;
      kernel<<<min(work_tiles, device_limits().sms), Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
          p.m, p.n, p.k, alpha, p.A<T>(), p.lda, p.B<T>(), p.ldb, beta, C, ldc, plan.splits,
          plan.serial ? 0 : static_cast<size_t>(p.m) * ldc, static_cast<float4*>(p.workspace),
          plan.serial ? p.locks : nullptr);
      cuda_check(cudaGetLastError());
    };
    if (plan.splits == 1 || plan.serial) {
      run(p.alpha, p.beta, p.C<TC>(), p.ldc);
    } else {
      run(1.0F, 0.0F, static_cast<float*>(p.workspace), partials_ld(p));
      launch_reduce_splits<TC>(p, plan.splits);
    }
  });
}

std::string explain(const Problem& p) {
  return for_kernel(p, [&]<class Tile, Type type, class TC>(const Plan& plan) {
    return explain_splits(plan, plan.serial ? "serial" : "parallel");
  });
}

const Registration registration{{
    .number = "17b",
    .name = "serial_split_k",
    .idea = "serial split-K, where the model expects it to be faster than parallel",
    .predecessor = "17",
    .kind = Kind::variant,
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>(const Plan& plan) {
            const int c_tiles = plan.serial ? ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN)
                                            : 0;  // whose splits wait for one another
            return Resources{(const void*)gemm<Tile, type, TC, false>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             shape<Tile, type>,
                             plan.serial        ? c_tiles * Tile::BM * Tile::BN * sizeof(float)
                             : plan.splits == 1 ? 0
                                                : partials_bytes(p, plan.splits),
                             c_tiles * Tile::THREADS / 32};
          });
        },
    .launch = launch,
    .explain = explain,
}};

}  // namespace
