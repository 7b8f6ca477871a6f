// 14_multistage · several tiles under way, fragments one step ahead
//
// draft
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

#ifndef V_BM
#define V_BM 256
#define V_BN 128
#define V_WM 64
#define V_WN 64
#define V_ST 4
#define V_CP 3
#define V_EPI 1
#define V_BPS 1
#endif
#ifndef V_ORD
#define V_ORD 1
#endif
#ifndef V_X
#define V_X 1
#endif
#ifndef V_T
#define V_T 1
#endif
#ifndef V_P
#define V_P 1
#endif
#ifndef V_L
#define V_L 1
#endif
#ifndef V_S
#define V_S 0
#endif
#ifndef V_G
#define V_G 0
#endif
#ifndef V_U
#define V_U 1
#endif
#ifndef V_MAD
#define V_MAD 0
#endif
#if 1
#endif

struct Tile {
  static constexpr int BM = V_BM;     // rows of C a block
  static constexpr int BN = V_BN;     // columns of C a block
  static constexpr int ROW = 128;    // bytes along k held at a time: 64 elements of 16 bits, 32 of TF32
  static constexpr int WM = V_WM;      // rows of C a warp
  static constexpr int WN = V_WN;      // columns of C a warp
  static constexpr int STAGES = V_ST;
  static constexpr int COPY_STEPS = V_CP;
  static_assert(COPY_STEPS > 0);
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / 8;       // rows that the block copies at once, 8 threads a row
  static constexpr int A_COPIES = BM / COPY_ROWS;     // 16-byte copies a thread makes of a tile of A
  static constexpr int COPIES = (BM + BN) / COPY_ROWS;
  static constexpr int STAGE_BYTES = (BM + BN) * ROW;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
};

template <class TC> __device__ TC convert(float x);
template <> __device__ float convert<float>(float x) { return x; }
template <> __device__ __nv_bfloat16 convert<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }
template <> __device__ __half convert<__half>(float x) { return __float2half_rn(x); }
__device__ float to_float(float x) { return x; }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float to_float(__half x) { return __half2float(x); }

__device__ const unsigned char* at(const unsigned char* p, uint32_t step, int i) {
#if V_MAD
  if (i == 0) return p;
  uint64_t r; asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(step), "r"(i), "l"(p)); return (const unsigned char*)r;
#else
  return p + static_cast<size_t>(step) * i;
#endif
}

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, V_BPS)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::ROW / sizeof(T), WM = Tile::WM, WN = Tile::WN;
  constexpr int STAGES = Tile::STAGES, ROW = Tile::ROW;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  const int copy_row = threadIdx.x / 8, copy_chunk = threadIdx.x % 8;

  [[maybe_unused]] const bool late = warp >= Tile::THREADS / 64;
  // 2. set up
  const int tiles_n = ceil_div(N, BN), tiles = ceil_div(M, BM) * tiles_n, k_tiles = ceil_div(K, BK);
  const uint32_t s0 = shared_address(smem);
  const uint32_t s_copy = s0 + copy_row * ROW + (copy_chunk ^ copy_row % 8) * 16;
  const int a_row = warp_row + lane % 16, b_row = warp_col + lane % 8 + lane / 16 * 8;
  const uint32_t s_a = s0 + a_row * ROW + ((lane / 16) ^ a_row % 8) * 16;
  const uint32_t s_b = s0 + BM * ROW + b_row * ROW + ((lane / 8 % 2) ^ b_row % 8) * 16;

  int load_tile = blockIdx.x, load_left = 0;
  int row0 = 0, col0 = 0;
  bool guarded = false;
  const unsigned char *gA = nullptr, *gB = nullptr;
  const uint32_t step_a = Tile::COPY_ROWS * lda * sizeof(T), step_b = Tile::COPY_ROWS * ldb * sizeof(T);
  const unsigned char* g[Tile::COPIES];
  const auto start_tile = [&] {
    row0 = load_tile / tiles_n * BM;
    col0 = load_tile % tiles_n * BN;
    load_left = k_tiles - 1;
    const int k = load_left * BK;
    gA = reinterpret_cast<const unsigned char*>(A + static_cast<size_t>(row0 + copy_row) * lda + k) + copy_chunk * 16;
    gB = reinterpret_cast<const unsigned char*>(B + static_cast<size_t>(col0 + copy_row) * ldb + k) + copy_chunk * 16;
    guarded = load_tile >= tiles || row0 + BM > M || col0 + BN > N || K % BK != 0;
    if (!V_G && load_tile >= tiles) { gA = reinterpret_cast<const unsigned char*>(A) + (size_t)k*2 + copy_chunk * 16; gB = reinterpret_cast<const unsigned char*>(B) + (size_t)k*2+ copy_chunk * 16; }
#if V_P
#pragma unroll
    for (int i = 0; i < Tile::COPIES; ++i) g[i] = i < Tile::A_COPIES ? gA + static_cast<size_t>(step_a) * i : gB + static_cast<size_t>(step_b) * (i - Tile::A_COPIES);
#endif
  };
  const auto copy = [&](uint32_t stage, int first, int last) {
    if (!V_G || !guarded) {
#pragma unroll
      for (int i = first; i < last; ++i) {
        const uint32_t to = stage + i * Tile::COPY_ROWS * ROW;
        if (i < Tile::A_COPIES)
          cp_async_cg_16(to, V_P ? g[i] : at(gA, step_a, i));
        else
          cp_async_cg_16(to, V_P ? g[i] : at(gB, step_b, i - Tile::A_COPIES));
      }
    } else if (load_tile < tiles) {
      const int left = (K - load_left * BK) * static_cast<int>(sizeof(T)) - copy_chunk * 16;
      const int bytes = min(max(left, 0), 16);
#pragma unroll
      for (int i = first; i < last; ++i) {
        const uint32_t to = stage + i * Tile::COPY_ROWS * ROW;
        if (i < Tile::A_COPIES)
          cp_async_cg_16(to, gA + static_cast<size_t>(step_a) * i, row0 + copy_row + i * Tile::COPY_ROWS < M ? bytes : 0);
        else
          cp_async_cg_16(to, gB + static_cast<size_t>(step_b) * (i - Tile::A_COPIES),
                         col0 + copy_row + (i - Tile::A_COPIES) * Tile::COPY_ROWS < N ? bytes : 0);
      }
    }
  };
  const auto advance = [&] {
    if (load_left > 0) {
      --load_left;
      gA -= ROW;
      gB -= ROW;
#if V_P
#pragma unroll
      for (int i = 0; i < Tile::COPIES; ++i) g[i] -= ROW;
#endif
      guarded = load_tile >= tiles || row0 + BM > M || col0 + BN > N;
    } else {
      load_tile += gridDim.x;
      start_tile();
    }
  };
  start_tile();
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) {
    copy(s_copy + s * Tile::STAGE_BYTES, 0, Tile::COPIES);
    cp_async_commit_group();
    if (!V_L || s < STAGES - 2) advance();
  }
  cp_async_wait_group<STAGES - 2>();
  __syncthreads();

  uint32_t stage = 0, load_stage = (STAGES - 1) * Tile::STAGE_BYTES;
  uint32_t s_to = s_copy + load_stage;
  uint32_t rA[2][WM / 16][4], rB[2][WN / 16][4];
#if V_X
  uint32_t xa[4], xb[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    xa[k] = s_a ^ k * 32;
    xb[k] = s_b ^ k * 32;
    asm volatile("" : "+r"(xa[k]), "+r"(xb[k]));
  }
#endif
  const auto load_fragments = [&](int buffer, uint32_t from, int k) {
#if V_X
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) ldmatrix_x4(rA[buffer][i], xa[k] + from + i * 16 * ROW);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) ldmatrix_x4(rB[buffer][j], xb[k] + from + j * 16 * ROW);
#else
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) ldmatrix_x4(rA[buffer][i], (s_a ^ k * 32) + from + i * 16 * ROW);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) ldmatrix_x4(rB[buffer][j], (s_b ^ k * 32) + from + j * 16 * ROW);
#endif
  };
  load_fragments(0, 0, 0);

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float acc[WM / 16][WN / 8][4] = {};
    // 3. main loop
#pragma unroll 1
    for (int k_tile = k_tiles - 1; k_tile >= 0; k_tile -= V_U) {
#pragma unroll
     for (int u = 0; u < V_U; ++u) {
#if V_U > 1
      stage = u * Tile::STAGE_BYTES; s_to = s_copy + (u + STAGES - 1) % STAGES * Tile::STAGE_BYTES;
#endif
      const uint32_t next = stage + Tile::STAGE_BYTES == Tile::SMEM_BYTES ? 0 : stage + Tile::STAGE_BYTES;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k == 3) {
#if V_S
          if (late) cp_async_wait_group<STAGES - 3>(); else cp_async_wait_group<STAGES - 2>();
#else
          cp_async_wait_group<Tile::COPY_STEPS == 4 ? STAGES - 3 : STAGES - 2>();
#endif
          __syncthreads();
        }
        load_fragments((k + 1) % 2, k == 3 ? next : stage, (k + 1) % 4);
#if V_S
        if (k == 0 ) advance();
        if (late ? k >= 2 : k < 2) copy(s_to, Tile::COPIES * (k % 2) / 2, Tile::COPIES * (k % 2 + 1) / 2);
        if (k == 1) { if (!late) cp_async_commit_group(); }
        if (k == 3) { if (late) cp_async_commit_group(); }
#else
#if V_L
        if (k == 0) advance();
#endif
        if (k < Tile::COPY_STEPS)
          copy(s_to, Tile::COPIES * k / Tile::COPY_STEPS, Tile::COPIES * (k + 1) / Tile::COPY_STEPS);
        if (k == Tile::COPY_STEPS - 1) {
          cp_async_commit_group();
#if !V_L
          advance();
#endif
        }
#endif
#if V_ORD == 0
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
          for (int j = 0; j < WN / 8; ++j) {
            const int snake = i % 2 ? WN / 8 - 1 - j : j;
            const uint32_t b[2] = {rB[k % 2][snake / 2][snake % 2 * 2], rB[k % 2][snake / 2][snake % 2 * 2 + 1]};
            Operand<type>::mma(acc[i][snake], rA[k % 2][i], b);
          }
#else
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
          for (int i = 0; i < WM / 16; ++i) {
            const int snake = j % 2 ? WM / 16 - 1 - i : i;
            const uint32_t b[2] = {rB[k % 2][j / 2][j % 2 * 2], rB[k % 2][j / 2][j % 2 * 2 + 1]};
            Operand<type>::mma(acc[snake][j], rA[k % 2][snake], b);
          }
#endif
      }
      s_to = s_copy + stage;
#if V_T
      asm volatile("" : "+r"(s_to));
#endif
      load_stage = stage;
      stage = next;
    }}

    // 4. epilogue
    const int row = tile / tiles_n * BM + warp_row + lane / 4, col = tile % tiles_n * BN + warp_col + lane % 4 * 2;
#if V_EPI == 1
    if constexpr (sizeof(TC) == 2) {
      // Four lanes hold 8 columns of one row, two each, in each of four neighbouring 8-column groups: transpose 4 x 4
      // words among the quad, so that each lane stores 16 bytes.
      const int t = lane % 4;
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int j = 0; j < WN / 8; j += 4) {
            uint32_t w[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) {
              TC pair[2] = {convert<TC>(alpha * acc[i][j + q][h * 2]), convert<TC>(alpha * acc[i][j + q][h * 2 + 1])};
              memcpy(&w[q], pair, 4);
            }
            // butterfly
            {
              uint32_t x = (t & 1) ? w[0] : w[1], y = (t & 1) ? w[2] : w[3];
              x = __shfl_xor_sync(~0u, x, 1); y = __shfl_xor_sync(~0u, y, 1);
              if (t & 1) { w[0] = x; w[2] = y; } else { w[1] = x; w[3] = y; }
              x = (t & 2) ? w[0] : w[2]; y = (t & 2) ? w[1] : w[3];
              x = __shfl_xor_sync(~0u, x, 2); y = __shfl_xor_sync(~0u, y, 2);
              if (t & 2) { w[0] = x; w[1] = y; } else { w[2] = x; w[3] = y; }
            }
            const int m = row + i * 16 + h * 8, n = tile % tiles_n * BN + warp_col + (j + t) * 8;
            if (m < M && n < N) {
              TC* p = C + static_cast<size_t>(m) * ldc + n;
              if (n + 8 <= N && beta == 0.0F) {
                *reinterpret_cast<uint4*>(p) = {w[0], w[1], w[2], w[3]};
              } else {
                TC v[8]; memcpy(v, w, 16);
                for (int q = 0; q < 8; ++q) if (n + q < N) p[q] = beta == 0.0F ? v[q] : convert<TC>(to_float(v[q]) + beta * to_float(p[q]));
              }
            }
          }
    } else
#endif
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int m = row + i * 16 + h * 8;
        if (m >= M) continue;
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) {
          const int n = col + j * 8;
          TC* p = C + static_cast<size_t>(m) * ldc + n;
          float x = alpha * acc[i][j][h * 2], y = alpha * acc[i][j][h * 2 + 1];
          if (beta != 0.0F) {
            if (n < N) x += beta * to_float(p[0]);
            if (n + 1 < N) y += beta * to_float(p[1]);
          }
          if (n + 1 < N) {
            struct alignas(2 * sizeof(TC)) { TC v[2]; } pair = {convert<TC>(x), convert<TC>(y)};
            *reinterpret_cast<decltype(pair)*>(p) = pair;
          } else if (n < N) {
            p[0] = convert<TC>(x);
          }
        }
      }
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
    gemm<type, TC><<<min(tiles, sms * V_BPS), Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(
        p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(), p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "14",
    .name = "multistage",
    .idea = "several tiles under way, fragments one step ahead",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .layout_b = LayoutB::col_major,
    .min_sm = 80,
    .row_align_bytes = 16,
    .tile = {Tile::BM, Tile::BN, 64},
    .resources =
        [](const Problem& p) {
          return for_types(p, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>, Tile::THREADS, Tile::SMEM_BYTES};
          });
        },
    .launch = launch,
}};

}  // namespace
