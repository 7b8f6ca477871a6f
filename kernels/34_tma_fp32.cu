// 34_tma_fp32 · TMA feeds the CUDA cores
//
// Idea              In 08 the warps that multiply also load: global loads, shared stores, addresses and a barrier for every 1024 FMAs
//                   of a thread. Here TMA copies A and B, and a producer warp issues the copies (21b). A thread multiplies columns
//                   of A, but TMA copies rows: the eight consumer warps transpose each tile in shared memory, and meet there.
// Changed from 08   A and B by TMA into three stages; a producer warp; a tile has 32 k steps, so there is one barrier per 4096 FMAs of
//                   a thread; shared to shared transposition, 4 x 4 elements per thread; basic blocks of 8 k steps;
//                   from common/hopper: tensor_map(), PipelineState
// Expect            1.01 times 08: 4367 instructions per 4096 FMAs where 08 has 4436. While a tile is transposed, no warp multiplies:
//                   that takes about as long as 08's barriers
// Limiter now       issue slots; the transposition, in which the FMA pipe idles; the last wave
// New instructions  none
// Limits            sm_90a; f32; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 34 4096 4096 4096
// Read              docs/34_tma_fp32.md
#include "common/hopper/pipeline.h"
#include "common/hopper/tensor_map.h"
#include "common/layout.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/setmaxnreg.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/shared_memory.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;    // rows of C per block
  static constexpr int BN = 256;    // columns of C per block
  static constexpr int BK = 32;     // elements along k per tile: between two waits of a consumer
  static constexpr int WM = 64;     // rows of C per consumer warp
  static constexpr int WN = 64;     // columns of C per consumer warp
  static constexpr int STAGES = 3;  // k tiles in shared memory

  static constexpr int TM = 16;                        // rows of C per thread
  static constexpr int TN = 8;                         // columns of C per thread
  static constexpr int UNROLL = TUNABLE(UNROLL, 8);    // k steps per basic block, for the instruction cache
  static constexpr int PRODUCERS = 128;                // threads: a warpgroup, of which one thread issues copies
  static constexpr int CONSUMERS = BM / TM * BN / TN;  // threads that multiply
  static constexpr int THREADS = PRODUCERS + CONSUMERS;
  static constexpr int LANE_ROWS = WM / TM;  // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;  // lanes across it
  static constexpr int A_BYTES = STAGES * BK * BM * 4, B_BYTES = STAGES * BK * BN * 4;
  static constexpr int ROWS_BYTES = BM * BK * 4;                                     // a tile of A as it lies in memory
  static constexpr int SMEM_BYTES = A_BYTES + B_BYTES + STAGES * (ROWS_BYTES + 16);  // and two mbarriers per stage
  static_assert(BM * BK == CONSUMERS * 16, "each thread transposes 4 x 4 elements of A");
  static_assert(BK == 32 && BK % UNROLL == 0, "TMA swizzles rows of 128 bytes; whole unrolled blocks");
  static_assert(STAGES >= 3, "with fewer, tile t + 2 would wait until the slowest warp has multiplied tile t");
};

/// Four floats with one 16-byte instruction; `p` is a multiple of 16 bytes.
__device__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const __grid_constant__ CUtensorMap map_a,
          const __grid_constant__ CUtensorMap map_b, float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS, STAGES = Tile::STAGES, UNROLL = Tile::UNROLL;
  extern __shared__ __align__(1024) unsigned char smem[];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;

  // 2. set up. sA[STAGES * BK][BM] and sB[STAGES * BK][BN], rings along k; sRows[STAGES][BM][BK], A as it lies in memory
  const uint32_t sA = shared_address(smem), sB = sA + Tile::A_BYTES;
  const uint32_t sRows = sB + Tile::B_BYTES;
  const uint32_t full = sRows + STAGES * Tile::ROWS_BYTES,
                 empty = full + STAGES * 8;  // mbarriers: the stage has landed; it has been read
  if (warp == 0 && elect_sync()) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full + stage * 8, 1);
      mbarrier_init(empty + stage * 8, Tile::CONSUMERS);
    }
    fence_mbarrier_init();
    prefetch_tensormap(map_a), prefetch_tensormap(map_b);
  }
  __syncthreads();

  PipelineState<STAGES> state;  // of the next k tile

  // [producer]
  if (warp < Tile::PRODUCERS / 32) {
    setmaxnreg_dec<40>();
    if (warp == 0 && elect_sync()) {
#pragma unroll 1
      for (int k_offset = 0; k_offset < K; k_offset += BK) {
        mbarrier_sleep_parity(empty + state.index * 8, state.phase ^ 1);  // the phase before: at first there is none
        mbarrier_arrive_expect_tx(full + state.index * 8, Tile::ROWS_BYTES + BK * BN * 4);
        cp_async_bulk_tensor_2d(sRows + state.index * Tile::ROWS_BYTES, map_a, k_offset, block_row,
                                full + state.index * 8);
        cp_async_bulk_tensor_2d(sB + state.index * BK * BN * 4, map_b, block_col, k_offset, full + state.index * 8);
        ++state;
      }
    }
    return;
  }
  // [/producer]
  setmaxnreg_inc<232>();
  const auto [warp_row, warp_col] = row_major(warp - Tile::PRODUCERS / 32, BN / WN);
  const auto [lane_col, lane_row] = row_major(lane, LANE_ROWS);
  const int row = warp_row * WM + lane_row * 4, col = warp_col * WN + lane_col * 4;  // my first result in the tile of C
  uint32_t a_addr = sA + row * 4;                                                    // in the first of UNROLL k steps
  uint32_t b_addr = sB + col * 4;                                                    // likewise

  // [transpose]
  // TMA loads A row-major. Each thread moves a block of 4 x 4 elements of a tile: four rows, and one of the rows' 8 chunks of 16 bytes.
  // TMA has swizzled the chunks. Neighbouring lanes take different chunks of different rows, so that neither their loads nor their
  // stores have bank conflicts.
  const int a_row = (warp - 4) / 2 * 32 + lane % 8 * 4, chunk = (lane % 8 / 2 ^ lane / 8) + warp % 2 * 4;
  const uint32_t from = sRows + swizzle_128b(a_row, chunk), to = sA + (chunk * 4 * BM + a_row) * 4;
  const auto consumer_wait = [&] {
    mbarrier_wait_parity(full + state.index * 8, state.phase);
    float a[4][4];  // [row][column]
#pragma unroll
    for (int i = 0; i < 4; ++i) load4_shared(a[i], (from ^ i * 16) + i * 128 + state.index * Tile::ROWS_BYTES);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      store4_shared(to + (state.index * BK + k) * BM * 4, {a[0][k], a[1][k], a[2][k], a[3][k]});
    bar_sync(1, Tile::CONSUMERS);  // the whole tile is transposed
  };
  // [/transpose]

  // [fragments]
  float rA[2][TM], rB[2][TN];  // [k % 2][row or column]: fragments of this k step and of the next
  const auto load_fragments = [&](int buffer, int k) {
#pragma unroll
    for (int i = TM - 4; i >= 0; i -= 4) load4_shared(&rA[buffer][i], a_addr + (k * BM + spread(0, i, LANE_ROWS)) * 4);
#pragma unroll
    for (int j = TN - 4; j >= 0; j -= 4) load4_shared(&rB[buffer][j], b_addr + (k * BN + spread(0, j, LANE_COLS)) * 4);
  };
  // [/fragments]
  consumer_wait();
  load_fragments(0, 0);
  float acc[TM][TN] = {};

  // [main-loop]
  // 3. main loop: A -TMA-> sRows -consumers-> sA     B -TMA-> sB     sA, sB -loads-> rA, rB -> acc
#pragma unroll 1
  for (int k_tiles_left = ceil_div(K, BK); k_tiles_left > 0; --k_tiles_left) {
    // The last k step of this tile loads fragments of the next. After the last one, it loads its own first ones again.
    const int this_stage = state.index;
    if (k_tiles_left > 1) {
      ++state;
      consumer_wait();
    }
    // k steps from the last UNROLL ones to the next tile.
    const int next_tile = (state.index - this_stage) * BK - (BK - UNROLL);
#pragma unroll 1
    for (int k_left = BK; k_left > 0; k_left -= UNROLL) {
      const int step = k_left > UNROLL ? UNROLL : next_tile;
#pragma unroll
      for (int k = 0; k < UNROLL; ++k) {
        if (k == UNROLL - 1) a_addr += step * BM * 4, b_addr += step * BN * 4;
        load_fragments((k + 1) % 2, (k + 1) % UNROLL);
#pragma unroll
        for (int i = TM - 1; i >= 0; --i) {
#pragma unroll
          for (int j = 0; j < TN; ++j) {
            const int j_serpentine =
                i % 2 ? j : TN - 1 - j;  // consecutive FFMAs share an operand: fewer register reads
            acc[i][j_serpentine] += rA[k % 2][i] * rB[k % 2][j_serpentine];
          }
        }
      }
    }
    mbarrier_arrive(empty + this_stage * 8);
  }
  // [/main-loop]

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = block_row + warp_row * WM + spread(lane_row, i, LANE_ROWS);
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int n = block_col + warp_col * WN + spread(lane_col, j, LANE_COLS);
      float* gC = C + static_cast<size_t>(m) * ldc + n;
      float4 c = {};
      if (beta != 0.0F && n < N) c = load4(gC);  // beta = 0 must not read C: it may hold NaN
      const float4 d = {alpha * acc[i][j] + beta * c.x, alpha * acc[i][j + 1] + beta * c.y,
                        alpha * acc[i][j + 2] + beta * c.z, alpha * acc[i][j + 3] + beta * c.w};
      if (n + 4 <= N) {
        store4(gC, d);
      } else {  // the padding of C must stay as it is
        if (n < N) gC[0] = d.x;
        if (n + 1 < N) gC[1] = d.y;
        if (n + 2 < N) gC[2] = d.z;
      }
    }
  }
}

void launch(const Problem& p) {
  cuda_check(cudaFuncSetAttribute(sgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
      p.m, p.n, p.k, p.alpha, tensor_map<float>(p.a, p.m, p.k, p.lda, {Tile::BM}),
      tensor_map<float>(p.b, p.k, p.n, p.ldb, {Tile::BK, Tile::BN * 4}), p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "34",
    .name = "tma_fp32",
    .idea = "TMA feeds the CUDA cores; eight warps transpose A in shared memory and multiply",
    .predecessor = "08",
    .types = {Type::f32},
    .arch = "sm_90a",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS, Tile::SMEM_BYTES, {Tile::BM, Tile::BN, Tile::BK}};
        },
    .launch = launch,
}};

}  // namespace
