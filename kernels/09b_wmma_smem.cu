// 09b_wmma_smem · larger tiles per warp, and a skew against bank conflicts
//
// Idea              A warp computes 64 x 64 of C rather than 16 x 16: each fragment of A is multiplied by four of B, each
//                   of B by four of A. 16 unused bytes after each row let 8 rows begin in different banks.
// Changed from 09a  128 x 128 tiles, and four warps; the skew; a warp's C goes to global memory through shared memory, 16
//                   rows at a time
// Expect            at most 17 times 09a: one load per HMMA rather than four, and one wavefront per load rather than 8.
//                   With the copies that is 2 wavefronts per HMMA where 09a has 34. The waiting is not counted
// Limiter now       waiting: two warps per scheduler do not fill the time after each instruction and the wait for
//                   global memory. Shared memory and L1 are busy for half of the time
// New instructions  none in PTX; ptxas turns FP16's wmma.load from shared memory into LDSM (ldmatrix), no other type's
// Limits            tf32 (rounded to nearest), bf16, f16; sm_75 for f16, sm_80 for the others; any M, N, K; rows a
//                   multiple of 16 bytes
// Run               ./run_all.sh run 09b 4096 4096 4096 --type bf16
// Read              docs/09b_wmma_smem.md
#include <type_traits>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/rung.h"
#include "common/wmma.h"

using namespace ladder;
namespace wmma = nvcuda::wmma;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = 64;           // columns of C per warp; in the epilogue two per lane
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma: 16 elements of 16 bits, 8 of TF32
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int PITCH_BYTES = BK_BYTES + SKEW_BYTES;    // from row to row: 8 rows begin in different banks
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int C_PITCH = WN + 8;  // floats from one row of sC to the next: 8-byte accesses without conflicts
  static constexpr int SMEM_BYTES = (BM + BN) * PITCH_BYTES;
  static_assert(SMEM_BYTES >= THREADS / 32 * 16 * C_PITCH * 4, "16 rows of C of each warp lie where A and B were");
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

/// Stores a warp's tile of C, whose first element is C[row][col]. The library does not say which lane holds which element. So
/// a warp passes 16 rows at a time through its own part of shared memory, sC; then a lane has two neighbouring elements of
/// every row.
template <class Accumulator, class TC>
__device__ void store_results(const Accumulator (&acc)[Tile::WM / 16][Tile::WN / 16], float* sC, int row, int col,
                              int M, int N, float alpha, float beta, TC* C, int ldc) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < Tile::WM / 16; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::WN / 16; ++j)
      wmma::store_matrix_sync(&sC[j * 16], acc[i][j], Tile::C_PITCH, wmma::mem_row_major);
    __syncwarp();
    for (int r = 0; r < 16; ++r) {
      const int m = row + i * 16 + r;
      if (m >= M) break;
      const int n = col + lane * 2;
      TC* const gC = C + static_cast<size_t>(m) * ldc + n;
      const auto [left, right] = *reinterpret_cast<const float2*>(&sC[r * Tile::C_PITCH + lane * 2]);
      float d[2] = {alpha * left, alpha * right};
      if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
        if (n < N) d[0] += beta * to_float(gC[0]);
        if (n + 1 < N) d[1] += beta * to_float(gC[1]);
      }
      if (n + 2 <= N)
        store2(gC, d);
      else if (n < N)
        *gC = from_float<TC>(d[0]);  // the padding of C must stay as it is
    }
    __syncwarp();
  }
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks per SM: one computes while the other loads
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  using Multiplied = std::conditional_t<type == Type::tf32, wmma::precision::tf32, T>;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, WK = Tile::MMA_K_BYTES / sizeof(T);
  constexpr int BK_BYTES = Tile::BK_BYTES, COPY_ROWS = Tile::COPY_ROWS, COPIES = (BM + BN) / COPY_ROWS,
                PITCH_BYTES = Tile::PITCH_BYTES;
  extern __shared__ __align__(32) unsigned char smem[];  // load_matrix_sync needs 32-byte alignment
  unsigned char *const sA = smem, *const sB = smem + BM * PITCH_BYTES;

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32;
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
  wmma::fragment<wmma::accumulator, 16, 16, WK, float> acc[WM / 16][WN / 16];  // [16 rows][16 columns]
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(acc[i][j], 0.0F);

  // [multiply]
  // Adds the products of my warp's rows of the tile at sA and its columns of the tile at sB.
  const auto multiply_k_tile = [&] {
#pragma unroll
    for (int k_step = 0; k_step < Tile::K_STEPS; ++k_step) {
      const auto at = [&](const unsigned char* tile, int row) {
        return reinterpret_cast<const T*>(&tile[pitch_linear(row, k_step * Tile::MMA_K_BYTES, PITCH_BYTES)]);
      };
      wmma::fragment<wmma::matrix_a, 16, 16, WK, Multiplied, wmma::row_major> rA[WM / 16];  // [16 rows]
      wmma::fragment<wmma::matrix_b, 16, 16, WK, Multiplied, wmma::col_major> rB[WN / 16];  // [16 columns]
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
        wmma::load_matrix_sync(rA[i], at(sA, warp_row + i * 16), PITCH_BYTES / sizeof(T));
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
        wmma::load_matrix_sync(rB[j], at(sB, warp_col + j * 16), PITCH_BYTES / sizeof(T));
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) wmma::mma_sync(acc[i][j], rA[i], rB[j], acc[i][j]);
    }
  };
  // [/multiply]

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

    multiply_k_tile();
    __syncthreads();  // everyone has read the tile
  }

  // 4. epilogue
  float* const sC = reinterpret_cast<float*>(smem) + warp * 16 * Tile::C_PITCH;
  store_results(acc, sC, block_row + warp_row, block_col + warp_col, M, N, alpha, beta, C, ldc);
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
    .idea = "64 x 64 results per warp, and a skew against bank conflicts",
    .predecessor = "09a",
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
