// 14_multistage · several tiles under way, fragments one step ahead, blocks that stay
//
// Idea              Two tiles are on their way while a third is multiplied; the fragments of the next step are loaded
//                   while this one is multiplied; and a block stays on its SM and goes from one tile of C to the next,
//                   so that even there the next tiles are on their way. Between two mma there is as little as can be.
//                   Columns of B are dealt to the mma so that a lane's results are neighbours: 16 bytes a store.
// Changed from 13   256 x 128 results a block, 3 stages, one block an SM that walks over tiles; rA[2], rB[2]; every
//                   address of the loop stays in a register of its own; a second kernel for a ragged K; the rows of B's
//                   tile in another order, and with that the epilogue; swizzle_128b() comes from common/layout.h
// Expect            a quarter fewer copies for each mma than 13, and neither a copy nor a fragment is waited for: with
//                   barriers and the epilogue left, 6 % of the time, 1.3 times as fast
// Limiter now       the tensor cores' mma.sync, and what interrupts them: copies, barriers, the epilogue
// New instructions  none
// Limits            tf32 (truncated), bf16, f16; sm_80 with 144 KB of shared memory a block; any M, N, K; rows
//                   a multiple of 16 bytes
// Run               ./run_all.sh run 14 4096 4096 4096 --type bf16
// Read              docs/14_multistage.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/ldmatrix.h"
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
  const int tiles_n = ceil_div(N, BN), tiles = ceil_div(M, BM) * tiles_n;
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
    const int tile = min(copy_tile, tiles - 1), k = (k_tiles - 1) * ROW + copy_chunk * 16;
    const int row = tile / tiles_n * BM + copy_row, col = tile % tiles_n * BN + permuted_column(copy_row, SIZE);
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const T* start = i < BM / ROWS ? A + static_cast<size_t>(min(row + i * ROWS, M - 1)) * lda
                                     : B + static_cast<size_t>(min(col + i * ROWS - BM, N - 1)) * ldb;
      g[i] = reinterpret_cast<const unsigned char*>(start) + k;
    }
    if (RAGGED) bytes = min(max(k_bytes - k, 0), 16);
  };
  const auto next_tile = [&] {
    if (--k_left > 0) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) g[i] -= ROW;
      if (RAGGED) bytes = 16;
    } else {
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

    // 4. epilogue: of every 16 rows a lane has SIZE neighbouring results in VECTORS places, by turns in rows g and g + 8
    // [epilogue]
    constexpr int VECTORS = 2 * WN / (4 * SIZE), TOGETHER = 16 / SIZE;  // loads of C that set out together
    const int first_row = tile / tiles_n * BM + warp_row + mma_c(lane, 0).row;
    const int first_col = tile % tiles_n * BN + warp_col + lane % 4 * SIZE;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
      const auto row = [&](int v) { return first_row + i * 16 + v % 2 * 8; };
      const auto col = [&](int v) { return first_col + v / 2 * 4 * SIZE; };
      const auto place = [&](int v) { return C + static_cast<size_t>(row(v)) * ldc + col(v); };
      const auto left = [&](int v) { return row(v) < M ? N - col(v) : 0; };  // results from here on that C has room for
#pragma unroll
      for (int first = 0; first < VECTORS; first += TOGETHER) {
        Vector<TC> c[TOGETHER] = {};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
#pragma unroll
          for (int v = first; v < first + TOGETHER; ++v)
            if (left(v) > 0) c[v - first].bits = *reinterpret_cast<const uint4*>(place(v));
        }
#pragma unroll
        for (int v = first; v < first + TOGETHER; ++v) {
          Vector<TC> d;
#pragma unroll
          for (int e = 0; e < SIZE; ++e) {
            const float x = alpha * acc[i][v / 2 * SIZE / 2 + e / 2][v % 2 * 2 + e % 2];
            d.element[e] = from_float<TC>(beta == 0.0F ? x : x + beta * to_float(c[v - first].element[e]));
          }
          if (left(v) >= SIZE) *reinterpret_cast<uint4*>(place(v)) = d.bits;
          if (N % SIZE != 0) {  // then the last of them have to go one by one: the padding of C is not ours to write
#pragma unroll
            for (int e = 0; e < SIZE; ++e)
              if (e < left(v) && left(v) < SIZE) place(v)[e] = d.element[e];
          }
        }
      }
    }
    // [/epilogue]
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
    .number = "14",
    .name = "multistage",
    .idea = "tiles in three stages, fragments one step ahead, blocks that stay on their SM",
    .predecessor = "13",
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
