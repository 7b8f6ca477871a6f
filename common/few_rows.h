// Products of few rows: the vectors of A times a matrix, all in one pass over B (BLAS calls it GEMV where there is one vector). An
// element of B is used once per row, so nothing is gained by shared memory: B goes straight from global memory to registers. One kernel
// is for B whose rows lie across k (K x N), one for B whose rows lie along k (N x K, K-major). Either takes A as it is stored.
#pragma once

#include <string>

#include "common/problem.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/semaphore.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"
#include "common/split_k.h"

namespace ladder {

/// B is K x N. C in strips of 128 columns. Warps and splits of K divide the rows of B.
template <int ROWS_>
struct FewRows {
  static constexpr int ROWS = ROWS_;       // of A and C: at least M
  static constexpr int BN = 128;           // columns of C per block: 16 bytes per lane
  static constexpr int WARPS = 8;          // per block
  static constexpr int UNROLL = 8;         // rows of B that a thread loads at once
  static constexpr int BLOCKS_PER_SM = 2;  // of B's bytes 64 KB are on their way to an SM
  static constexpr int THREADS = WARPS * 32;
  static constexpr int STEP = WARPS * UNROLL;  // elements along k that a block takes at once
  static_assert(ROWS <= WARPS, "warp m reduces row m");
};

/// B is N x K. C in strips of 64 columns, which warps divide. Lanes and splits divide K.
template <int ROWS_>
struct FewRowsAlongK {
  static constexpr int ROWS = ROWS_;  // as above, likewise BN, WARPS, BLOCKS_PER_SM and STEP
  static constexpr int WARPS = 8;
  static constexpr int COLUMNS = 8;  // of C per warp: rows of B, of which a lane loads 16 bytes each at once
  static constexpr int BN = WARPS * COLUMNS;
  static constexpr int BLOCKS_PER_SM = 2;
  static constexpr int THREADS = WARPS * 32;
  static constexpr int STEP = 32 * 4;
  static constexpr int CHUNK = 8192 / ROWS;               // elements of each row of A in shared memory
  static constexpr int LD = CHUNK + 32 / ROWS;            // stored by columns, too, A comes without bank conflicts
  static constexpr int SUMS = ROWS * COLUMNS;             // of a warp
  static constexpr int HELD = SUMS < 32 ? 1 : SUMS / 32;  // of them per lane, in the end
  static_assert(CHUNK % STEP == 0 && LD % 4 == 0, "whole steps; 16-byte loads");
};

/// 16 bytes that nobody reads again: the caches may drop them first.
__device__ __forceinline__ Four<float> load_once(const float* from) {
  const float4 x = __ldcs(reinterpret_cast<const float4*>(from));
  return {{x.x, x.y, x.z, x.w}};
}

/// Whether this block is the last of its strip: then it sees the partials of all splits. For all threads, after their stores.
__device__ __forceinline__ bool is_last_split(unsigned* lock, int splits) {
  __shared__ bool is_last;
  __syncthreads();  // all have written
  if (threadIdx.x == 0) is_last = atom_add_acq_rel_gpu(lock, 1) == splits - 1;
  __syncthreads();  // what one thread has acquired, all may read
  return is_last;
}

/// A block has a strip (blockIdx.x) and a split (blockIdx.y) of `k_range` rows of B, which its warps divide. Element (m, k) of A is at
/// m * a_row + k * a_column. `partials` and `locks`: of the splits and of the strips; unused where there is one split.
template <class Tile>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS_PER_SM)
    few_rows(int M, int N, int K, float alpha, const float* __restrict__ A, int a_row, int a_column,
             const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc, int k_range,
             float* partials, unsigned* locks) {
  constexpr int ROWS = Tile::ROWS, WARPS = Tile::WARPS, UNROLL = Tile::UNROLL;
  __shared__ Four<float> sSums[WARPS][ROWS][32];

  // 1. who am I
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int n = blockIdx.x * Tile::BN + lane * 4, split = blockIdx.y, splits = gridDim.y;

  // 2. set up
  const int k_steps = k_range / WARPS, first = split * k_range + warp * k_steps;
  const float* gA = A + static_cast<size_t>(first + lane) * a_column;
  const float* gB = B + static_cast<size_t>(first) * ldb + n;
  Four<float> acc[ROWS] = {};

  // [main-loop]
  // 3. main loop: UNROLL rows of B -> rB. UNROLL elements of each row of A -> rA of as many lanes, which hand them to all.
  for (int k_left = min(k_steps, K - first); k_left > 0; k_left -= UNROLL) {
    float rA[ROWS];
    Four<float> rB[UNROLL];
#pragma unroll
    for (int m = 0; m < ROWS; ++m)  // after the last row of A the same again, for results that are not stored
      rA[m] = lane < min(UNROLL, k_left) ? gA[static_cast<size_t>(min(m, M - 1)) * a_row] : 0.0F;
    gA += static_cast<size_t>(UNROLL) * a_column;
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
    Four<float>* const strip =
        reinterpret_cast<Four<float>*>(partials) + static_cast<size_t>(blockIdx.x) * splits * ROWS * 32 + lane;
    if (warp < ROWS) strip[(split * ROWS + warp) * 32] = sum;
    if (!is_last_split(locks + blockIdx.x, splits)) return;
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

/// Adds COUNT sums over the lanes of a warp. Two lanes that differ in BIT exchange halves of their sums, and each goes on with one half;
/// with a single sum, both add the same. In the end x[0] of a lane is sum number lane * COUNT / 32, x[1] the next one.
template <int COUNT, int BIT>
__device__ __forceinline__ void add_over_lanes(float* x, int lane) {
  const bool upper = lane & BIT;
  if constexpr (COUNT == 1) {
    x[0] += __shfl_xor_sync(~0U, x[0], BIT);
  } else {
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i) {
      const float low = x[i], high = x[COUNT / 2 + i];
      x[i] = (upper ? high : low) + __shfl_xor_sync(~0U, upper ? low : high, BIT);
    }
  }
  if constexpr (BIT > 1) add_over_lanes<COUNT == 1 ? 1 : COUNT / 2, BIT / 2>(x, lane);
}

/// Likewise for B along k: a split has `k_range` elements of each row of B.
template <class Tile>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS_PER_SM)
    few_rows_along_k(int M, int N, int K, float alpha, const float* __restrict__ A, int a_row, int a_column,
                     const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc, int k_range,
                     float* partials, unsigned* locks) {
  constexpr int ROWS = Tile::ROWS, WARPS = Tile::WARPS, COLUMNS = Tile::COLUMNS, STEP = Tile::STEP;
  constexpr int CHUNK = Tile::CHUNK, LD = Tile::LD, SUMS = Tile::SUMS, HELD = Tile::HELD;
  __shared__ __align__(16) float sA[ROWS * LD];

  // 1. who am I
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int n = blockIdx.x * Tile::BN + warp * COLUMNS, split = blockIdx.y, splits = gridDim.y;

  // 2. set up
  const int columns = min(COLUMNS, N - n);  // of C, for this warp: may be none
  const int first = split * k_range, last = first + min(k_range, K - first);
  const int whole = last / 4 * 4;  // up to here by 16 bytes: a row of B may end at K
  int k = first + lane * 4;
  const float* gB = B + static_cast<size_t>(n) * ldb + k;
  float acc[SUMS] = {};  // [ROWS][COLUMNS]
  Four<float> rB[COLUMNS] = {};

  /// 16 bytes of each of the warp's rows of B -> rB. Those after the last row stay zero.
  const auto load = [&] {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)
      if (c < columns) rB[c] = load_once(gB + c * static_cast<size_t>(ldb));
    gB += STEP;
  };

  /// A from `chunk` on -> sA[ROWS][LD], in which rows after the last one of A are zero. Neighbouring threads copy neighbours in memory.
  const auto copy = [&](int chunk) {
    const int extent = min(CHUNK, last - chunk);
    const float* gA = A + static_cast<size_t>(chunk) * a_column;
    if (a_column == 1) {  // stored by rows
#pragma unroll 1
      for (int m = 0; m < ROWS; ++m) {
        const float* const row = gA + static_cast<size_t>(min(m, M - 1)) * a_row;
        const int whole = extent / 4 * 4;
#pragma unroll 1
        for (int x = threadIdx.x * 4; x < whole; x += Tile::THREADS * 4)
          cp_async_cg_16(shared_address(sA + m * LD + x), row + x, m < M ? 16 : 0);
        if (const int x = whole + threadIdx.x; x < extent)
          cp_async_ca_4(shared_address(sA + m * LD + x), row + x, m < M ? 4 : 0);
      }
    } else {
      const int m = threadIdx.x % ROWS;
#pragma unroll 4
      for (int x = threadIdx.x / ROWS; x < extent; x += Tile::THREADS / ROWS)
        cp_async_ca_4(shared_address(sA + m * LD + x), gA + static_cast<size_t>(x) * a_column + min(m, M - 1),
                      m < M ? 4 : 0);
    }
    cp_async_commit_group();
    cp_async_wait_group<0>();
    __syncthreads();  // of all threads
  };

  // [main-loop-along-k]
  // 3. main loop: gmem -> rB, 16 bytes of each row; A, gmem -cp.async-> sA, once per chunk. The first rB are on their way before A is.
  if (k < whole) load();
  int chunk = first;
  for (;; chunk += CHUNK) {
    copy(chunk);
    for (const int end = min(chunk + CHUNK, whole); k < end;) {
#pragma unroll
      for (int m = 0; m < ROWS; ++m) {
        const Four<float> a = *reinterpret_cast<const Four<float>*>(sA + m * LD + k - chunk);
#pragma unroll
        for (int e = 0; e < 4; ++e)
#pragma unroll
          for (int c = 0; c < COLUMNS; ++c) acc[m * COLUMNS + c] += a.element[e] * rB[c].element[e];
      }
      k += STEP;
      if (k < whole) load();
    }
    if (last - chunk <= CHUNK) break;
    __syncthreads();  // all have read this chunk
  }
  // [/main-loop-along-k]
  if (whole + lane < last) {  // the last one to three elements, one per lane
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      const float b = c < columns ? B[static_cast<size_t>(n + c) * ldb + whole + lane] : 0.0F;
#pragma unroll
      for (int m = 0; m < ROWS; ++m) acc[m * COLUMNS + c] += sA[m * LD + whole + lane - chunk] * b;
    }
  }
  __syncwarp();

  // [reduction-along-k]
  add_over_lanes<SUMS, 16>(acc, lane);
  const int held = lane * SUMS / 32;
  const bool stores = lane * SUMS % 32 == 0;  // of the lanes with the same sum
  if (splits > 1) {
    float* const strip = partials + (static_cast<size_t>(blockIdx.x) * splits * WARPS + warp) * SUMS + held;
    for (int i = 0; i < HELD; ++i)
      if (stores) strip[split * WARPS * SUMS + i] = acc[i];
    if (!is_last_split(locks + blockIdx.x, splits)) return;
    // The last block to come adds the splits, in the same order whichever it is.
    for (int i = 0; i < HELD; ++i) acc[i] = 0;
#pragma unroll 4
    for (int s = 0; s < splits; ++s)
#pragma unroll
      for (int i = 0; i < HELD; ++i) acc[i] += strip[s * WARPS * SUMS + i];
    if (threadIdx.x == 0) locks[blockIdx.x] = 0;  // for the next launch
  }
  // [/reduction-along-k]

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    const int m = (held + i) / COLUMNS, c = (held + i) % COLUMNS;
    if (!stores || m >= M || c >= columns) continue;
    float* const to = C + static_cast<size_t>(m) * ldc + n + c;
    *to = alpha * acc[i] + (beta != 0.0F ? beta * *to : 0.0F);  // beta = 0 must not read C: it may hold NaN
  }
}

/// How few_rows goes about a product: as many blocks as the SMs hold at once, if there are elements along k for all of them.
struct FewRowsPlan {
  int strips, splits, k_range;
  Resources resources;
  void (*kernel)(int, int, int, float, const float*, int, int, const float*, int, float, float*, int, int, float*,
                 unsigned*);
};

// [plan]
template <class Tile>
FewRowsPlan few_rows_plan(const Problem& p, decltype(FewRowsPlan::kernel) kernel) {
  const int strips = ceil_div(p.n, Tile::BN), blocks = device_limits().sms * Tile::BLOCKS_PER_SM;
  // Splits, at most: each has a step, and the last block of a strip not too much to add.
  const int most = min(64, ceil_div(p.k, Tile::STEP));
  const int k_range = ceil_div(ceil_div(p.k, max(1, min(blocks / strips, most))), Tile::STEP) * Tile::STEP;
  const int splits = ceil_div(p.k, k_range);
  const size_t partials = splits > 1 ? sizeof(float) * Tile::ROWS * Tile::BN * splits * strips : 0;
  const TileShape tile = {Tile::ROWS, Tile::BN, k_range};
  return {strips,
          splits,
          k_range,
          {(const void*)kernel, Tile::THREADS, 0, tile, partials, splits > 1 ? strips : 0},
          kernel};
}
// [/plan]

inline bool is_along_k(const Problem& p) { return p.layout_b == MatrixLayout::col_major; }

template <int ROWS>
FewRowsPlan few_rows_plan(const Problem& p) {
  return is_along_k(p) ? few_rows_plan<FewRowsAlongK<ROWS>>(p, few_rows_along_k<FewRowsAlongK<ROWS>>)
                       : few_rows_plan<FewRows<ROWS>>(p, few_rows<FewRows<ROWS>>);
}

inline FewRowsPlan few_rows_plan(const Problem& p) {
  return p.m == 1   ? few_rows_plan<1>(p)
         : p.m == 2 ? few_rows_plan<2>(p)
         : p.m <= 4 ? few_rows_plan<4>(p)
                    : few_rows_plan<8>(p);
}

inline void launch_few_rows(const Problem& p) {
  const FewRowsPlan plan = few_rows_plan(p);
  const bool a_stored = p.layout_a == MatrixLayout::row_major;
  plan.kernel<<<dim3(plan.strips, plan.splits), plan.resources.threads, 0, p.stream>>>(
      p.m, p.n, p.k, p.alpha, p.A<float>(), a_stored ? p.lda : 1, a_stored ? 1 : p.lda, p.B<float>(), p.ldb, p.beta,
      p.C<float>(), p.ldc, plan.k_range, static_cast<float*>(p.workspace), p.locks);
  cuda_check(cudaGetLastError());
}

/// "32 strips of 128 columns, 8 splits, 64 rows of B per warp", or "..., 1024 elements of 8 rows of B per warp", as a line for --explain.
inline std::string explain_few_rows(const Problem& p) {
  const FewRowsPlan plan = few_rows_plan(p);
  const std::string per_warp = is_along_k(p) ? std::to_string(plan.k_range) + " elements of " +
                                                   std::to_string(FewRowsAlongK<1>::COLUMNS) + " rows"
                                             : std::to_string(plan.k_range / FewRows<1>::WARPS) + " rows";
  return std::to_string(plan.strips) + " strips of " + std::to_string(plan.resources.tile.n) + " columns, " +
         std::to_string(plan.splits) + (plan.splits == 1 ? " split, " : " splits, ") + per_warp + " of B per warp\n";
}

}  // namespace ladder
