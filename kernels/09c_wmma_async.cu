// 09c_wmma_async · asynchronous copies in C++, and blocks that stay for all their tiles
//
// Idea              a copy that the thread need not wait for: cuda::memcpy_async moves 16 bytes from global to shared
//                   memory past the registers, and a cuda::pipeline tells when they have landed. A block stays on its
//                   SM and takes one tile of C after another, so that the stream of copies never ends between them.
// Changed from 09b  two stages of A and B; the next k tile, be it of the next tile of C, is copied while this one is
//                   multiplied; C leaves through memory of its own; TF32 is rounded in the fragments, as in 09
// Expect            09b stands still for a trip to global memory each k tile and at the end of each tile of C; with those
//                   hidden, a third faster
// Limiter now       shared memory: fragments as in 09b, and copies that take more wavefronts than stores, for the skew
// New instructions  cp.async.cg, cp.async.commit_group, cp.async.wait_group, all by way of <cuda/pipeline>
// Limits            tf32 (rounded to nearest), bf16, f16; sm_80; any M, N, K; rows a multiple of 16 bytes
// Run               ./run_all.sh run 09c 4096 4096 4096 --type bf16
// Read              docs/09_wmma.md
#include <mma.h>

#include <algorithm>
#include <cuda/pipeline>
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
  static constexpr int STAGE_BYTES = (BM + BN) * PITCH;
  static constexpr int SMEM_BYTES = 2 * STAGE_BYTES + THREADS / 32 * 16 * C_PITCH * 4;
  static constexpr int BLOCKS_AN_SM = 2;
};

__device__ uint4 load16(const unsigned char* p) { return *reinterpret_cast<const uint4*>(p); }

/// 16 bytes of a row, of which `left` are still inside it: zeros for what is not. Reads nothing where left < 1.
__device__ uint4 load16(const unsigned char* row, int left) {
  if (left < 1) return {};
  const uint4 v = load16(row);
  const auto inside = [&](uint32_t word, int i) { return left >= i + 4 ? word : left > i ? word & 0xffff : 0; };
  return {inside(v.x, 0), inside(v.y, 4), inside(v.z, 8), inside(v.w, 12)};
}

/// TF32 is rounded element by element: the tensor cores would cut off the lowest 13 bits.
template <Type type, class Fragment>
__device__ void round_to_operand(Fragment& fragment) {
  if constexpr (type == Type::tf32)
    for (float& x : fragment.x) x = wmma::__float_to_tf32(x);
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS_AN_SM)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  using Multiplied = std::conditional_t<type == Type::tf32, wmma::precision::tf32, T>;
  constexpr int WK = 32 / sizeof(T);  // elements along k an mma
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, ROW = Tile::ROW, ROWS = Tile::ROWS;
  extern __shared__ __align__(32) unsigned char smem[];  // load_matrix_sync wants 32-byte alignment

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int tiles = ceil_div(M, BM) * tiles_n;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, ROW / 16);          // my first 16 bytes of a tile

  // [copy]
  // 2. set up. What is copied next: a stream of k tiles that runs through all tiles of C of this block.
  // In bytes; the last k tile, which may be ragged, comes first.
  const int last_k_tile = (K * static_cast<int>(sizeof(T)) - 1) / ROW * ROW;
  int next_tile = blockIdx.x, next_k_tile = last_k_tile;
  cuda::pipeline<cuda::thread_scope_thread> pipeline = cuda::make_pipeline();
  const auto copy_next = [&](unsigned char* stage) {
    if (next_tile >= tiles) return;
    // Past the last row or column, read the last one instead: nothing of it is stored.
    const int row = next_tile / tiles_n * BM + copy_row, col = next_tile % tiles_n * BN + copy_row;
    const int byte = next_k_tile + copy_chunk * 16, left = K * static_cast<int>(sizeof(T)) - byte;
    const auto gA = [&](int i) {
      return reinterpret_cast<const unsigned char*>(A + static_cast<size_t>(min(row + i * ROWS, M - 1)) * lda) + byte;
    };
    const auto gB = [&](int i) {
      return reinterpret_cast<const unsigned char*>(B + static_cast<size_t>(min(col + i * ROWS, N - 1)) * ldb) + byte;
    };
    unsigned char* const sA = stage + copy_row * Tile::PITCH + copy_chunk * 16;
    unsigned char* const sB = sA + BM * Tile::PITCH;
    if (left >= 16) {
      const cuda::aligned_size_t<16> chunk(16);
#pragma unroll
      for (int i = 0; i < BM / ROWS; ++i) cuda::memcpy_async(sA + i * ROWS * Tile::PITCH, gA(i), chunk, pipeline);
#pragma unroll
      for (int i = 0; i < BN / ROWS; ++i) cuda::memcpy_async(sB + i * ROWS * Tile::PITCH, gB(i), chunk, pipeline);
      pipeline.producer_commit();
    } else {  // ragged: memcpy_async cannot fill with zeros
#pragma unroll
      for (int i = 0; i < BM / ROWS; ++i) *reinterpret_cast<uint4*>(sA + i * ROWS * Tile::PITCH) = load16(gA(i), left);
#pragma unroll
      for (int i = 0; i < BN / ROWS; ++i) *reinterpret_cast<uint4*>(sB + i * ROWS * Tile::PITCH) = load16(gB(i), left);
    }
    next_k_tile -= ROW;
    if (next_k_tile < 0) {
      next_k_tile = last_k_tile;
      next_tile += gridDim.x;
    }
  };
  copy_next(smem);
  int stage = 0;
  // [/copy]

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int block_row = tile / tiles_n * BM, block_col = tile % tiles_n * BN;
    wmma::fragment<wmma::accumulator, 16, 16, WK, float> acc[WM / 16][WN / 16];
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
      for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(acc[i][j], 0.0F);

    // [main-loop]
    // 3. main loop
    for (int k_tile = last_k_tile; k_tile >= 0; k_tile -= ROW) {
      cuda::pipeline_consumer_wait_prior<0>(pipeline);  // my copies have landed
      __syncthreads();                                  // everyone's have, and everyone is done with the other stage
      copy_next(smem + (stage ^ 1) * Tile::STAGE_BYTES);

      const unsigned char *const sA = smem + stage * Tile::STAGE_BYTES, *const sB = sA + BM * Tile::PITCH;
#pragma unroll
      for (int k = 0; k < ROW; k += 32) {  // bytes
        wmma::fragment<wmma::matrix_a, 16, 16, WK, Multiplied, wmma::row_major> rA[WM / 16];
        wmma::fragment<wmma::matrix_b, 16, 16, WK, Multiplied, wmma::col_major> rB[WN / 16];
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {
          wmma::load_matrix_sync(rA[i], reinterpret_cast<const T*>(&sA[(warp_row + i * 16) * Tile::PITCH + k]),
                                 Tile::PITCH / sizeof(T));
          round_to_operand<type>(rA[i]);
        }
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) {
          wmma::load_matrix_sync(rB[j], reinterpret_cast<const T*>(&sB[(warp_col + j * 16) * Tile::PITCH + k]),
                                 Tile::PITCH / sizeof(T));
          round_to_operand<type>(rB[j]);
        }
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
#pragma unroll
          for (int i = 0; i < WM / 16; ++i) wmma::mma_sync(acc[i][j], rA[i], rB[j], acc[i][j]);
      }
      stage ^= 1;
    }
    // [/main-loop]

    // [epilogue]
    // 4. epilogue. 16 rows at a time through shared memory, as in 09b, while the copies for the next tile are under way.
    float* const sC = reinterpret_cast<float*>(smem + 2 * Tile::STAGE_BYTES) + warp * 16 * Tile::C_PITCH;
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
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(gemm<type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    int device, sms;
    cuda_check(cudaGetDevice(&device));
    cuda_check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    const int tiles = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    const int blocks = std::min(tiles, sms * Tile::BLOCKS_AN_SM);
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
    .unit = Unit::mma_sync,
    .layout_b = LayoutB::col_major,
    .row_align_bytes = 16,
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
