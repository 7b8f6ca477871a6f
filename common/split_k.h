// What the rungs that cut K into slices share (17 and its neighbours): the model by which the host chooses how many, and the
// kernel that adds their sums.
#pragma once

#include <string>

#include "common/operand_types.h"
#include "common/problem.h"
#include "common/rung.h"
#include "common/stream_k.h"

namespace ladder {

// --- the model

/// A product in tiles, and the SMs that share them.
struct TiledProduct {
  int m, n;              ///< elements of C
  int c_tiles, k_tiles;  ///< tiles of C; k tiles of each
  int sms;
};

inline TiledProduct tiled(const Problem& p, const TileShape& tile, int sms) {
  return {p.m, p.n, ceil_div(p.m, tile.m) * ceil_div(p.n, tile.n), ceil_div(p.k, tile.k), sms};
}

/// What the parts of a launch cost, in clocks of an SM.
struct SliceCosts {
  double start;      ///< the launch and the first copies
  double k_tile;     ///< one k tile
  double unit;       ///< a unit (a tile of C, a slice of K) beside its k tiles
  double add;        ///< the second kernel
  double add_slice;  ///< each slice that it adds
  double add_byte;   ///< each byte of partial sums that an SM loads for it
};

// [model]
/// Clocks until all units are done: they come in waves of one per SM.
inline double multiply_clocks(const SliceCosts& cost, const TiledProduct& t, int slices) {
  const int waves = ceil_div(t.c_tiles * slices, t.sms);
  return cost.start + waves * (ceil_div(t.k_tiles, slices) * cost.k_tile + cost.unit);
}

/// Clocks of the second kernel, which one slice does not need.
inline double add_clocks(const SliceCosts& cost, const TiledProduct& t, int slices) {
  if (slices == 1) return 0;
  const double bytes = 4.0 * slices * t.m * t.n;
  return cost.add + slices * cost.add_slice + bytes / t.sms * cost.add_byte;
}
// [/model]

/// How many slices, and the clocks that this and one slice are expected to take.
struct SlicePlan {
  int slices;
  double clocks, clocks_of_one;
};

/// The number of slices for which expected_clocks(slices) is least; `most` at most, and 128.
template <class F>
SlicePlan best_slices(int most, F&& expected_clocks) {
  const SlicePlan one = {1, expected_clocks(1), expected_clocks(1)};
  SlicePlan best = one;
  for (int slices = 2; slices <= min(most, 128); ++slices)
    if (const double clocks = expected_clocks(slices); clocks < best.clocks) best = {slices, clocks, one.clocks};
  return best.clocks < 0.95 * one.clocks ? best : one;  // less than that, and the model may be wrong
}

/// "4 slices, added HOW: 41240 clocks expected; 1 slice: 86190", as a line for --explain.
inline std::string explain_slices(const SlicePlan& plan, const std::string& how) {
  const auto text = [](double clocks) { return std::to_string(static_cast<long long>(clocks)); };
  const std::string slices = plan.slices == 1 ? "1 slice" : std::to_string(plan.slices) + " slices, added " + how;
  return slices + ": " + text(plan.clocks) + " clocks expected; 1 slice: " + text(plan.clocks_of_one) + "\n";
}

/// What shares cost, in clocks of an SM.
struct ShareCosts {
  double k_tile;  ///< one k tile, where there are shares
  double fix_up;  ///< two parts in place of a whole tile: one block leaves its sums, the other adds them to its own
  double other;   ///< each further block whose sums are added
};

/// How the blocks go about a product, and how many clocks that is expected to take.
struct SchedulePlan {
  Schedule schedule;
  double clocks;
};

// [share-model]
/// The best schedule: slices (best_slices), or the tiles of the last wave shared, alone or with those of the wave before.
inline SchedulePlan best_schedule(const SliceCosts& cost, const ShareCosts& share_cost, const TiledProduct& t) {
  const SlicePlan cut = best_slices(
      t.k_tiles, [&](int slices) { return multiply_clocks(cost, t, slices) + add_clocks(cost, t, slices); });
  const int units = t.c_tiles * cut.slices, waves = t.c_tiles / t.sms;
  SchedulePlan best = {Schedule(min(units, t.sms), t.c_tiles, t.k_tiles, cut.slices, t.c_tiles), cut.clocks};
  for (const int whole_waves : {waves, max(waves - 1, 0)}) {
    const Schedule shared(t.sms, t.c_tiles, t.k_tiles, 1, whole_waves * t.sms);
    const int share = shared.share.first(1);  // the longest
    if (shared.share.least == 0) continue;
    const int others = (t.k_tiles - 1) / shared.share.least;  // beside the first; of one tile, at most
    const double clocks = cost.start + whole_waves * (t.k_tiles * share_cost.k_tile + cost.unit) +
                          share * share_cost.k_tile + share_cost.fix_up + others * share_cost.other;
    if (clocks < 0.98 * best.clocks) best = {shared, clocks};  // less than that, and the model may be wrong
  }
  return best;
}
// [/share-model]

/// What best_schedule found, as a line for --explain.
inline std::string explain_schedule(const SchedulePlan& plan) {
  const Schedule& s = plan.schedule;
  const std::string how = s.shared_tiles > 0
                              ? std::to_string(s.units) + " tiles whole, " + std::to_string(s.shared_tiles) +
                                    " shared by " + std::to_string(s.blocks) + " blocks, " +
                                    std::to_string(s.share.first(1)) + " k tiles each"
                          : s.slices == 1 ? "1 slice"
                                          : std::to_string(s.slices) + " slices, added by a second kernel";
  return how + ": " + std::to_string(static_cast<long long>(plan.clocks)) + " clocks expected\n";
}

// --- the second kernel

/// Floats from row to row of a slice's sums in the workspace: rows begin at multiples of 32 bytes.
inline int sums_ld(const Problem& p) { return ceil_div(p.n, 8) * 8; }

/// Bytes that the sums of all slices take: a matrix of p.m rows per slice.
inline size_t sums_bytes(const Problem& p, int slices) { return static_cast<size_t>(slices) * p.m * sums_ld(p) * 4; }

constexpr int ADD_THREADS = 128;

/// Four neighbouring elements of C, and four floats.
template <class TC>
struct alignas(4 * sizeof(TC)) Four {
  TC element[4];
};

/// C = alpha * (the sums of all slices, added in order) + beta * C. `sums` holds a matrix of M rows, `ld` apart, per slice.
/// Each thread has four neighbouring elements of C.
template <class TC>
__global__ void __launch_bounds__(ADD_THREADS) add_slices(int M, int N, float alpha, const float* __restrict__ sums,
                                                          int ld, int slices, float beta, TC* __restrict__ C, int ldc) {
  const int row_blocks = ceil_div(N, 4 * ADD_THREADS);  // per row of C
  const int m = blockIdx.x / row_blocks, n = (blockIdx.x % row_blocks * ADD_THREADS + threadIdx.x) * 4;
  if (n >= N) return;
  // [add]
  Four<float> sum = {};
#pragma unroll 8
  for (int slice = 0; slice < slices; ++slice) {
    const float* const part = sums + (static_cast<size_t>(slice) * M + m) * ld + n;
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

/// Launches add_slices for the sums in p.workspace.
template <class TC>
void launch_add_slices(const Problem& p, int slices) {
  const int blocks = p.m * ceil_div(p.n, 4 * ADD_THREADS);
  add_slices<TC><<<blocks, ADD_THREADS, 0, p.stream>>>(p.m, p.n, p.alpha, static_cast<const float*>(p.workspace),
                                                       sums_ld(p), slices, p.beta, p.C<TC>(), p.ldc);
  cuda_check(cudaGetLastError());
}

}  // namespace ladder
