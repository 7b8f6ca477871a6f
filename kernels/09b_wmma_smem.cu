// 09b_wmma_smem · the same fragments from tiles in shared memory
//
// Idea              what several warps need is fetched once, into shared memory, and a warp makes 64 x 64 of C rather
//                   than 16 x 16: each fragment of A is multiplied by four of B, each of B by four of A.
// Changed from 09   128 x 128 tiles of A and B, 128 bytes deep, staged in 16-byte pieces with zeros past K, so nothing
//                   but the epilogue knows an edge; a skew of 16 bytes a row; C leaves by way of shared memory
// Expect            one load for each HMMA rather than four, without conflicts rather than from 8 lines: one wavefront
//                   where 09 has 32, two with the copies. 16 times as fast by that count, ten with the waiting
// Limiter now       shared memory and L1: 256 wavefronts a warp and k tile, a third more clocks than its 128 HMMA take;
//                   and nobody multiplies while the block waits for global memory
// New instructions  none in PTX; ptxas makes LDSM (ldmatrix) of FP16's wmma.load from shared memory, not of the others'
// Limits            tf32 (rounded to nearest), bf16, f16; sm_80; any M, N, K; rows a multiple of 16 bytes
// Run               ./run_all.sh run 09b 4096 4096 4096 --type bf16
// Read              docs/09_wmma.md
#include <mma.h>

#include <type_traits>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/rung.h"

using namespace ladder;
namespace wmma = nvcuda::wmma;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C a block
  static constexpr int BN = 128;          // columns of C a block
  static constexpr int WM = 64;           // rows of C a warp
  static constexpr int WN = 64;           // columns of C a warp, two a lane on their way out
  static constexpr int ROW = 128;         // bytes along k held at a time: 64 elements of 16 bits, 32 of TF32
  static constexpr int PITCH = ROW + 16;  // bytes from row to row: the skew sends 8 rows to different banks
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int ROWS = THREADS / (ROW / 16);  // rows of A or B that the block loads at once, 16 bytes a thread
  static constexpr int C_PITCH = WN + 8;  // floats from row to row of C on its way out: 8-byte stores without conflicts
  static constexpr int SMEM_BYTES = (BM + BN) * PITCH;
  static_assert(SMEM_BYTES >= THREADS / 32 * 16 * C_PITCH * 4, "16 rows of C of each warp lie where A and B were");
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
  using Multiplied = std::conditional_t<type == Type::tf32, wmma::precision::tf32, T>;
  constexpr int WK = 32 / sizeof(T);  // elements along k an mma
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, ROW = Tile::ROW, ROWS = Tile::ROWS;
  extern __shared__ __align__(32) unsigned char smem[];  // load_matrix_sync wants 32-byte alignment
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
  wmma::fragment<wmma::accumulator, 16, 16, WK, float> acc[WM / 16][WN / 16];
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(acc[i][j], 0.0F);

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
      wmma::fragment<wmma::matrix_a, 16, 16, WK, Multiplied, wmma::row_major> rA[WM / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, WK, Multiplied, wmma::col_major> rB[WN / 16];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
        wmma::load_matrix_sync(rA[i], reinterpret_cast<const T*>(&sA[(warp_row + i * 16) * Tile::PITCH + k]),
                               Tile::PITCH / sizeof(T));
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
        wmma::load_matrix_sync(rB[j], reinterpret_cast<const T*>(&sB[(warp_col + j * 16) * Tile::PITCH + k]),
                               Tile::PITCH / sizeof(T));
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) wmma::mma_sync(acc[i][j], rA[i], rB[j], acc[i][j]);
    }
    __syncthreads();
  }
  // [/main-loop]

  // [epilogue]
  // 4. epilogue. Who holds which element is not told, so 16 rows at a time pass through shared memory, of which each warp
  // takes a part of its own; then a lane has two neighbours of every row.
  float* const sC = reinterpret_cast<float*>(smem) + warp * 16 * Tile::C_PITCH;
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
    for (int j = 0; j < WN / 16; ++j)
      wmma::store_matrix_sync(&sC[j * 16], acc[i][j], Tile::C_PITCH, wmma::mem_row_major);
    __syncwarp();
    for (int row = 0; row < 16; ++row) {
      const int m = block_row + warp_row + i * 16 + row;
      if (m >= M) break;
      const int n = block_col + warp_col + lane * 2;
      TC* const gC = C + static_cast<size_t>(m) * ldc + n;
      const auto [left, right] = *reinterpret_cast<const float2*>(&sC[row * Tile::C_PITCH + lane * 2]);
      float d[2] = {alpha * left, alpha * right};
      if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
        if (n < N) d[0] += beta * to_float(gC[0]);
        if (n + 1 < N) d[1] += beta * to_float(gC[1]);
      }
      if (n + 2 <= N)
        store2(gC, d);
      else if (n < N)
        *gC = from_float<TC>(d[0]);  // the padding of C is not ours to write
    }
    __syncwarp();
  }
  // [/epilogue]
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
    .number = "09b",
    .name = "wmma_smem",
    .idea = "the same fragments from tiles in shared memory, with a skew",
    .predecessor = "09",
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
