// 09a_wmma_block_tile · the same fragments from the block's tiles in shared memory
//
// Idea              Data that several warps need is copied once, into shared memory: four warps read each row of A and
//                   four each row of B. Each warp still computes 16 x 16 of C.
// Changed from 09   the block copies 64 rows of A and of B, 128 bytes of each, in 16-byte chunks with zeros past K, so
//                   only the epilogue treats edges; TF32 is rounded once, on its way to shared memory
// Expect            0.94 times 09: the 8 rows of a load begin in the same bank, so the load still takes 8 wavefronts.
//                   With the copies that is 34 wavefronts per HMMA where 09 has 32
// Limiter now       shared memory: 8 wavefronts per load, and each fragment is multiplied only once or twice
// New instructions  none in PTX; ptxas turns FP16's wmma.load from shared memory into LDSM (ldmatrix), no other type's
// Limits            tf32 (rounded to nearest), bf16, f16; sm_75 for f16, sm_80 for the others; any M, N, K; rows a
//                   multiple of 16 bytes
// Run               ./run_all.sh run 09a 4096 4096 4096 --type bf16
// Read              docs/09a_wmma_block_tile.md
#include <type_traits>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/rung.h"
#include "common/wmma.h"

using namespace ladder;
namespace wmma = nvcuda::wmma;

namespace {

struct Tile {
  static constexpr int BM = 64;           // rows of C per block
  static constexpr int BN = 64;           // columns of C per block
  static constexpr int WM = 16;           // rows of C per warp
  static constexpr int WN = 16;           // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma: 16 elements of 16 bits, 8 of TF32
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int PITCH_BYTES = BK_BYTES;                 // from row to row: all rows begin in the same bank
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int SMEM_BYTES = (BM + BN) * PITCH_BYTES;
  static_assert(SMEM_BYTES >= BM * BN * 4, "C of each warp lies where A and B were");
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

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)
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
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const int row = block_row + warp_row, col = block_col + warp_col;
  const bool inside = row + WM <= M && col + WN <= N;
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);  // my first 16 bytes of a tile

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
  wmma::fragment<wmma::matrix_a, WM, WN, WK, Multiplied, wmma::row_major> rA;
  wmma::fragment<wmma::matrix_b, WM, WN, WK, Multiplied, wmma::col_major> rB;
  wmma::fragment<wmma::accumulator, WM, WN, WK, float> acc;
  wmma::fill_fragment(acc, 0.0F);

  // [multiply]
  // Adds the products of my warp's rows of the tile at sA and its columns of the tile at sB.
  const auto multiply_k_tile = [&] {
#pragma unroll
    for (int k_step = 0; k_step < Tile::K_STEPS; ++k_step) {
      const auto at = [&](const unsigned char* tile, int row) {
        return reinterpret_cast<const T*>(&tile[pitch_linear(row, k_step * Tile::MMA_K_BYTES, PITCH_BYTES)]);
      };
      wmma::load_matrix_sync(rA, at(sA, warp_row), PITCH_BYTES / sizeof(T));
      wmma::load_matrix_sync(rB, at(sB, warp_col), PITCH_BYTES / sizeof(T));
      wmma::mma_sync(acc, rA, rB, acc);
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
    // [tile]
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      store16<type>(&smem[pitch_linear(copy_row + i * COPY_ROWS, copy_chunk * 16, PITCH_BYTES)], next[i]);
      ldg_src[i] -= BK_BYTES;
    }
    __syncthreads();  // the tile is complete

    multiply_k_tile();
    __syncthreads();  // everyone has read the tile
    // [/tile]
  }

  // 4. epilogue. An operation that is the same for all elements needs no map: every lane applies it to those it holds.
  if (row >= M || col >= N) return;  // no barrier below waits for this warp
  TC* const gC = C + static_cast<size_t>(row) * ldc + col;
  if constexpr (std::is_same_v<TC, float>) {
    if (inside) {
      for (float& x : acc.x) x *= alpha;
      if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
        wmma::fragment<wmma::accumulator, WM, WN, WK, float> rC;
        wmma::load_matrix_sync(rC, gC, ldc, wmma::mem_row_major);
        for (int i = 0; i < acc.num_elements; ++i) acc.x[i] += beta * rC.x[i];
      }
      wmma::store_matrix_sync(gC, acc, ldc, wmma::mem_row_major);
      return;
    }
  }
  // A fragment of FP32 cannot be stored as 16 bits, nor in part. It goes through shared memory, where each element has
  // a known place.
  float* const sC = reinterpret_cast<float*>(smem) + warp * WM * WN;
  wmma::store_matrix_sync(sC, acc, WN, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < WM * WN; i += 32) {
    const auto [m, n] = row_major(i, WN);
    if (row + m >= M || col + n >= N) continue;  // the padding of C must stay as it is
    TC& c = gC[static_cast<size_t>(m) * ldc + n];
    float d = alpha * sC[i];
    if (beta != 0.0F) d += beta * to_float(c);
    c = from_float<TC>(d);
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
    .number = "09a",
    .name = "wmma_block_tile",
    .idea = "the same fragments from the block's tiles in shared memory",
    .predecessor = "09",
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
