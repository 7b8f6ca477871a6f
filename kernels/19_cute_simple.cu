// 19_cute_simple · Tensor, local_tile, TiledMMA
//
// Idea              CuTe describes with one kind of object, the layout, what the rungs so far compute in index expressions: where
//                   a matrix lies, which tile of it is a block's, which elements of the tile are a lane's. A tensor is a pointer
//                   with a layout. TiledMMA knows the fragments of 10, so partition_A, _B and _C need no map of ours.
// Changed from 09   mma.sync through CuTe's atom instead of wmma, with sums in registers whose places are known: 128 x 128
//                   results per block; predicates from identity tensors instead of padded tiles. In FP16 the sums are FP16
// Expect            2.7 times 09: a warp takes 24 loads of 4 bytes for 16 HMMA, each from 8 lines of L1. That is 12 wavefronts
//                   per HMMA instead of 32, and still 1/8 of the tensor cores' rate
// Limiter now       L1, as in 09; and nothing is loaded ahead
// New instructions  mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16, in the ladder
// Limits            bf16 with FP32 sums, f16 with FP16 sums; sm_80; any M, N, K; rows a multiple of 16 bytes; CUTLASS's headers
// Run               ./run_all.sh run 19 4096 4096 4096 --type f16 --out same
// Read              docs/19_cute_simple.md
#include "common/cute_types.h"

using namespace ladder;

#if LADDER_HAS_CUTE

namespace rung_19 {  // not an anonymous one: CuTe has one of its own, and nvcc would mix them up

using namespace cute;

struct Config {
  static constexpr int BM = 128;  // rows of C per block
  static constexpr int BN = 128;  // columns of C per block
  static constexpr int BK = 32;   // elements along k per tile
  // [tiled-mma]
  // 4 x 2 warps with an atom of 16 x 8 results each, twice along n: 64 x 32 results at once, eight times
  template <Type type>
  using Mma = decltype(make_tiled_mma(MMA_Atom<typename CuteOperand<type>::Mma>{}, Layout<Shape<_4, _2, _1>>{},
                                      Tile<_64, _32, _16>{}));
  // [/tiled-mma]
  static constexpr int THREADS = 256;
};

static_assert(std::is_same_v<Config::Mma<Type::bf16>, CuteMma<Type::bf16, 4, 2>>, "the figures draw CuteMma");

template <Type type, class TC>
__global__ void __launch_bounds__(Config::THREADS)
    gemm_cute(int M, int N, int K, float alpha, const typename CuteOperand<type>::Element* __restrict__ A, int lda,
              const typename CuteOperand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C,
              int ldc) {
  constexpr Int<Config::BM> BM;
  constexpr Int<Config::BN> BN;
  constexpr Int<Config::BK> BK;

  // 1. who am I
  // [tensors]
  const Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(int64_t{lda}, _1{}));
  const Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(int64_t{ldb}, _1{}));
  const Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(int64_t{ldc}, _1{}));

  const int tiles_n = ceil_div(N, BN), tile_row = blockIdx.x / tiles_n, tile_col = blockIdx.x % tiles_n;
  const Tensor gA = local_tile(mA, make_shape(BM, BK), make_coord(tile_row, _));         // (BM, BK, k tiles)
  const Tensor gB = local_tile(mB, make_shape(BN, BK), make_coord(tile_col, _));         // (BN, BK, k tiles)
  const Tensor gC = local_tile(mC, make_shape(BM, BN), make_coord(tile_row, tile_col));  // (BM, BN)
  // [/tensors]

  // 2. set up
  // [partitions]
  const typename Config::template Mma<type> mma;
  const auto thread = mma.get_slice(threadIdx.x);
  const Tensor tAgA = thread.partition_A(gA);            // (8 elements, BM / 64, BK / 16, k tiles)
  const Tensor tBgB = thread.partition_B(gB);            // (4 elements, BN / 16, BK / 16, k tiles)
  Tensor tCgC = thread.partition_C(gC);                  // (4 results, BM / 64, BN / 16)
  Tensor rA = thread.partition_fragment_A(gA(_, _, 0));  // (8 elements, BM / 64, BK / 16)
  Tensor rB = thread.partition_fragment_B(gB(_, _, 0));  // (4 elements, BN / 16, BK / 16)
  Tensor acc = thread.partition_fragment_C(gC);          // (4 results, BM / 64, BN / 16)
  clear(acc);
  // [/partitions]

  // [identity]
  // An identity tensor holds in each place the coordinates of the place. Cut as A is, it tells a lane where its elements lie.
  const auto places = [&](const auto& m, auto rows, auto columns, auto coord) {
    return local_tile(make_identity_tensor(shape(m)), make_shape(rows, columns), coord);
  };
  const Tensor tAcA = thread.partition_A(places(mA, BM, BK, make_coord(tile_row, _)));
  const Tensor tBcB = thread.partition_B(places(mB, BN, BK, make_coord(tile_col, _)));
  const Tensor tCcC = thread.partition_C(places(mC, BM, BN, make_coord(tile_row, tile_col)));
  const auto load = [&](bool whole, const auto& src, const auto& src_places, const auto& m, auto& dst) {
    if (whole) {  // pairs along k, 4 bytes, as rows are a multiple of 16
      copy(AutoVectorizingCopyWithAssumedAlignment<32>{}, src, dst);
    } else {
      CUTE_UNROLL
      for (int i = 0; i < size(dst); ++i)
        dst(i) = elem_less(src_places(i), shape(m)) ? src(i) : typename std::decay_t<decltype(dst)>::value_type(0);
    }
  };
  // [/identity]

  // [main-loop]
  // 3. main loop: gmem -> registers -mma-> acc
  const bool rows_whole = (tile_row + 1) * BM <= M && (tile_col + 1) * BN <= N;
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < size<2>(gA); ++k_tile) {
    const bool whole = rows_whole && (k_tile + 1) * BK <= K;
    load(whole, tAgA(_, _, _, k_tile), tAcA(_, _, _, k_tile), mA, rA);
    load(whole, tBgB(_, _, _, k_tile), tBcB(_, _, _, k_tile), mB, rB);
    gemm(mma, rA, rB, acc);
  }
  // [/main-loop]

  // 4. epilogue
  CUTE_UNROLL
  for (int i = 0; i < size(acc); ++i) {
    if (!elem_less(tCcC(i), shape(mC))) continue;
    const float x = alpha * static_cast<float>(acc(i));
    tCgC(i) = static_cast<TC>(beta == 0.0F ? x : x + beta * static_cast<float>(tCgC(i)));  // beta = 0 must not read C
  }
}

void launch(const Problem& p) {
  for_cute_types(p, [&]<Type type, class TC>() {
    using T = typename CuteOperand<type>::Element;
    const int blocks = ceil_div(p.m, Config::BM) * ceil_div(p.n, Config::BN);
    gemm_cute<type, TC><<<blocks, Config::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(),
                                                                  p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

Resources resources(const Problem& p) {
  return for_cute_types(p, [&]<Type type, class TC>() {
    return Resources{(const void*)gemm_cute<type, TC>, Config::THREADS, 0, {Config::BM, Config::BN, Config::BK}};
  });
}

}  // namespace rung_19
#else
namespace rung_19 {
constexpr auto resources = resources_without_cute;
constexpr auto launch = launch_without_cute;
}  // namespace rung_19
#endif

namespace {

const Registration registration{{
    .number = "19",
    .name = "cute_simple",
    .idea = "CuTe: tensors, local_tile, TiledMMA and its partitions",
    .predecessor = "09",
    .types = {Type::bf16, Type::f16},
    .arch = "sm_80",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_cute,
    .resources = rung_19::resources,
    .launch = rung_19::launch,
    .fp16_sums = {Type::f16},
}};

}  // namespace
