// 10_mma_ptx · the tensor cores' own instruction, and who holds which element
//
// Idea              mma.sync takes its operands from registers whose meaning is documented: lane 4 g + t holds row g,
//                   word t of an 8 x 4-word matrix. So a warp reads its fragments itself, from wherever they lie, and
//                   keeps its 64 x 64 results in registers over the whole of K.
// Changed from 09b  fragments are loaded by index (common/layout.h: mma_a, mma_b, mma_c), not by load_matrix_sync; one
//                   kernel text for all types, which counts bytes: 32 along k an mma, 128 along k a tile
// Expect            the traffic of 09b, with four instructions in ten fewer for BF16 and TF32: a little faster; FP16, for
//                   which the library loads better, as fast
// Limiter now       wavefronts of shared memory and L1, and copies that pass through registers while nobody multiplies
// New instructions  mma.sync.m16n8k16 (BF16, FP16), mma.sync.m16n8k8 (TF32), cvt.rna.tf32.f32
// Limits            tf32 (rounded to nearest), bf16, f16; sm_80; any M, N, K; rows a multiple of 16 bytes
// Run               ./run_all.sh run 10 4096 4096 4096 --type bf16
// Read              docs/10_mma_ptx.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C a block
  static constexpr int BN = 128;          // columns of C a block
  static constexpr int WM = 64;           // rows of C a warp
  static constexpr int WN = 64;           // columns of C a warp
  static constexpr int ROW = 128;         // bytes along k held at a time: 64 elements of 16 bits, 32 of TF32
  static constexpr int PITCH = ROW + 16;  // bytes from row to row: the skew sends 8 rows to different banks
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int ROWS = THREADS / (ROW / 16);  // rows of A or B that the block loads at once, 16 bytes a thread
  static constexpr int SMEM_BYTES = (BM + BN) * PITCH;
};

__device__ uint4 load16(const unsigned char* p) { return *reinterpret_cast<const uint4*>(p); }

/// 16 bytes of a row, of which `left` are still inside it: zeros for what is not. Reads nothing where left < 1.
__device__ uint4 load16(const unsigned char* row, int left) {
  if (left < 1) return {};
  const uint4 v = load16(row);
  const auto inside = [&](uint32_t word, int i) { return left >= i + 4 ? word : left > i ? word & 0xffff : 0; };
  return {inside(v.x, 0), inside(v.y, 4), inside(v.z, 8), inside(v.w, 12)};
}

/// TF32 is rounded on its way: the tensor cores would cut off the lowest 13 bits.
template <Type type>
__device__ void store16(unsigned char* to, uint4 v) {
  if constexpr (type == Type::tf32)
    v = {cvt_rna_tf32_f32(v.x), cvt_rna_tf32_f32(v.y), cvt_rna_tf32_f32(v.z), cvt_rna_tf32_f32(v.w)};
  *reinterpret_cast<uint4*>(to) = v;
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks an SM: one computes while the other loads
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, ROW = Tile::ROW, ROWS = Tile::ROWS;
  extern __shared__ __align__(16) unsigned char smem[];
  unsigned char *const sA = smem, *const sB = smem + BM * Tile::PITCH;

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, ROW / 16);          // my first 16 bytes of a tile

  // 2. set up. Past the last row or column, read the last one instead: nothing of it is stored. k_tile is in bytes; the
  // last one, which may be ragged, comes first.
  int k_tile = (K * static_cast<int>(sizeof(T)) - 1) / ROW * ROW;
  const unsigned char *gA[BM / ROWS], *gB[BN / ROWS];
#pragma unroll
  for (int i = 0; i < BM / ROWS; ++i)
    gA[i] = reinterpret_cast<const unsigned char*>(
                A + static_cast<size_t>(min(block_row + copy_row + i * ROWS, M - 1)) * lda) +
            k_tile + copy_chunk * 16;
#pragma unroll
  for (int i = 0; i < BN / ROWS; ++i)
    gB[i] = reinterpret_cast<const unsigned char*>(
                B + static_cast<size_t>(min(block_col + copy_row + i * ROWS, N - 1)) * ldb) +
            k_tile + copy_chunk * 16;
  float acc[WM / 16][WN / 8][4] = {};

  // [main-loop]
  // 3. main loop
  for (; k_tile >= 0; k_tile -= ROW) {
    uint4 nextA[BM / ROWS], nextB[BN / ROWS];
    if (k_tile + ROW <= K * static_cast<int>(sizeof(T))) {
#pragma unroll
      for (int i = 0; i < BM / ROWS; ++i) nextA[i] = load16(gA[i]);
#pragma unroll
      for (int i = 0; i < BN / ROWS; ++i) nextB[i] = load16(gB[i]);
    } else {  // ragged: zero past K, for beyond it may lie NaN
      const int left = K * static_cast<int>(sizeof(T)) - k_tile - copy_chunk * 16;
#pragma unroll
      for (int i = 0; i < BM / ROWS; ++i) nextA[i] = load16(gA[i], left);
#pragma unroll
      for (int i = 0; i < BN / ROWS; ++i) nextB[i] = load16(gB[i], left);
    }
#pragma unroll
    for (int i = 0; i < BM / ROWS; ++i) {
      store16<type>(&sA[(copy_row + i * ROWS) * Tile::PITCH + copy_chunk * 16], nextA[i]);
      gA[i] -= ROW;
    }
#pragma unroll
    for (int i = 0; i < BN / ROWS; ++i) {
      store16<type>(&sB[(copy_row + i * ROWS) * Tile::PITCH + copy_chunk * 16], nextB[i]);
      gB[i] -= ROW;
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < ROW; k += 32) {  // bytes
      uint32_t rA[WM / 16][4], rB[WN / 8][2];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const auto [row, word] = mma_a(lane, r);
          rA[i][r] = *reinterpret_cast<const uint32_t*>(&sA[(warp_row + i * 16 + row) * Tile::PITCH + k + word * 4]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const auto [col, word] = mma_b(lane, r);
          rB[j][r] = *reinterpret_cast<const uint32_t*>(&sB[(warp_col + j * 8 + col) * Tile::PITCH + k + word * 4]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) Operand<type>::mma(acc[i][j], rA[i], rB[j]);
    }
    __syncthreads();
  }
  // [/main-loop]

  // 4. epilogue: a pair of neighbouring elements in each of rows g and g + 8 of every 16 x 8 results
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; r += 2) {
      const auto [row, col] = mma_c(lane, r);
      const int m = block_row + warp_row + i * 16 + row;
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < WN / 8; ++j) {
        const int n = block_col + warp_col + j * 8 + col;
        TC* const gC = C + static_cast<size_t>(m) * ldc + n;
        float d[2] = {alpha * acc[i][j][r], alpha * acc[i][j][r + 1]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          if (n < N) d[0] += beta * to_float(gC[0]);
          if (n + 1 < N) d[1] += beta * to_float(gC[1]);
        }
        if (n + 2 <= N)
          store2(gC, d);
        else if (n < N)
          *gC = from_float<TC>(d[0]);  // the padding of C is not ours to write
      }
    }
  }
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
    .unit = Unit::mma_sync,
    .layout_b = LayoutB::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_before_mma,
    .resources =
        [](const Problem& p) {
          return for_types(p, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::ROW / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
