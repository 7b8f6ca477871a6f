// 09c_wmma_async · asynchronous copies in C++, and persistent blocks
//
// Idea              A copy that the thread does not have to wait for: cuda::memcpy_async moves 16 bytes from global to
//                   shared memory past the registers, and a cuda::pipeline knows when they have landed. The blocks are
//                   persistent: each stays on its SM and takes one tile of C after another, and the copies go on.
// Changed from 09b  two stages of A and B; the next k tile, which may belong to the next tile of C, is copied while
//                   this one is multiplied; C has its own part of shared memory; TF32 is rounded in the fragments, as
//                   in 09
// Expect            1.3 times 09b, which waits for global memory in each k tile and at the end of each tile of C
// Limiter now       waiting, as in 09b: 200 instructions stand between the barrier and the first fragment of a k tile, most
//                   for addresses of copies. Because of the skew, copies also take more wavefronts than stores
// New instructions  cp.async.cg, cp.async.commit_group, cp.async.wait_group, all through <cuda/pipeline>
// Limits            tf32 (rounded to nearest), bf16, f16; sm_80; any M, N, K; rows a multiple of 16 bytes
// Run               ./run_all.sh run 09c 4096 4096 4096 --type bf16
// Read              docs/09c_wmma_async.md
#include <cuda/pipeline>
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
  static constexpr int STAGE_BYTES = (BM + BN) * PITCH_BYTES;
  static constexpr int SMEM_BYTES = 2 * STAGE_BYTES + THREADS / 32 * 16 * C_PITCH * 4;
  static constexpr int BLOCKS_PER_SM = 2;
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

/// Rounds TF32 element by element: the tensor cores would cut off the lowest 13 bits.
template <Type type, class Fragment>
__device__ void round_to_operand(Fragment& fragment) {
  if constexpr (type == Type::tf32)
    for (float& x : fragment.x) x = wmma::__float_to_tf32(x);
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
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS_PER_SM)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  using Multiplied = std::conditional_t<type == Type::tf32, wmma::precision::tf32, T>;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, WK = Tile::MMA_K_BYTES / sizeof(T);
  constexpr int BK_BYTES = Tile::BK_BYTES, COPY_ROWS = Tile::COPY_ROWS, PITCH_BYTES = Tile::PITCH_BYTES;
  extern __shared__ __align__(32) unsigned char smem[];  // load_matrix_sync needs 32-byte alignment

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int c_tiles = ceil_div(M, BM) * tiles_n;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile

  // Adds the products of my warp's rows of the tile at sA and its columns of the tile at sB.
  const auto multiply_k_tile = [&](auto& acc, const unsigned char* sA, const unsigned char* sB) {
#pragma unroll
    for (int k_step = 0; k_step < Tile::K_STEPS; ++k_step) {
      const auto at = [&](const unsigned char* tile, int row) {
        return reinterpret_cast<const T*>(&tile[pitch_linear(row, k_step * Tile::MMA_K_BYTES, PITCH_BYTES)]);
      };
      wmma::fragment<wmma::matrix_a, 16, 16, WK, Multiplied, wmma::row_major> rA[WM / 16];  // [16 rows]
      wmma::fragment<wmma::matrix_b, 16, 16, WK, Multiplied, wmma::col_major> rB[WN / 16];  // [16 columns]
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) {
        wmma::load_matrix_sync(rA[i], at(sA, warp_row + i * 16), PITCH_BYTES / sizeof(T));
        round_to_operand<type>(rA[i]);
      }
#pragma unroll
      for (int j = 0; j < WN / 16; ++j) {
        wmma::load_matrix_sync(rB[j], at(sB, warp_col + j * 16), PITCH_BYTES / sizeof(T));
        round_to_operand<type>(rB[j]);
      }
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) wmma::mma_sync(acc[i][j], rA[i], rB[j], acc[i][j]);
    }
  };

  // 2. set up. The copies run ahead through the k tiles of all tiles of C of this block. The tile at the end of K comes
  // first; it may be a residue tile.
  const int k_bytes = K * static_cast<int>(sizeof(T));
  const int last_k_offset_bytes = (k_bytes - 1) / BK_BYTES * BK_BYTES;
  int copy_c_tile = blockIdx.x, copy_k_offset_bytes = last_k_offset_bytes;
  cuda::pipeline<cuda::thread_scope_thread> pipeline = cuda::make_pipeline();
  // [copy]
  const auto copy_next = [&](unsigned char* dst) {  // dst: the stage to write
    if (copy_c_tile >= c_tiles) return;
    // Past the last row or column, read the last one: its results are not stored.
    const int row = copy_c_tile / tiles_n * BM + copy_row, col = copy_c_tile % tiles_n * BN + copy_row;
    const int byte = copy_k_offset_bytes + copy_chunk * 16, bytes_left = k_bytes - byte;
    const auto gA = [&](int i) {
      return reinterpret_cast<const unsigned char*>(A + static_cast<size_t>(min(row + i * COPY_ROWS, M - 1)) * lda) +
             byte;
    };
    const auto gB = [&](int i) {
      return reinterpret_cast<const unsigned char*>(B + static_cast<size_t>(min(col + i * COPY_ROWS, N - 1)) * ldb) +
             byte;
    };
    unsigned char* const sA = dst + copy_row * PITCH_BYTES + copy_chunk * 16;
    unsigned char* const sB = sA + BM * PITCH_BYTES;
    if (bytes_left >= 16) {
      const cuda::aligned_size_t<16> chunk(16);
#pragma unroll
      for (int i = 0; i < BM / COPY_ROWS; ++i)
        cuda::memcpy_async(sA + i * COPY_ROWS * PITCH_BYTES, gA(i), chunk, pipeline);
#pragma unroll
      for (int i = 0; i < BN / COPY_ROWS; ++i)
        cuda::memcpy_async(sB + i * COPY_ROWS * PITCH_BYTES, gB(i), chunk, pipeline);
      pipeline.producer_commit();
      // [/copy]
    } else {  // a residue tile: memcpy_async cannot fill with zeros
#pragma unroll
      for (int i = 0; i < BM / COPY_ROWS; ++i)
        *reinterpret_cast<uint4*>(sA + i * COPY_ROWS * PITCH_BYTES) = load16(gA(i), bytes_left);
#pragma unroll
      for (int i = 0; i < BN / COPY_ROWS; ++i)
        *reinterpret_cast<uint4*>(sB + i * COPY_ROWS * PITCH_BYTES) = load16(gB(i), bytes_left);
    }
    copy_k_offset_bytes -= BK_BYTES;
    if (copy_k_offset_bytes < 0) {
      copy_k_offset_bytes = last_k_offset_bytes;
      copy_c_tile += gridDim.x;
    }
  };
  copy_next(smem);
  int read_stage = 0;

  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    const int block_row = c_tile / tiles_n * BM, block_col = c_tile % tiles_n * BN;
    wmma::fragment<wmma::accumulator, 16, 16, WK, float> acc[WM / 16][WN / 16];  // [16 rows][16 columns]
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
      for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(acc[i][j], 0.0F);

    // [main-loop]
    // 3. main loop: gmem -cp.async-> smem[read_stage ^ 1]     smem[read_stage] -wmma.load-> registers -wmma.mma-> acc
    for (int k_offset_bytes = last_k_offset_bytes; k_offset_bytes >= 0; k_offset_bytes -= BK_BYTES) {
      cuda::pipeline_consumer_wait_prior<0>(pipeline);  // my copies have landed
      __syncthreads();  // the copies of all threads have landed, and all warps have read the other stage
      copy_next(smem + (read_stage ^ 1) * Tile::STAGE_BYTES);

      const unsigned char *const sA = smem + read_stage * Tile::STAGE_BYTES, *const sB = sA + BM * PITCH_BYTES;
      multiply_k_tile(acc, sA, sB);
      read_stage ^= 1;
    }
    // [/main-loop]

    // 4. epilogue, while the copies for the next tile are in flight
    float* const sC = reinterpret_cast<float*>(smem + 2 * Tile::STAGE_BYTES) + warp * 16 * Tile::C_PITCH;
    store_results(acc, sC, block_row + warp_row, block_col + warp_col, M, N, alpha, beta, C, ldc);
  }
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(gemm<type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int c_tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    const int blocks = min(c_tiles, device_limits().sms * Tile::BLOCKS_PER_SM);
    gemm<type, TC><<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda,
                                                                          p.B<T>(), p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "09c",
    .name = "wmma_async",
    .idea = "asynchronous copies by cuda::pipeline, persistent over tiles",
    .predecessor = "09b",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
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
