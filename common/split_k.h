// What the rungs with split-K and stream-K have in common (17 and its neighbours, 37): the model by which the host chooses the number of
// splits, and the kernel that reduces their partial sums.
#pragma once

#include <string>

#include "common/operand_types.h"
#include "common/problem.h"
#include "common/rung.h"
#include "common/stream_k.h"

namespace ladder {

// --- the model

/// A product in tiles, and how many SMs work on it.
struct TiledProduct {
  int m, n;              ///< elements of C
  int c_tiles, k_tiles;  ///< tiles of C; k tiles of each
  int sms;
};

inline TiledProduct tiled(const Problem& p, const TileShape& tile, int sms) {
  return {p.m, p.n, ceil_div(p.m, tile.m) * ceil_div(p.n, tile.n), ceil_div(p.k, tile.k), sms};
}

/// What the parts of a launch cost, in clocks of an SM.
struct SplitCosts {
  double start;            ///< the launch and the first copies
  double k_tile;           ///< one k tile
  double work_tile;        ///< a work tile (a tile of C, a split of K) in addition to its k tiles
  double reduction;        ///< the launch of the reduction kernel
  double reduction_split;  ///< each split that it adds
  double reduction_byte;   ///< each byte of partial sums that an SM loads for it
};

// [model]
/// Clocks until all work tiles are done: they come in waves of one per SM.
inline double multiply_clocks(const SplitCosts& cost, const TiledProduct& t, int splits) {
  const int waves = ceil_div(t.c_tiles * splits, t.sms);
  return cost.start + waves * (ceil_div(t.k_tiles, splits) * cost.k_tile + cost.work_tile);
}

/// Clocks of the reduction kernel, which one split does not need.
inline double reduction_clocks(const SplitCosts& cost, const TiledProduct& t, int splits) {
  if (splits == 1) return 0;
  const double bytes = 4.0 * splits * t.m * t.n;
  return cost.reduction + splits * cost.reduction_split + bytes / t.sms * cost.reduction_byte;
}
// [/model]

/// How many splits, and the clocks that this and one split are expected to take.
struct SplitPlan {
  int splits;
  double clocks, clocks_of_one;
};

/// The number of splits for which expected_clocks(splits) is least; `most` at most, and 128.
template <class F>
SplitPlan best_splits(int most, F&& expected_clocks) {
  const SplitPlan one = {1, expected_clocks(1), expected_clocks(1)};
  if (const int asked = TUNABLE(SPLITS, 0)) return {min(asked, most), expected_clocks(asked), one.clocks};
  SplitPlan best = one;
  for (int splits = 2; splits <= min(most, 128); ++splits)
    if (const double clocks = expected_clocks(splits); clocks < best.clocks) best = {splits, clocks, one.clocks};
  return best.clocks < 0.95 * one.clocks ? best : one;  // the model may be wrong by 5 %
}

/// For Rung::constants.
inline Constants constants_of(const std::string& of, const SplitCosts& c) {
  return {of,
          {{"start", c.start},
           {"k_tile", c.k_tile},
           {"work_tile", c.work_tile},
           {"reduction", c.reduction},
           {"reduction_split", c.reduction_split},
           {"reduction_byte", c.reduction_byte}}};
}

/// "4 splits, HOW: 41240 clocks expected; 1 split: 86190", as a line for --explain. `how`: "parallel" or "serial".
inline std::string explain_splits(const SplitPlan& plan, const std::string& how) {
  const auto text = [](double clocks) { return std::to_string(static_cast<long long>(clocks)); };
  const std::string splits = plan.splits == 1 ? "1 split" : std::to_string(plan.splits) + " splits, " + how;
  return splits + ": " + text(plan.clocks) + " clocks expected; 1 split: " + text(plan.clocks_of_one) + "\n";
}

/// What stream-K costs, in clocks of an SM.
struct StreamKCosts {
  double k_tile;  ///< one k tile, where there are stream-K tiles
  double
      fix_up;  ///< two work units in place of a whole tile: one block stores its partial sums, the other adds them to its own
  double other;  ///< each further block whose partial sums are added
};

inline Constants constants_of(const std::string& of, const StreamKCosts& c) {
  return {of, {{"k_tile", c.k_tile}, {"fix_up", c.fix_up}, {"other", c.other}}};
}

/// How the blocks go about a product, and how many clocks that is expected to take.
struct SchedulePlan {
  Schedule schedule;
  double clocks;
};

// [stream-k-model]
/// The best schedule: split-K (best_splits), or stream-K for the tiles of the last wave, alone or with those of the wave before.
inline SchedulePlan best_schedule(const SplitCosts& cost, const StreamKCosts& stream_k_cost, const TiledProduct& t) {
  const SplitPlan split_k = best_splits(
      t.k_tiles, [&](int splits) { return multiply_clocks(cost, t, splits) + reduction_clocks(cost, t, splits); });
  const int work_tiles = t.c_tiles * split_k.splits, waves = t.c_tiles / t.sms;
  SchedulePlan best = {Schedule(min(work_tiles, t.sms), t.c_tiles, t.k_tiles, split_k.splits, t.c_tiles),
                       split_k.clocks};
  for (const int whole_waves : {waves, max(waves - 1, 0)}) {
    const Schedule schedule(t.sms, t.c_tiles, t.k_tiles, 1, whole_waves * t.sms);
    if (schedule.stream_k.least == 0) continue;
    const int most = schedule.stream_k.first(1);  // k tiles of block 0, which has most
    const int others =
        (t.k_tiles - 1) / schedule.stream_k.least;  // blocks in addition to the first, of one tile, at most
    const double clocks = cost.start + whole_waves * (t.k_tiles * stream_k_cost.k_tile + cost.work_tile) +
                          most * stream_k_cost.k_tile + stream_k_cost.fix_up + others * stream_k_cost.other;
    if (clocks < 0.98 * best.clocks) best = {schedule, clocks};  // the model may be wrong by 2 %
  }
  return best;
}
// [/stream-k-model]

/// What best_schedule found, as a line for --explain.
inline std::string explain_schedule(const SchedulePlan& plan) {
  const Schedule& s = plan.schedule;
  const std::string how = s.stream_k_tiles > 0
                              ? std::to_string(s.work_tiles) + " whole tiles, " + std::to_string(s.stream_k_tiles) +
                                    " stream-K tiles over " + std::to_string(s.blocks) + " blocks, " +
                                    std::to_string(s.stream_k.first(1)) + " k tiles each"
                          : s.splits == 1 ? "1 split"
                                          : std::to_string(s.splits) + " splits, parallel";
  return how + ": " + std::to_string(static_cast<long long>(plan.clocks)) + " clocks expected\n";
}

// --- the reduction kernel of parallel split-K

/// Floats from row to row of a split's partial sums in the workspace: rows begin at multiples of 32 bytes.
inline int partials_ld(const Problem& p) { return ceil_div(p.n, 8) * 8; }

/// Bytes of the partial sums of all splits: a matrix of p.m rows per split.
inline size_t partials_bytes(const Problem& p, int splits) {
  return static_cast<size_t>(splits) * p.m * partials_ld(p) * 4;
}

constexpr int REDUCE_THREADS = 128;

/// Four neighbouring elements of C, and four floats.
template <class TC>
struct alignas(4 * sizeof(TC)) Four {
  TC element[4];
};

/// C = alpha * (the partial sums of all splits, added in order) + beta * C. `partials` holds a matrix of M rows, `ld` apart, per split.
/// Each thread has four neighbouring elements of C.
template <class TC>
__global__ void __launch_bounds__(REDUCE_THREADS)
    reduce_splits(int M, int N, float alpha, const float* __restrict__ partials, int ld, int splits, float beta,
                  TC* __restrict__ C, int ldc) {
  const int row_blocks = ceil_div(N, 4 * REDUCE_THREADS);  // per row of C
  const int m = blockIdx.x / row_blocks, n = (blockIdx.x % row_blocks * REDUCE_THREADS + threadIdx.x) * 4;
  if (n >= N) return;
  // [add]
  Four<float> sum = {};
#pragma unroll 8
  for (int split = 0; split < splits; ++split) {
    const float* const part = partials + (static_cast<size_t>(split) * M + m) * ld + n;
    const Four<float> x = *reinterpret_cast<const Four<float>*>(part);
    for (int e = 0; e < 4; ++e) sum.element[e] += x.element[e];
  }
  // [/add]
  TC* const gC = C + static_cast<size_t>(m) * ldc + n;
  Four<TC> c = {}, d;
  if (beta != 0.0F) c = *reinterpret_cast<const Four<TC>*>(gC);  // beta = 0 must not read C: it may hold NaN
  for (int e = 0; e < 4; ++e) {
    const float x = alpha * sum.element[e];
    d.element[e] = from_float<TC>(beta == 0.0F ? x : x + beta * to_float(c.element[e]));
  }
  if (n + 4 <= N) {
    *reinterpret_cast<Four<TC>*>(gC) = d;
  } else {  // the padding of C must stay as it is
    for (int e = 0; e < 3; ++e)
      if (n + e < N) gC[e] = d.element[e];
  }
}

/// Launches reduce_splits for the partial sums in p.workspace.
template <class TC>
void launch_reduce_splits(const Problem& p, int splits) {
  const int blocks = p.m * ceil_div(p.n, 4 * REDUCE_THREADS);
  reduce_splits<TC><<<blocks, REDUCE_THREADS, 0, p.stream>>>(p.m, p.n, p.alpha, static_cast<const float*>(p.workspace),
                                                             partials_ld(p), splits, p.beta, p.C<TC>(), p.ldc);
  cuda_check(cudaGetLastError());
}

}  // namespace ladder
