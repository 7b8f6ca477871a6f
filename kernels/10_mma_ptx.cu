// 10_mma_ptx · the tensor cores' own instruction, and which lane holds which element
//
// Idea              mma.sync takes its operands from registers whose meaning is documented: lane 4 g + t holds row g,
//                   word t of an 8 x 4-word matrix. So a warp can load its fragments itself, from any layout, and keep
//                   its 64 x 64 results in registers for the whole of K.
// Changed from 09b  fragments are loaded by index (common/layout.h: mma_a, mma_b, mma_c), not by load_matrix_sync; one
//                   kernel text for all types, which counts bytes: 32 along k per mma, 128 along k per tile
// Expect            1.0 times 09b: the same wavefronts. BF16 and TF32 need four instructions in ten fewer, so they gain
//                   a little; FP16, whose fragments the library loads with LDSM, does not
// Limiter now       wavefronts of shared memory and L1, and copies that pass through registers while no warp multiplies
// New instructions  mma.sync.m16n8k16 (BF16, FP16), mma.sync.m16n8k8 (TF32, and FP16 before sm_80), cvt.rna.tf32.f32
// Limits            tf32 (rounded to nearest), bf16, f16; sm_75 for f16, sm_80 for the others; any M, N, K; rows a
//                   multiple of 16 bytes
// Run               ./run_all.sh run 10 4096 4096 4096 --type bf16
// Read              docs/10_mma_ptx.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = 64;           // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma
  static constexpr int PITCH_BYTES = BK_BYTES + SKEW_BYTES;  // from row to row: 8 rows begin in different banks
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int SMEM_BYTES = (BM + BN) * PITCH_BYTES;
};

__device__ uint4 load16(const unsigned char* p) { return *reinterpret_cast<const uint4*>(p); }

/// 16 bytes of a row of which `bytes_left` are inside the matrix, zeros past them. Reads nothing where bytes_left < 1.
__device__ uint4 load16(const unsigned char* row, int bytes_left) {
  if (bytes_left < 1) return {};
  const uint4 v = load16(row);
  const auto inside = [&](uint32_t word, int i) {
    return bytes_left >= i + 4 ? word : bytes_left > i ? word & 0xffff : 0;
  };
  return {inside(v.x, 0), inside(v.y, 4), inside(v.z, 8), inside(v.w, 12)};
}

/// Stores 16 bytes. TF32 is rounded: the tensor cores would cut off the lowest 13 bits.
template <Type type>
__device__ void store16(unsigned char* to, uint4 v) {
  if constexpr (type == Type::tf32)
    v = {cvt_rna_tf32_f32(v.x), cvt_rna_tf32_f32(v.y), cvt_rna_tf32_f32(v.z), cvt_rna_tf32_f32(v.w)};
  *reinterpret_cast<uint4*>(to) = v;
}

/// Stores a warp's tile of C, whose first element is C[row][col]. Of every 16 x 8 results a lane has a pair of neighbours in
/// row g and one in row g + 8.
template <class TC>
__device__ void store_results(const float (&acc)[Tile::WM / 16][Tile::WN / 8][4], int row, int col, int M, int N,
                              float alpha, float beta, TC* C, int ldc) {
#pragma unroll
  for (int i = 0; i < Tile::WM / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; r += 2) {
      const auto [pair_row, pair_col] = mma_c(threadIdx.x % 32, r);
      const int m = row + i * 16 + pair_row;
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < Tile::WN / 8; ++j) {
        const int n = col + j * 8 + pair_col;
        TC* const gC = C + static_cast<size_t>(m) * ldc + n;
        float d[2] = {alpha * acc[i][j][r], alpha * acc[i][j][r + 1]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          if (n < N) d[0] += beta * to_float(gC[0]);
          if (n + 1 < N) d[1] += beta * to_float(gC[1]);
        }
        if (n + 2 <= N)
          store2(gC, d);
        else if (n < N)
          *gC = from_float<TC>(d[0]);  // the padding of C must stay as it is
      }
    }
  }
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks per SM: one computes while the other loads
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int COPY_ROWS = Tile::COPY_ROWS, COPIES = (BM + BN) / COPY_ROWS, PITCH_BYTES = Tile::PITCH_BYTES,
                MMA_K_BYTES = Tile::MMA_K_BYTES, K_STEPS = Tile::K_STEPS;
  extern __shared__ __align__(16) unsigned char smem[];
  unsigned char *const sA = smem, *const sB = smem + BM * PITCH_BYTES;

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile

  // 2. set up. Past the last row or column, read the last one: its results are not stored. The tile
  // at the end of K comes first; it may be a residue tile.
  const int k_bytes = K * static_cast<int>(sizeof(T));
  int k_offset_bytes = (k_bytes - 1) / BK_BYTES * BK_BYTES;
  const unsigned char* ldg_src[COPIES];  // what this thread loads next: rows of A, then columns of B
#pragma unroll
  for (int i = 0; i < COPIES; ++i) {
    const T* const start = i < BM / COPY_ROWS
                               ? A + static_cast<size_t>(min(block_row + copy_row + i * COPY_ROWS, M - 1)) * lda
                               : B + static_cast<size_t>(min(block_col + copy_row + i * COPY_ROWS - BM, N - 1)) * ldb;
    ldg_src[i] = reinterpret_cast<const unsigned char*>(start) + k_offset_bytes + copy_chunk * 16;
  }
  float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]

  // [main-loop]
  // 3. main loop
  for (; k_offset_bytes >= 0; k_offset_bytes -= BK_BYTES) {
    uint4 next[COPIES];
    if (k_offset_bytes + BK_BYTES <= k_bytes) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) next[i] = load16(ldg_src[i]);
    } else {  // the residue tile: zeros past K, where there may be NaN
      const int bytes_left = k_bytes - k_offset_bytes - copy_chunk * 16;
#pragma unroll
      for (int i = 0; i < BM / COPY_ROWS; ++i) next[i] = load16(ldg_src[i], bytes_left);
#pragma unroll
      for (int i = BM / COPY_ROWS; i < COPIES; ++i) next[i] = load16(ldg_src[i], bytes_left);
    }
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      store16<type>(&smem[pitch_linear(copy_row + i * COPY_ROWS, copy_chunk * 16, PITCH_BYTES)], next[i]);
      ldg_src[i] -= BK_BYTES;
    }
    __syncthreads();  // the tile is complete

#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      uint32_t rA[WM / 16][4];  // [16 rows][words of this lane: mma_a]
      uint32_t rB[WN / 8][2];   // [8 columns][words of this lane: mma_b]
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const auto [row, word] = mma_a(lane, r);
          rA[i][r] = *reinterpret_cast<const uint32_t*>(
              &sA[pitch_linear(warp_row + i * 16 + row, k_step * MMA_K_BYTES + word * 4, PITCH_BYTES)]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const auto [col, word] = mma_b(lane, r);
          rB[j][r] = *reinterpret_cast<const uint32_t*>(
              &sB[pitch_linear(warp_col + j * 8 + col, k_step * MMA_K_BYTES + word * 4, PITCH_BYTES)]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) Operand<type>::mma(acc[i][j], rA[i], rB[j]);
    }
    __syncthreads();  // everyone has read the tile
  }
  // [/main-loop]

  // 4. epilogue
  store_results(acc, block_row + warp_row, block_col + warp_col, M, N, alpha, beta, C, ldc);
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    gemm<type, TC><<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda,
                                                                          p.B<T>(), p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "10",
    .name = "mma_ptx",
    .idea = "the tensor cores' own instruction; fragments by index, C in registers",
    .predecessor = "09b",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_75",
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
}};

}  // namespace
