// 16_epilogue · C through shared memory, in whole lines, with alpha and beta
//
// Idea              A store of 15 is 16 bytes a lane, but only 64 bytes in each of eight rows. Each warp turns its results
//                   around in shared memory, 16 rows at a time, so that a store, and a load of C, is 128 or 256 bytes of
//                   a row. C, where beta needs it, is asked into L2 two k tiles before the end, and its loads are on
//                   their way while the results are turned.
// Changed from 15   the epilogue; the stage that was used up last is its scratch, so one more barrier a tile; columns of B
//                   dealt in fours, for the scratch is FP32; prefetches of C
// Expect            beta = 0: whole sectors as before, so no gain, and the turn to pay; beta != 0: what C costs is hidden
// Limiter now       mma.sync, as in 14; the epilogue, during which it rests
// New instructions  prefetch.global.L2
// Limits            as 14
// Run               ./run_all.sh run 16 4096 4096 4096 --type bf16 --out same --beta 0.5
// Read              docs/16_epilogue.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 256;          // rows of C a block
  static constexpr int BN = 128;          // columns of C a block
  static constexpr int WM = 64;           // rows of C a warp
  static constexpr int WN = 64;           // columns of C a warp
  static constexpr int ROW = 128;         // bytes along k held at a time: 64 elements of 16 bits, 32 of TF32
  static constexpr int STEPS = ROW / 32;  // of one mma along k
  static constexpr int STAGES = 3;        // tiles in shared memory: one is multiplied, the others are on their way
  static constexpr int COPY_STEPS = 3;    // the copies of a tile are spread over so many steps
  static constexpr int GROUP = 8;         // tile rows of a band: 8 x 256 rows beside 16 x 128 columns for 132 SMs
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int ROWS = THREADS / (ROW / 16);  // rows of A or B that the block copies at once, 16 bytes a thread
  static constexpr int COPIES = (BM + BN) / ROWS;    // of a thread, for a tile
  static constexpr int STAGE_BYTES = (BM + BN) * ROW;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
  static_assert(BM % ROWS == 0 && BN % ROWS == 0, "a copy is of A or of B");
  static_assert(ROWS % 32 == 0 && WN % 32 == 0, "a thread's rows are alike for swizzle_128b() and permuted_column()");
  static_assert(COPY_STEPS < STEPS, "all copies of a tile are committed when the next tile is waited for");
};

/// Keeps the compiler from computing `x` anew each time: a register that a copy or an ldmatrix has just read cannot be
/// overwritten before they have read it, and the warp would wait for that.
__device__ void keep(uint32_t& x) { asm volatile("" : "+r"(x)); }

/// A warp's scratch: 16 rows of its 64 results, in FP32, so that they are rounded once.
struct Scratch {
  static constexpr int ROW = Tile::WN * 4, BYTES = 16 * ROW;
  static_assert(Tile::THREADS / 32 * BYTES <= Tile::STAGE_BYTES, "one stage holds the scratch of all warps");

  /// Columns `col` to `col` + 3 of row `row`. The XORs keep apart the two rows that eight lanes write, and the two halves
  /// of a row that eight lanes read.
  static __device__ float4* at(unsigned char* scratch, int row, int col) {
    const int chunk = col / 4;  // of 16 bytes
    return reinterpret_cast<float4*>(scratch + row * ROW + (chunk ^ chunk / 8 ^ row % 2 * 4) * 16);
  }
};

// [raster]
/// Row and column, in tiles, of tile number `i`: down the band, then one to the right. The last band may be lower.
__device__ Coord raster(int i, int tiles_m, int tiles_n) {
  const int band = i / (Tile::GROUP * tiles_n) * Tile::GROUP;
  const int in_band = i % (Tile::GROUP * tiles_n), height = min(tiles_m - band, Tile::GROUP);
  return {band + in_band % height, in_band / height};
}
// [/raster]

/// RAGGED: the last tile along k is not whole. Then every copy says how many of its bytes there are.
template <Type type, class TC, bool RAGGED>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, ROW = Tile::ROW, ROWS = Tile::ROWS;
  constexpr int STAGES = Tile::STAGES, STEPS = Tile::STEPS, COPIES = Tile::COPIES, SIZE = Vector<TC>::SIZE;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, ROW / 16);          // my first 16 bytes of a tile

  // 2. set up
  const int k_bytes = K * static_cast<int>(sizeof(T)), k_tiles = ceil_div(k_bytes, ROW);
  const uint32_t s_copy = shared_address(smem) + swizzle_128b(copy_row, copy_chunk);
  uint32_t s_a[STEPS], s_b[STEPS];  // the rows that this lane names to ldmatrix
#pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    s_a[k] = shared_address(smem) + swizzle_128b(warp_row + lane % 16, k * 2 + lane / 16);
    s_b[k] = shared_address(smem) + BM * ROW + swizzle_128b(warp_col + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2);
    keep(s_a[k]), keep(s_b[k]);
  }

  // The copies run ahead: they have their own tile of C, and k_left tiles of it along k still to come.
  int copy_tile = blockIdx.x, k_left = k_tiles;
  const unsigned char* g[COPIES];  // where the next ones begin
  int bytes = 16;                  // of each of them that exist
  const auto start_tile = [&] {
    // Behind the last tile the last one again, which nobody looks at; past the last row or column the last one, of
    // which nothing is stored. The last tile along k, which may be ragged, comes first.
    const auto [tile_row, tile_col] = raster(min(copy_tile, tiles - 1), tiles_m, tiles_n);
    const int row = tile_row * BM + copy_row, col = tile_col * BN + permuted_column(copy_row, 4);
    const int k = (k_tiles - 1) * ROW + copy_chunk * 16;
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const T* start = i < BM / ROWS ? A + static_cast<size_t>(min(row + i * ROWS, M - 1)) * lda
                                     : B + static_cast<size_t>(min(col + i * ROWS - BM, N - 1)) * ldb;
      g[i] = reinterpret_cast<const unsigned char*>(start) + k;
    }
    if (RAGGED) bytes = min(max(k_bytes - k, 0), 16);
  };
  const auto prefetch_c = [&](int tile) {  // C will be needed soon: a line of 128 bytes each time
    const auto [tile_row, tile_col] = raster(min(tile, tiles - 1), tiles_m, tiles_n);
    constexpr int LINES = BN * sizeof(TC) / 128;
#pragma unroll 1
    for (int i = threadIdx.x; i < BM * LINES; i += Tile::THREADS) {
      const int m = tile_row * BM + i / LINES, n = tile_col * BN + i % LINES * (BN / LINES);
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  const auto next_tile = [&] {
    if (--k_left > 0) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) g[i] -= ROW;
      if (RAGGED) bytes = 16;
    } else {
      if (beta != 0.0F) prefetch_c(copy_tile);
      k_left = k_tiles;
      copy_tile += gridDim.x;
      start_tile();
    }
  };
  const auto copy = [&](uint32_t to, int first, int last) {
#pragma unroll
    for (int i = first; i < last; ++i) {
      if (RAGGED)
        cp_async_cg_16(to + i * ROWS * ROW, g[i], bytes);
      else
        cp_async_cg_16(to + i * ROWS * ROW, g[i]);
    }
  };
  uint32_t rA[2][WM / 16][4], rB[2][WN / 16][4];
  const auto load_fragments = [&](uint32_t stage, int k, int buffer) {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) ldmatrix_x4(rA[buffer][i], s_a[k] + stage + i * 16 * ROW);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) ldmatrix_x4(rB[buffer][j], s_b[k] + stage + j * 16 * ROW);
  };

  start_tile();
#pragma unroll 1
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    copy(s_copy + stage * Tile::STAGE_BYTES, 0, COPIES);
    cp_async_commit_group();
    if (stage < STAGES - 2) next_tile();
  }
  cp_async_wait_group<STAGES - 2>();
  __syncthreads();
  uint32_t stage = 0;  // that is multiplied, in bytes from the first
  load_fragments(stage, 0, 0);

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float acc[WM / 16][WN / 8][4] = {};

    // [main-loop]
    // 3. main loop
#pragma unroll 1
    for (int k_tile = k_tiles; k_tile > 0; --k_tile) {
      const uint32_t next = stage + Tile::STAGE_BYTES == Tile::SMEM_BYTES ? 0 : stage + Tile::STAGE_BYTES;
      const uint32_t s_to = s_copy + (stage == 0 ? Tile::SMEM_BYTES : stage) - Tile::STAGE_BYTES;  // of the copies
#pragma unroll
      for (int k = 0; k < STEPS; ++k) {
        if (k == STEPS - 1) {  // the next stage is needed: my copies into it have landed, and then everyone's have
          cp_async_wait_group<STAGES - 2>();
          __syncthreads();
        }
        load_fragments(k == STEPS - 1 ? next : stage, (k + 1) % STEPS, (k + 1) % 2);
        if (k == 0) next_tile();
        if (k < Tile::COPY_STEPS)  // into the stage that was used up when everyone came to the last barrier
          copy(s_to, COPIES * k / Tile::COPY_STEPS, COPIES * (k + 1) / Tile::COPY_STEPS);
        if (k == Tile::COPY_STEPS - 1) cp_async_commit_group();
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) {
#pragma unroll
          for (int i = 0; i < WM / 16; ++i) {
            const int snake = j % 2 ? WM / 16 - 1 - i : i;  // neighbouring mma share an operand
            const uint32_t b[2] = {rB[k % 2][j / 2][j % 2 * 2], rB[k % 2][j / 2][j % 2 * 2 + 1]};
            Operand<type>::mma(acc[snake][j], rA[k % 2][snake], b);
          }
        }
      }
      stage = next;
    }
    // [/main-loop]

    // 4. epilogue: 16 rows of the warp's results at a time through a scratch of its own, the stage that was used up last
    // [epilogue]
    constexpr int PARTS = 16 * WN / SIZE / 32, TOGETHER = 4;  // loads of C that set out together
    const auto [tile_row, tile_col] = raster(tile, tiles_m, tiles_n);
    const int first_row = tile_row * BM + warp_row, first_col = tile_col * BN + warp_col;
    const uint32_t used_up = (stage == 0 ? Tile::SMEM_BYTES : stage) - Tile::STAGE_BYTES;
    unsigned char* const scratch = smem + used_up + warp * Scratch::BYTES;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
      const auto in_rows = [&](int part) { return row_major(part * 32 + lane, WN / SIZE); };  // vectors of the 16 rows
      const auto row = [&](int part) { return first_row + i * 16 + in_rows(part).row; };
      const auto col = [&](int part) { return first_col + in_rows(part).col * SIZE; };
      const auto place = [&](int part) { return C + static_cast<size_t>(row(part)) * ldc + col(part); };
      const auto left = [&](int part) { return row(part) < M ? N - col(part) : 0; };  // results that C has room for
      Vector<TC> c[TOGETHER] = {};
      const auto load_c = [&](int first) {
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
#pragma unroll
          for (int part = first; part < first + TOGETHER; ++part)
            if (left(part) > 0) c[part - first].bits = *reinterpret_cast<const uint4*>(place(part));
        }
      };
      load_c(0);
#pragma unroll
      for (int j = 0; j < WN / 8; j += 2) {
#pragma unroll
        for (int r = 0; r < 4; r += 2)  // four neighbouring columns, of two mma
          *Scratch::at(scratch, mma_c(lane, r).row, j * 8 + lane % 4 * 4) = {
              alpha * acc[i][j][r], alpha * acc[i][j][r + 1], alpha * acc[i][j + 1][r], alpha * acc[i][j + 1][r + 1]};
      }
      __syncwarp();
#pragma unroll 1  // twice for FP32: more would not fit the registers
      for (int first = 0; first < PARTS; first += TOGETHER) {
        if (first > 0) load_c(first);
#pragma unroll
        for (int part = first; part < first + TOGETHER; ++part) {
          Vector<TC> d;
#pragma unroll
          for (int e = 0; e < SIZE; e += 4) {
            const float4 x4 = *Scratch::at(scratch, in_rows(part).row, in_rows(part).col * SIZE + e);
            const float x[4] = {x4.x, x4.y, x4.z, x4.w};
#pragma unroll
            for (int q = 0; q < 4; ++q)
              d.element[e + q] =
                  from_float<TC>(beta == 0.0F ? x[q] : x[q] + beta * to_float(c[part - first].element[e + q]));
          }
          if (left(part) >= SIZE) *reinterpret_cast<uint4*>(place(part)) = d.bits;
          if (N % SIZE != 0) {  // then the last of them have to go one by one: the padding of C is not ours to write
#pragma unroll
            for (int e = 0; e < SIZE; ++e)
              if (e < left(part) && left(part) < SIZE) place(part)[e] = d.element[e];
          }
        }
      }
      __syncwarp();
    }
    // [/epilogue]
    __syncthreads();  // the scratch is a stage again
  }
}

/// Calls `f` with the kernel for this problem.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    return f.template operator()<T, TC>(p.k * sizeof(T) % Tile::ROW ? gemm<type, TC, true> : gemm<type, TC, false>);
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class T, class TC>(auto kernel) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    int device = 0, sms = 0;
    cuda_check(cudaGetDevice(&device));
    cuda_check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    const int tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    kernel<<<min(tiles, sms), Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda,
                                                                           p.B<T>(), p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "16",
    .name = "epilogue",
    .idea = "C through shared memory in 16-byte accesses; alpha, beta, every type of result",
    .predecessor = "15",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
    .unit = Unit::mma_sync,
    .layout_b = LayoutB::col_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class T, class TC>(auto kernel) {
            return Resources{
                (const void*)kernel, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, Tile::ROW / int{sizeof(T)}}};
          });
        },
    .launch = launch,
}};

}  // namespace
