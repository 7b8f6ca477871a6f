// Products of few rows: the vectors of A times a matrix, all in one pass over B (BLAS calls it GEMV where there is one vector). An
// element of B is used once per row, so nothing is gained by shared memory: B goes straight from global memory to registers.
#pragma once

#include <string>

#include "common/problem.h"
#include "common/ptx/semaphore.h"
#include "common/rung.h"
#include "common/split_k.h"

namespace ladder {

/// C in strips of 128 columns. Warps and splits of K divide the rows of B.
template <int ROWS_>
struct FewRows {
  static constexpr int ROWS = ROWS_;       // of A and C: at least M
  static constexpr int BN = 128;           // columns of C per block: 16 bytes per lane
  static constexpr int WARPS = 8;          // per block
  static constexpr int UNROLL = 8;         // rows of B that a thread loads at once
  static constexpr int BLOCKS_PER_SM = 2;  // of B's bytes 64 KB are on their way to an SM
  static constexpr int THREADS = WARPS * 32;
  static_assert(ROWS <= WARPS, "warp m reduces row m");
};

/// 16 bytes that nobody reads again: the caches may drop them first.
__device__ __forceinline__ Four<float> load_once(const float* from) {
  const float4 x = __ldcs(reinterpret_cast<const float4*>(from));
  return {{x.x, x.y, x.z, x.w}};
}

/// A block has a strip (blockIdx.x) and a split (blockIdx.y), each of its warps `k_steps` rows of B. `partials` and `locks`: of the
/// splits and of the strips; unused where there is one split.
template <class Tile>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS_PER_SM)
    few_rows(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B,
             int ldb, float beta, float* __restrict__ C, int ldc, int k_steps, Four<float>* partials, unsigned* locks) {
  constexpr int ROWS = Tile::ROWS, WARPS = Tile::WARPS, UNROLL = Tile::UNROLL;
  __shared__ Four<float> sSums[WARPS][ROWS][32];
  __shared__ bool is_last;

  // 1. who am I
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int n = blockIdx.x * Tile::BN + lane * 4, split = blockIdx.y, splits = gridDim.y;

  // 2. set up
  const int first = (split * WARPS + warp) * k_steps;
  const float* gA = A + first + lane;
  const float* gB = B + static_cast<size_t>(first) * ldb + n;
  Four<float> acc[ROWS] = {};

  // [main-loop]
  // 3. main loop: UNROLL rows of B -> rB. UNROLL elements of each row of A -> rA of as many lanes, which hand them to all.
  for (int k_left = min(k_steps, K - first); k_left > 0; k_left -= UNROLL) {
    float rA[ROWS];
    Four<float> rB[UNROLL];
#pragma unroll
    for (int m = 0; m < ROWS; ++m)  // after the last row of A the same again, for results that are not stored
      rA[m] = lane < min(UNROLL, k_left) ? gA[static_cast<size_t>(min(m, M - 1)) * lda] : 0.0F;
    gA += UNROLL;
    const int rows = n < N ? k_left : 0;
#pragma unroll
    for (int u = 0; u < UNROLL; ++u, gB += ldb) {
      rB[u] = {};
      if (u < rows) rB[u] = load_once(gB);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
#pragma unroll
      for (int m = 0; m < ROWS; ++m) {
        const float a = __shfl_sync(~0U, rA[m], u);
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[m].element[e] += a * rB[u].element[e];
      }
  }
  // [/main-loop]

  // [reduction]
  const auto reduce = [&] {  // over the warps: warp m gets row m
#pragma unroll
    for (int m = 0; m < ROWS; ++m) sSums[warp][m][lane] = acc[m];
    __syncthreads();
    Four<float> sum = {};
    if (warp < ROWS)
      for (int w = 0; w < WARPS; ++w)
        for (int e = 0; e < 4; ++e) sum.element[e] += sSums[w][warp][lane].element[e];
    return sum;
  };
  Four<float> sum = reduce();
  if (splits > 1) {
    Four<float>* const strip = partials + static_cast<size_t>(blockIdx.x) * splits * ROWS * 32 + lane;
    if (warp < ROWS) strip[(split * ROWS + warp) * 32] = sum;
    __syncthreads();  // all have written
    if (threadIdx.x == 0) is_last = atom_add_acq_rel_gpu(locks + blockIdx.x, 1) == splits - 1;
    __syncthreads();  // what one thread has acquired, all may read
    if (!is_last) return;
    // The last block to come adds the splits, in the same order whichever it is.
    for (int m = 0; m < ROWS; ++m) acc[m] = {};
#pragma unroll 2
    for (int s = warp; s < splits; s += WARPS)
#pragma unroll
      for (int m = 0; m < ROWS; ++m) {
        const Four<float> x = strip[(s * ROWS + m) * 32];
        for (int e = 0; e < 4; ++e) acc[m].element[e] += x.element[e];
      }
    sum = reduce();
    if (threadIdx.x == 0) locks[blockIdx.x] = 0;  // for the next launch
  }
  // [/reduction]

  // 4. epilogue
  if (warp >= M) return;
  float* const c = C + static_cast<size_t>(warp) * ldc + n;
  for (int e = 0; e < 4; ++e)  // beta = 0 must not read C: it may hold NaN
    if (n + e < N) c[e] = alpha * sum.element[e] + (beta != 0.0F ? beta * c[e] : 0.0F);
}

/// How few_rows goes about a product: as many blocks as the SMs hold at once, if there are rows of B for all of their warps.
struct FewRowsPlan {
  int strips, splits, k_steps;
  Resources resources;
  void (*kernel)(int, int, int, float, const float*, int, const float*, int, float, float*, int, int, Four<float>*,
                 unsigned*);
};

// [plan]
template <class Tile>
FewRowsPlan few_rows_plan(const Problem& p) {
  const int strips = ceil_div(p.n, Tile::BN), blocks = device_limits().sms * Tile::BLOCKS_PER_SM;
  // Splits, at most: each warp has UNROLL rows of B, and the last block of a strip not too much to add.
  const int most = min(64, ceil_div(p.k, Tile::WARPS * Tile::UNROLL));
  const int k_steps = ceil_div(p.k, max(1, min(blocks / strips, most)) * Tile::WARPS);
  const int whole = ceil_div(k_steps, Tile::UNROLL) * Tile::UNROLL, splits = ceil_div(p.k, whole * Tile::WARPS);
  const size_t partials = splits > 1 ? sizeof(Four<float>) * 32 * Tile::ROWS * splits * strips : 0;
  const TileShape tile = {Tile::ROWS, Tile::BN, whole * Tile::WARPS};
  return {strips,
          splits,
          whole,
          {(const void*)few_rows<Tile>, Tile::THREADS, 0, tile, partials, splits > 1 ? strips : 0},
          few_rows<Tile>};
}
// [/plan]

inline FewRowsPlan few_rows_plan(const Problem& p) {
  return p.m == 1   ? few_rows_plan<FewRows<1>>(p)
         : p.m == 2 ? few_rows_plan<FewRows<2>>(p)
         : p.m <= 4 ? few_rows_plan<FewRows<4>>(p)
                    : few_rows_plan<FewRows<8>>(p);
}

inline void launch_few_rows(const Problem& p) {
  const FewRowsPlan plan = few_rows_plan(p);
  plan.kernel<<<dim3(plan.strips, plan.splits), plan.resources.threads, 0, p.stream>>>(
      p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, p.B<float>(), p.ldb, p.beta, p.C<float>(), p.ldc, plan.k_steps,
      static_cast<Four<float>*>(p.workspace), p.locks);
  cuda_check(cudaGetLastError());
}

/// "32 strips of 128 columns, 8 splits, 64 rows of B per warp", as a line for --explain.
inline std::string explain_few_rows(const Problem& p) {
  const FewRowsPlan plan = few_rows_plan(p);
  return std::to_string(plan.strips) + " strips of " + std::to_string(plan.resources.tile.n) + " columns, " +
         std::to_string(plan.splits) + (plan.splits == 1 ? " split, " : " splits, ") + std::to_string(plan.k_steps) +
         " rows of B per warp\n";
}

}  // namespace ladder
