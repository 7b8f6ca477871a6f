// 21_tma · tiles by TMA: one thread issues the copy of a whole tile
//
// Idea              Hopper's Tensor Memory Accelerator (TMA) takes a description of a matrix and the coordinates of a box. It computes
//                   the addresses, fills the edges with zeros, swizzles, and counts the landed bytes on an mbarrier. The 12 copies
//                   per thread and k tile become 2 bulk tensor copies per block. Their addresses and predicates disappear.
// Changed from 16   tensor maps and mbarriers in place of cp.async; PipelineState; four stages; the columns of B are no longer permuted by
//                   the copies but by the addresses of ldmatrix, in an order that needs selects in the epilogue
// Expect            16 loses 6,100 of 119,700 clocks per tile of C after its copies' instructions. 21 needs 256 for selects in the
//                   epilogue, and 1,900 if nothing hides the elected lane's 30 instructions per k tile: 1.03 times 16
// Limiter now       mma.sync, and a barrier per k tile at which the warps wait for one another
// New instructions  cp.async.bulk.tensor, mbarrier.init, .arrive.expect_tx, .try_wait; fence.mbarrier_init; prefetch.tensormap
// Limits            sm_90a; bf16, f16, tf32; rows of 16-byte multiples
// Run               ./run_all.sh run 21 4096 4096 4096 --type bf16
// Read              docs/21_tma.md
#include <cuda.h>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 256;          // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = 64;           // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 4;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 132 tiles are about 8 x 16
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + STAGES * 8;  // and an mbarrier per stage
  static_assert(BM <= 256 && BN <= 256, "a box has at most 256 rows");
  static_assert(STAGE_BYTES % 1024 == 0, "TMA swizzles by bits of the address: 8 rows of 128 bytes");
  static_assert(K_STEPS % 2 == 0, "the fragments of a k tile's first step lie in rA[0] and rB[0]");
};

// [pipeline-state]
/// The stage that comes next in a pipeline, and the phase of its mbarrier, as the parity that mbarrier_wait_parity() takes.
struct PipelineState {
  uint32_t phase = 0;
  int index = 0;

  __device__ __forceinline__ void operator++() {
    if (++index == Tile::STAGES) index = 0, phase ^= 1;
  }
};
// [/pipeline-state]

/// Exchanges two registers in those lanes where `exchange` holds.
__device__ __forceinline__ void exchange_if(bool exchange, float& x, float& y) {
  const float first = exchange ? y : x;
  y = exchange ? x : y, x = first;
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
         const __grid_constant__ CUtensorMap map_b, float beta, TC* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, SIZE = Vector<TC>::SIZE;
  constexpr int BK = BK_BYTES / Operand<type>::BYTES;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C

  // 2. set up
  // [barriers]
  const int k_tiles = ceil_div(K, BK);
  const uint32_t full = shared_address(smem) + STAGES * Tile::STAGE_BYTES;  // mbarriers: the stage's k tile has landed
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage * 8, 1);
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();
  // [/barriers]

  // [copy]
  // One lane of warp 0 issues all copies. They run ahead of the mma: they have their own tile of C, and their own k tile.
  int copy_c_tile = blockIdx.x, copy_k_tile = 0, copy_row = 0, copy_col = 0;
  PipelineState write_state;
  const auto copy = [&] {
    if (warp != 0 || copy_c_tile >= c_tiles) return;
    if (copy_k_tile == 0) {
      const auto [tile_row, tile_col] = raster(copy_c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
      copy_row = tile_row * BM, copy_col = tile_col * BN;
    }
    const uint32_t dst = shared_address(smem) + write_state.index * Tile::STAGE_BYTES,
                   barrier = full + write_state.index * 8;
    if (elect_sync()) {
      mbarrier_arrive_expect_tx(barrier, Tile::STAGE_BYTES);
      cp_async_bulk_tensor_2d(dst, map_a, copy_k_tile * BK, copy_row, barrier);
      cp_async_bulk_tensor_2d(dst + BM * BK_BYTES, map_b, copy_k_tile * BK, copy_col, barrier);
    }
    ++write_state;
    if (++copy_k_tile == k_tiles) copy_k_tile = 0, copy_c_tile += gridDim.x;
  };
  // [/copy]
  const auto prefetch_c = [&](int c_tile) {  // the epilogue will need it: one line of 128 bytes per prefetch
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    constexpr int LINES = BN * sizeof(TC) / 128;  // of a row of the tile
#pragma unroll 1
    for (int i = threadIdx.x; i < BM * LINES; i += Tile::THREADS) {
      const int m = tile_row * BM + i / LINES, n = tile_col * BN + i % LINES * (BN / LINES);
      if (m < M && n < N) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
    }
  };
  // The row whose address this lane gives to ldmatrix, per k step, in stage 0. An ldmatrix loads four matrices of 8 rows of 16 bytes:
  // of A two below one another and two along k, of B two along k and two next to one another.
  // The columns of B are read in the order of named_column(), so that the results of a lane are neighbours in C.
  constexpr int NAMED = SIZE / 4;  // ldmatrix per 4 SIZE columns
  uint32_t ldsm_a_addr[K_STEPS], ldsm_b_addr[K_STEPS][NAMED];
#pragma unroll
  for (int k_step = 0; k_step < K_STEPS; ++k_step) {
    ldsm_a_addr[k_step] =
        shared_address(smem) + swizzle_128b(warp_row + ldsm_a(lane).row, k_step * 2 + ldsm_a(lane).col);
    keep_in_register(ldsm_a_addr[k_step]);
#pragma unroll
    for (int j = 0; j < NAMED; ++j) {
      const int column = warp_col + named_column(j * 16 + ldsm_b(lane).row, SIZE);
      ldsm_b_addr[k_step][j] =
          shared_address(smem) + BM * BK_BYTES + swizzle_128b(column, k_step * 2 + ldsm_b(lane).col);
      keep_in_register(ldsm_b_addr[k_step][j]);
    }
  }
  uint32_t rA[2][WM / 16][4];  // [k step % 2][16 rows][words of this lane: mma_a]
  uint32_t rB[2][WN / 16][4];  // [k step % 2][16 columns][words of this lane: mma_b of the first 8, then of the others]
  const auto load_fragments = [&](uint32_t stage_bytes, int k_step) {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
      ldmatrix_x4(rA[k_step % 2][i], ldsm_a_addr[k_step] + stage_bytes + i * 16 * BK_BYTES);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j)
      ldmatrix_x4(rB[k_step % 2][j], ldsm_b_addr[k_step][j % NAMED] + stage_bytes + j / NAMED * NAMED * 16 * BK_BYTES);
  };

  for (int stage = 0; stage < STAGES - 1; ++stage) copy();
  mbarrier_wait_parity(full, 0);
  load_fragments(0, 0);

  // [main-loop]
  // 3. main loop: gmem -TMA-> smem[copy stage]     smem[read stage] -ldmatrix-> registers -mma-> acc
  // Consumes the read stage, and moves on to the next. After the last k tile its own first fragments are loaded again, and never used.
  PipelineState read_state;
  uint32_t read_stage_bytes = 0;
  const auto multiply_k_tile = [&](bool last, float(&acc)[WM / 16][WN / 8][4]) {
    PipelineState next_state = read_state;
    if (!last) ++next_state;
    uint32_t next_stage_bytes = next_state.index * Tile::STAGE_BYTES;
    keep_in_register(next_stage_bytes);  // else multiplied again for every address
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      if (k_step == K_STEPS - 1) {                                            // the next stage is needed
        mbarrier_wait_parity(full + next_state.index * 8, next_state.phase);  // it has landed
        __syncthreads();                                                      // everyone is done with this stage
      }
      load_fragments(k_step == K_STEPS - 1 ? next_stage_bytes : read_stage_bytes, (k_step + 1) % K_STEPS);
      if (k_step == 2) copy();  // into the stage that everyone was done with at the last barrier
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {
          const uint32_t b[2] = {rB[k_step % 2][j / 2][j % 2 * 2], rB[k_step % 2][j / 2][j % 2 * 2 + 1]};
          Operand<type>::mma(acc[i][j], rA[k_step % 2][i], b);
        }
    }
    read_state = next_state, read_stage_bytes = next_stage_bytes;
  };
  // [/main-loop]

  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == min(k_tiles, STAGES - 1)) prefetch_c(c_tile);
      multiply_k_tile(k_tiles_left == 1 && c_tile + gridDim.x >= c_tiles, acc);
    }

    // [epilogue]
    // 4. epilogue: of every 16 rows a lane holds VECTORS vectors of SIZE neighbouring results, alternately in rows g and g + 8
    constexpr int VECTORS = 2 * WN / (4 * SIZE), TOGETHER = 16 / SIZE;  // loads of C in flight together
    const auto [tile_row, tile_col] = raster(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int first_row = tile_row * BM + warp_row + mma_c(lane, 0).row;
    const int first_col = tile_col * BN + warp_col + lane % 4 * SIZE;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
      for (int bit = 1; bit < SIZE / 2; bit *= 2)  // back into the order of C
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r)
            if ((j & bit) == 0) exchange_if(pair_xor(lane % 4, SIZE) & bit, acc[i][j][r], acc[i][j + bit][r]);
      const auto row = [&](int v) { return first_row + i * 16 + v % 2 * 8; };
      const auto col = [&](int v) { return first_col + v / 2 * 4 * SIZE; };
      const auto gC = [&](int v) { return C + static_cast<size_t>(row(v)) * ldc + col(v); };
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

// [tensor-map]
/// Describes `rows` rows of `columns` elements T, `ld` elements apart, to TMA, in boxes of `box_rows` rows of 128 bytes.
template <class T>
CUtensorMap tensor_map(const void* matrix, int rows, int columns, int ld, int box_rows) {
  static const auto encode = [] {  // a function of the driver, which programs of the runtime do not link
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) cuda_check(cudaErrorSymbolNotFound);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  constexpr cuuint64_t BYTES = sizeof(T);
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {ld * BYTES};
  const cuuint32_t box[] = {Tile::BK_BYTES / BYTES, static_cast<cuuint32_t>(box_rows)}, every[] = {1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, BYTES == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
             const_cast<void*>(matrix), size, row_bytes, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) cuda_check(cudaErrorInvalidValue);
  return map;
}
// [/tensor-map]

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const auto kernel = gemm<type, TC>;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, tensor_map<T>(p.a, p.m, p.k, p.lda, Tile::BM),
        tensor_map<T>(p.b, p.n, p.k, p.ldb, Tile::BN), p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "21",
    .name = "tma",
    .idea = "TMA: one thread issues bulk tensor copies of whole tiles, mbarriers count the bytes",
    .predecessor = "16",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_90a",
    .instruction = MathInstruction::mma_sync,
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
    .constants = {{"Tile", {{"BM", Tile::BM}, {"BN", Tile::BN}, {"BK_BYTES", Tile::BK_BYTES}}}},
}};

}  // namespace
