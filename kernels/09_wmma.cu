// 09_wmma · the tensor cores through <mma.h>, straight from global memory
//
// Idea              A whole warp multiplies a 16 x 32-byte tile of A by a 32-byte x 16 tile of B. Its 32 lanes hold the
//                   operands together, as fragments; only the library knows which lane holds which element.
// Changed from 08   warps share nothing: each computes 16 x 16 of C and reads its operands from global memory, through
//                   L1. B is N x K now: a row of it is a column of the product.
// Expect            0.04 of cuBLAS: a warp's fragments of 16 x 32 bytes take eight loads, each from 8 lines of L1. That
//                   is 64 wavefronts for two HMMA, which take the SM's tensor cores 3 clocks: 1/21 of their rate
// Limiter now       L1: 8 wavefronts per load, and each fragment is multiplied only once or twice
// New instructions  wmma.load, wmma.mma m16n16k16 (BF16, FP16) and m16n16k8 (TF32), wmma.store
// Limits            tf32 (rounded to nearest), bf16, f16; sm_75 for f16, sm_80 for the others; any M, N, K; rows a
//                   multiple of 16 bytes
// Run               ./run_all.sh run 09 4096 4096 4096 --type bf16
// Read              docs/09_wmma.md
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
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma: 16 elements of 16 bits, 8 of TF32
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
};

/// Copies a 16 x 32-byte tile of a matrix that has `rows` x `cols` elements from here on, with zeros past them. By a
/// whole warp.
template <class T>
__device__ void copy_edge(T* tile, const T* matrix, int ld, int rows, int cols) {
  constexpr int COLS = Tile::MMA_K_BYTES / sizeof(T);
  for (int i = threadIdx.x % 32; i < 16 * COLS; i += 32) {
    const auto [row, col] = row_major(i, COLS);
    tile[i] = row < rows && col < cols ? matrix[static_cast<size_t>(row) * ld + col] : T(0.0F);
  }
}

/// Rounds TF32 element by element: the tensor cores would cut off the lowest 13 bits.
template <Type type, class Fragment>
__device__ void round_to_operand(Fragment& fragment) {
  if constexpr (type == Type::tf32)
    for (float& x : fragment.x) x = wmma::__float_to_tf32(x);
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  using Multiplied = std::conditional_t<type == Type::tf32, wmma::precision::tf32, T>;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, WK = Tile::MMA_K_BYTES / sizeof(T);
  __shared__ __align__(32) float edges[Tile::THREADS / 32][WM * WN];  // of A, B or C, one part per warp

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = blockIdx.x / tiles_n * BM + warp / (BN / WN) * WM;
  const int col = blockIdx.x % tiles_n * BN + warp % (BN / WN) * WN;
  if (row >= M || col >= N) return;  // no barrier below waits for this warp
  const bool inside = row + WM <= M && col + WN <= N;

  // 2. set up
  const T* gA = A + static_cast<size_t>(row) * lda;
  const T* gB = B + static_cast<size_t>(col) * ldb;
  wmma::fragment<wmma::matrix_a, WM, WN, WK, Multiplied, wmma::row_major> rA;
  wmma::fragment<wmma::matrix_b, WM, WN, WK, Multiplied, wmma::col_major> rB;
  wmma::fragment<wmma::accumulator, WM, WN, WK, float> acc;
  wmma::fill_fragment(acc, 0.0F);

  // [main-loop]
  // 3. main loop
  int k_offset = 0;
  for (; inside && k_offset + WK <= K; k_offset += WK) {
    wmma::load_matrix_sync(rA, gA + k_offset, lda);
    wmma::load_matrix_sync(rB, gB + k_offset, ldb);
    round_to_operand<type>(rA);
    round_to_operand<type>(rB);
    wmma::mma_sync(acc, rA, rB, acc);
  }
  // [/main-loop]
  // [edges]
  T* const sA = reinterpret_cast<T*>(edges[warp]);
  T* const sB = sA + WM * WK;
  for (; k_offset < K; k_offset += WK) {  // load_matrix_sync must not read rows past M or N, or elements past K
    copy_edge(sA, gA + k_offset, lda, M - row, K - k_offset);
    copy_edge(sB, gB + k_offset, ldb, N - col, K - k_offset);
    __syncwarp();
    wmma::load_matrix_sync(rA, sA, WK);
    wmma::load_matrix_sync(rB, sB, WK);
    __syncwarp();
    round_to_operand<type>(rA);
    round_to_operand<type>(rB);
    wmma::mma_sync(acc, rA, rB, acc);
  }
  // [/edges]

  // 4. epilogue. An operation that is the same for all elements needs no map: every lane applies it to those it holds.
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
  float* const sC = edges[warp];
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
    gemm<type, TC><<<blocks, Tile::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(), p.ldb,
                                                           p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "09",
    .name = "wmma",
    .idea = "the tensor cores through <mma.h>, straight from global memory",
    .predecessor = "",
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
                             0,
                             {Tile::BM, Tile::BN, Tile::MMA_K_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
