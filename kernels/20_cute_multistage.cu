// 20_cute_multistage · the kernel of 16, written in CuTe
//
// Idea              what 11 to 16 work out by hand, CuTe derives from layouts: TiledCopy assigns 16-byte chunks to threads, a
//                   swizzled layout places them, retile fits ldmatrix to the fragments of TiledMMA. What remains to be written
//                   is the pipeline: which stage is copied, which is multiplied, and when the block waits.
// Changed from 16   CuTe's words for all of it. C goes through shared memory, as in 16b, and there and back in its own type;
//                   rows past the end are zeros that no copy reads, instead of the last row again; k tiles count upwards
// Expect            1.00 times 16: the same tiles, stages and mma, and about as many instructions around them. (Missed: 16 additions
//                   per k tile overwrite addresses of copies that may still be queued.) FP16 sums take half the registers
// Limiter now       as in 16: mma.sync and the instructions between two of them
// New instructions  none; CuTe's atoms are the instructions of 11, 13 and 16
// Limits            bf16 with FP32 sums, f16 with FP16 sums; sm_80 with 96 KB of shared memory per block; any M, N, K; rows a
//                   multiple of 16 bytes; CUTLASS's headers
// Run               ./run_all.sh run 20 4096 4096 4096 --type bf16 --out same
// Read              docs/20_cute_multistage.md
#include "common/cute_types.h"
#include "common/layout.h"
#include "common/ptx/keep_in_register.h"

using namespace ladder;

#if LADDER_HAS_CUTE

namespace rung_20 {  // no anonymous one: CuTe has one of its own, and nvcc would mix them up

using namespace cute;

/// cp.async of the first `bytes` of 16 bytes; the rest is filled with zeros. CuTe's SM80_CP_ASYNC_CACHEGLOBAL_ZFILL copies all
/// 16 or none, but K may end within 16 bytes.
struct CpAsyncBytes {
  using SRegisters = uint128_t[1];
  using DRegisters = uint128_t[1];
};

}  // namespace rung_20

template <>
struct cute::Copy_Traits<rung_20::CpAsyncBytes> : Copy_Traits<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>> {
  int bytes = 16;

  __device__ Copy_Traits with(int n) const {
    Copy_Traits traits;
    traits.bytes = n;
    return traits;
  }

  template <class TS, class SLayout, class TD, class DLayout>
  __device__ friend void copy_unpack(const Copy_Traits& traits, const Tensor<TS, SLayout>& src,
                                     Tensor<TD, DLayout>& dst) {
    const void* const from = raw_pointer_cast(src.data());
    const uint32_t to = cast_smem_ptr_to_uint(raw_pointer_cast(dst.data()));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(traits.bytes) : "memory");
  }
};

namespace rung_20 {

template <int BLOCK_M, int WARPS_M>
struct TileConfig {
  static constexpr int BM = BLOCK_M;   // rows of C per block
  static constexpr int BN = 128;       // columns of C per block
  static constexpr int BK = 64;        // elements along k per tile: 128 bytes
  static constexpr int THREADS = 256;  // 8 warps
  static constexpr int WARPS_N = 8 / WARPS_M;
  static constexpr int K_STEPS = BK / 16;
  static constexpr int STAGES = 3;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int COPY_STEPS = 3;    // the copies of a k tile are spread over this many k steps
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 132 tiles are about 8 x 16
  static constexpr int A_COPIES = BM / 32, COPIES = (BM + BN) / 32;  // per thread and k tile, 16 bytes each
  static constexpr int COPIES_PER_STEP = (COPIES + COPY_STEPS - 1) / COPY_STEPS;
  static constexpr int SMEM_BYTES = STAGES * (BM + BN) * BK * 2;

  // [layouts]
  // 8 rows of 128 bytes, swizzled, and as many of them as cover a tile and its stages
  using Atom = decltype(composition(Swizzle<3, 3, 3>{}, Layout<Shape<_8, _64>, Stride<_64, _1>>{}));
  using LayoutA = decltype(tile_to_shape(Atom{}, Shape<Int<BM>, Int<BK>, Int<STAGES>>{}));
  using LayoutB = decltype(tile_to_shape(Atom{}, Shape<Int<BN>, Int<BK>, Int<STAGES>>{}));
  // [/layouts]

  // [c-layout]
  // C on its way through the stage of A that was multiplied last: as many rows as it holds
  static constexpr int SCRATCH_BYTES = BM * BK * 2;
  template <class TC>
  using AtomC =
      std::conditional_t<sizeof(TC) == 2, Atom,
                         decltype(composition(Swizzle<2, 3, 2>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{}))>;
  template <class TC>
  using LayoutC = decltype(tile_to_shape(AtomC<TC>{}, Shape<Int<SCRATCH_BYTES / (BN * sizeof(TC))>, Int<BN>>{}));
  // [/c-layout]

  template <Type type>
  using Mma = decltype(make_tiled_mma(MMA_Atom<typename CuteOperand<type>::Mma>{},
                                      Layout<Shape<Int<WARPS_M>, Int<WARPS_N>, _1>>{},
                                      Tile<Int<WARPS_M * 16>, Int<WARPS_N * 16>, _16>{}));
};
using Large = TileConfig<256, 4>;  // 144 KB of shared memory: A100, H100, H200
using Small = TileConfig<128, 2>;  // 96 KB: RTX 30, 40 and 50
static_assert(std::is_same_v<Large::Atom, Swizzled128>, "the figures draw Swizzled128");
static_assert(std::is_same_v<Large::Mma<Type::bf16>, CuteMma<Type::bf16, 4, 2>>, "the figures draw CuteMma");

/// A tensor in shared memory with its address in a register of its own. Otherwise the compiler recomputes thread and swizzle in
/// every k tile: 50 instructions that 16 does not have.
template <class Engine, class Layout>
__device__ auto kept(const Tensor<Engine, Layout>& tensor) {
  using T = typename Engine::value_type;
  uint32_t address = cast_smem_ptr_to_uint(raw_pointer_cast(tensor.data()));
  keep_in_register(address);
  return make_tensor(make_smem_ptr(static_cast<T*>(__cvta_shared_to_generic(address))), tensor.layout());
}

/// RESIDUE: some tile is a residue tile, so copies are predicated: each says how many of its bytes lie inside the matrix.
template <class Config, Type type, class TC, bool RESIDUE>
__global__ void __launch_bounds__(Config::THREADS, 1)
    gemm_cute(int M, int N, int K, float alpha, const typename CuteOperand<type>::Element* __restrict__ A, int lda,
              const typename CuteOperand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C,
              int ldc) {
  using T = typename CuteOperand<type>::Element;
  constexpr int BM = Config::BM, BN = Config::BN, BK = Config::BK, K_STEPS = Config::K_STEPS, STAGES = Config::STAGES;
  constexpr int COPIES = Config::COPIES, A_COPIES = Config::A_COPIES, COPY_STEPS = Config::COPY_STEPS,
                COPIES_PER_STEP = Config::COPIES_PER_STEP;
  extern __shared__ __align__(128) unsigned char smem[];
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
  if (std::is_same_v<Config, Small>) return;  // body omitted on sm_90 for compile time: launch() takes Large there
#endif

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int k_tiles = ceil_div(K, BK);
  const Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(int64_t{lda}, _1{}));
  const Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(int64_t{ldb}, _1{}));
  const Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(int64_t{ldc}, _1{}));
  const Tensor sA = make_tensor(make_smem_ptr(reinterpret_cast<T*>(smem)), typename Config::LayoutA{});
  const Tensor sB = make_tensor(sA.data() + cosize(sA.layout()), typename Config::LayoutB{});

  // 2. set up
  // [tiled-copy]
  const auto copy_atom = [] {
    if constexpr (RESIDUE)
      return Copy_Atom<CpAsyncBytes, T>{};
    else
      return Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, T>{};
  }();
  const auto g2s = make_tiled_copy(copy_atom, Layout<Shape<_32, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
  const auto g2s_thread = g2s.get_slice(threadIdx.x);
  const Tensor tAsA = kept(g2s_thread.partition_D(sA));  // (8 elements, A_COPIES, 1, STAGES)
  const Tensor tBsB = kept(g2s_thread.partition_D(sB));
  // [/tiled-copy]
  static_assert(std::is_same_v<typename decltype(g2s)::TiledLayout_TV, typename CuteCopy<T>::TiledLayout_TV>,
                "the figures draw CuteCopy");

  // The copies run ahead of the mma: they have their own tile of C, and their own k tile.
  int copy_c_tile = blockIdx.x, copy_k_tile = 0;
  const auto tile_of = [&](int c_tile) {
    return raster(min(c_tile, c_tiles - 1), tiles_m, tiles_n, Config::GROUP_SIZE_M);
  };
  const auto source = [&](const auto& matrix, auto rows, int tile) {  // (8 elements, copies, 1, k tiles)
    return g2s_thread.partition_S(local_tile(matrix, make_shape(rows, Int<BK>{}), make_coord(tile, _)));
  };
  const auto bytes_left = [&] {
    return min(max(K - copy_k_tile * BK - static_cast<int>(threadIdx.x) % 8 * 8, 0), 8) * 2;
  };
  int copy_bytes = bytes_left();  // of each copy; the rest is filled with zeros
  ladder::Coord tile = tile_of(copy_c_tile);
  Tensor tAgA = source(mA, Int<BM>{}, tile.row);
  Tensor tBgB = source(mB, Int<BN>{}, tile.col);
  const auto prefetch_c = [&] {                   // the epilogue will need it: one line of 128 bytes per prefetch
    constexpr int LINES = BN * sizeof(TC) / 128;  // of a row of the tile
    CUTE_NO_UNROLL
    for (int i = threadIdx.x; i < BM * LINES; i += Config::THREADS) {
      const auto at = make_coord(tile.row * BM + i / LINES, tile.col * BN + i % LINES * (BN / LINES));
      if (elem_less(at, shape(mC))) cute::prefetch(&mC(at));
    }
  };
  const auto next_k_tile = [&] {
    if (++copy_k_tile == k_tiles) {
      if (beta != 0.0F) prefetch_c();
      copy_k_tile = 0;
      tile = tile_of(copy_c_tile += gridDim.x);
      tAgA = source(mA, Int<BM>{}, tile.row);
      tBgB = source(mB, Int<BN>{}, tile.col);
    }
    if (RESIDUE) copy_bytes = bytes_left();
  };
  const auto copy_16 = [&](const auto& src, auto&& dst, bool inside) {
    if constexpr (RESIDUE)
      cute::copy(copy_atom.with(inside ? copy_bytes : 0), src, dst);
    else
      cute::copy(copy_atom, src, dst);
  };
  // [copy]
  // Copies those of this thread's 16-byte chunks of a k tile that belong to a copy step.
  const auto copy = [&](int write_stage, int step) {
    CUTE_UNROLL
    for (int j = 0; j < COPIES_PER_STEP; ++j) {  // a constant count: else the compiler does not unroll
      const int i = step * COPIES_PER_STEP + j, row = i % A_COPIES * 32 + threadIdx.x / 8;
      if (i < A_COPIES)
        copy_16(tAgA(_, i, 0, copy_k_tile), tAsA(_, i, 0, write_stage), tile.row * BM + row < M);
      else if (i < COPIES)
        copy_16(tBgB(_, i - A_COPIES, 0, copy_k_tile), tBsB(_, i - A_COPIES, 0, write_stage), tile.col * BN + row < N);
    }
  };
  // [/copy]

  // [fragments]
  const typename Config::template Mma<type> mma;
  const auto mma_thread = mma.get_slice(threadIdx.x);
  Tensor rA = mma_thread.partition_fragment_A(sA(_, _, 0));           // (8 elements, BM / 64, K_STEPS)
  Tensor rB = mma_thread.partition_fragment_B(sB(_, _, 0));           // (4 elements, BN / 16, K_STEPS)
  Tensor acc = partition_fragment_C(mma, Shape<Int<BM>, Int<BN>>{});  // (4 results, BM / 64, BN / 16)

  const auto ldsm_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, T>{}, mma);
  const auto ldsm_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, T>{}, mma);
  const Tensor tXsA = ldsm_a.get_slice(threadIdx.x).partition_S(sA);  // (8 elements, BM / 64, K_STEPS, STAGES)
  const Tensor tXsB = ldsm_b.get_slice(threadIdx.x).partition_S(sB);  // (8 elements, BN / 32, K_STEPS, STAGES)
  decltype(kept(tXsA(_, _, 0, _))) tXsA_of[K_STEPS];                  // by k step
  decltype(kept(tXsB(_, _, 0, _))) tXsB_of[K_STEPS];
  CUTE_UNROLL
  for (int k_step = 0; k_step < K_STEPS; ++k_step) {
    tXsA_of[k_step] = kept(tXsA(_, _, k_step, _));
    tXsB_of[k_step] = kept(tXsB(_, _, k_step, _));
  }
  Tensor tXrA = ldsm_a.get_slice(threadIdx.x).retile_D(rA);
  Tensor tXrB = ldsm_b.get_slice(threadIdx.x).retile_D(rB);
  const auto load_fragments = [&](int stage, int k_step) {
    cute::copy(ldsm_a, tXsA_of[k_step](_, _, stage), tXrA(_, _, k_step));
    cute::copy(ldsm_b, tXsB_of[k_step](_, _, stage), tXrB(_, _, k_step));
  };
  // [/fragments]

  CUTE_NO_UNROLL
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage > 0) next_k_tile();
    CUTE_UNROLL
    for (int step = 0; step < COPY_STEPS; ++step) copy(stage, step);
    cp_async_fence();
  }
  cp_async_wait<STAGES - 2>();
  __syncthreads();
  load_fragments(0, 0);

  // [main-loop]
  // 3. main loop: gmem -cp.async-> smem[write stage]     smem[read stage] -ldmatrix-> registers -mma-> acc
  int read_stage = 0;
  CUTE_NO_UNROLL
  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    clear(acc);
    CUTE_NO_UNROLL
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left) {
      const int next_stage = read_stage + 1 == STAGES ? 0 : read_stage + 1;
      const int write_stage = (read_stage == 0 ? STAGES : read_stage) - 1;
      CUTE_UNROLL
      for (int k_step = 0; k_step < K_STEPS; ++k_step) {
        if (k_step == K_STEPS - 1) {    // the next stage is needed
          cp_async_wait<STAGES - 2>();  // my copies into it have landed
          __syncthreads();              // everyone's have, and everyone is done with this stage
        }
        load_fragments(k_step == K_STEPS - 1 ? next_stage : read_stage, (k_step + 1) % K_STEPS);
        if (k_step == 0) next_k_tile();
        if (k_step < COPY_STEPS)  // into the stage that everyone was done with at the last barrier
          copy(write_stage, k_step);
        if (k_step == COPY_STEPS - 1) cp_async_fence();
        cute::gemm(mma, rA(_, _, k_step), rB(_, _, k_step), acc);
      }
      read_stage = next_stage;
    }
    // [/main-loop]

    // [epilogue]
    // 4. epilogue: registers -> smem -> gmem, as many rows at a time as one stage of A holds; C comes the same way
    constexpr int ROWS = Config::SCRATCH_BYTES / (BN * sizeof(TC)), SIZE = 16 / sizeof(TC),
                  MMA_ROWS = ROWS / (Config::BM / size<1>(acc));
    const auto [tile_row, tile_col] = tile_of(c_tile);
    const int free_stage = (read_stage == 0 ? STAGES : read_stage) - 1;
    const Tensor sC = make_tensor(recast_ptr<TC>(sA(_, _, free_stage).data()), typename Config::template LayoutC<TC>{});
    const Tensor gC = local_tile(mC, Shape<Int<ROWS>, Int<BN>>{}, make_coord(_, tile_col));  // (ROWS, BN, passes)
    const Tensor cC =
        local_tile(make_identity_tensor(make_shape(M, N)), Shape<Int<ROWS>, Int<BN>>{}, make_coord(_, tile_col));

    // [c-copies]
    using Pair = std::conditional_t<sizeof(TC) == 4, float2, uint32_t>;  // two neighbouring results
    const auto r2s = make_tiled_copy_C(Copy_Atom<UniversalCopy<Pair>, TC>{}, mma);
    const Tensor tRrC = r2s.get_slice(threadIdx.x).retile_S(acc);
    const Tensor tRsC = r2s.get_slice(threadIdx.x).partition_D(sC);
    const auto s2g = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, TC>{},
                                     Layout<Shape<Int<256 * SIZE / BN>, Int<BN / SIZE>>, Stride<Int<BN / SIZE>, _1>>{},
                                     Layout<Shape<_1, Int<SIZE>>>{});
    const Tensor tSsC = s2g.get_slice(threadIdx.x).partition_S(sC);  // (SIZE, rows, 1)
    const Tensor tSgC = s2g.get_slice(threadIdx.x).partition_D(gC);  // (SIZE, rows, 1, passes)
    const Tensor tScC = s2g.get_slice(threadIdx.x).partition_D(cC);
    // [/c-copies]
    CUTE_UNROLL
    for (int pass = 0; pass < BM / ROWS; ++pass) {
      const int c_pass = tile_row * (BM / ROWS) + pass;
      if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
        CUTE_UNROLL
        for (int i = 0; i < size<1>(tSsC); ++i)
          if (elem_less(tScC(0, i, 0, c_pass), shape(mC))) cute::copy(s2g, tSgC(_, i, 0, c_pass), tSsC(_, i, 0));
        __syncthreads();
      }
      CUTE_UNROLL
      for (int m = 0; m < MMA_ROWS; ++m) {
        CUTE_UNROLL
        for (int n = 0; n < size<2>(tRsC); ++n) {
          Tensor d = make_fragment_like<TC>(tRrC(_, 0, 0));
          if (beta != 0.0F) cute::copy(r2s, tRsC(_, m, n), d);
          CUTE_UNROLL
          for (int e = 0; e < size(d); ++e) {
            const float x = alpha * static_cast<float>(tRrC(e, pass * MMA_ROWS + m, n));
            d(e) = static_cast<TC>(beta == 0.0F ? x : x + beta * static_cast<float>(d(e)));
          }
          cute::copy(r2s, d, tRsC(_, m, n));
        }
      }
      __syncthreads();
      CUTE_UNROLL
      for (int i = 0; i < size<1>(tSsC); ++i) {
        const auto [m, n] = tScC(0, i, 0, c_pass);
        if (m < M && n + SIZE <= N) cute::copy(s2g, tSsC(_, i, 0), tSgC(_, i, 0, c_pass));
        if (N % SIZE != 0) {  // then the last ones go one by one: the padding of C must stay as it is
          if (m < M && n + SIZE > N) {
            CUTE_NO_UNROLL
            for (int e = 0; n + e < N; ++e) tSgC(e, i, 0, c_pass) = tSsC(e, i, 0);
          }
        }
      }
      __syncthreads();  // the scratch is free again, and after the last pass a stage again
    }
    // [/epilogue]
  }
}

/// Calls `f` with the tile that the GPU has the shared memory for, the types and the kernel.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_cute_types(p, [&]<Type type, class TC>() {
    const auto with = [&]<class Config>() {
      const bool residue = p.m % Config::BM != 0 || p.n % Config::BN != 0 || p.k % Config::BK != 0;
      return f.template operator()<Config, type, TC>(residue ? gemm_cute<Config, type, TC, true>
                                                             : gemm_cute<Config, type, TC, false>);
    };
    return device_limits().smem_block_bytes >= Large::SMEM_BYTES ? with.template operator()<Large>()
                                                                 : with.template operator()<Small>();
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class Config, Type type, class TC>(auto kernel) {
    using T = typename CuteOperand<type>::Element;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Config::BM) * ceil_div(p.n, Config::BN), device_limits().sms);
    kernel<<<blocks, Config::THREADS, Config::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(),
                                                                      p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

Resources resources(const Problem& p) {
  return for_kernel(p, [&]<class Config, Type type, class TC>(auto kernel) {
    return Resources{(const void*)kernel, Config::THREADS, Config::SMEM_BYTES, {Config::BM, Config::BN, Config::BK}};
  });
}

}  // namespace rung_20
#else
namespace rung_20 {
constexpr auto resources = resources_without_cute;
constexpr auto launch = launch_without_cute;
}  // namespace rung_20
#endif

namespace {

const Registration registration{{
    .number = "20",
    .name = "cute_multistage",
    .idea = "the kernel of 16 in CuTe: TiledCopy, swizzled layouts, retile, stages",
    .predecessor = "16",
    .types = {Type::bf16, Type::f16},
    .arch = "sm_80",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_cute,
    .resources = rung_20::resources,
    .launch = rung_20::launch,
    .fp16_sums = {Type::f16},
}};

}  // namespace
