// What 42 adds to a thread's accumulators in each k tile: which products, times which scales, and whether they are there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/layout.h"
#include "docs/exercises/explain.h"

using namespace ladder;

namespace {

// 42's numbers, under 42's names, for the learner's lines
struct Tile {
  static constexpr int WARPGROUPS = 2, WM = 64, BM = 128, BN = 128, BK = 128, BK_BYTES = 128, MMA_K_BYTES = 32;
  static constexpr int K_STEPS = 4, STAGES = 5, CONSUMERS = 256;
};
constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, BK = Tile::BK, K_STEPS = Tile::K_STEPS, K_TILES = 6;
constexpr int type = 0;
constexpr uint32_t scale_a = 0x28000, scale_b = scale_a + BM * 4, empty = 0x30000;
constexpr uint64_t a = 0x4000004000010040, b = 0x4000004000010440;  // descriptors

struct {
  unsigned x;
} threadIdx;
struct {
  int index, phase;
} state;

struct Wrong : std::runtime_error {
  using runtime_error::runtime_error;
};

float partial[BN / 8][4];   // as the thread sees it: NaN while wgmma are under way
std::vector<int> products;  // of which k steps partial is the sum: k_tile * K_STEPS + k_step
bool under_way = false;     // wgmma of this thread
int of_k_tile = 0;          // that runs
int releases = 0;           // arrivals of this thread on empty
bool released_early = false, released_other = false;

const std::string IDEA = " (chapter 42, The idea).", LINES = " (chapter 42, The lines that matter).";

std::string name(int k_tile) { return "k tile " + std::to_string(k_tile); }

/// What partial[j][e] is when the products are there.
float sum(int j, int e) { return static_cast<float>(1 + j * 4 + e); }

template <int, int N>
void wgmma(float (&d)[N / 8][4], uint64_t of_a, uint64_t of_b, int accumulate) {
  if (&d != &partial) throw Wrong("wgmma adds to partial here: acc is scaled already" + IDEA);
  if (of_a - a != of_b - b || of_a < a || (of_a - a) % 2 != 0 || (of_a - a) / 2 >= K_STEPS)
    throw Wrong("A wgmma begins " + std::to_string((of_a - a) * 16) + " bytes along k in A and " +
                std::to_string((of_b - b) * 16) + " in B. A k step has 32 bytes in both, and a row 128" + LINES);
  if (!accumulate) products.clear();
  products.push_back(of_k_tile * K_STEPS + static_cast<int>(of_a - a) / 2);
  under_way = true;
  for (auto& row : d) std::fill(row, row + 4, std::numeric_limits<float>::quiet_NaN());
}

template <int N>
void wgmma_wait_group() {
  if (N > 0) return;  // the newest group, this k tile's, stays under way
  under_way = false;
  for (int j = 0; j < BN / 8; ++j)
    for (int e = 0; e < 4; ++e) partial[j][e] = sum(j, e);
}

void mbarrier_arrive(uint32_t barrier) {
  ++releases;
  released_early |= under_way;
  released_other |= barrier != empty + state.index * 8;
}
void __syncwarp(unsigned = ~0U) {}

// Scales that tell who they are: of row r 1 + (r + 1) / 256, of the i-th k tile in scale_b 4^(i + 1)
float load_shared(uint32_t address) {
  if (address >= scale_a && address < scale_a + BM * 4 && address % 4 == 0)
    return 1 + static_cast<float>((address - scale_a) / 4 + 1) / 256;
  if (address >= scale_b && address < scale_b + 16 && address % 4 == 0)
    return std::ldexp(1.0F, 2 * (static_cast<int>(address - scale_b) / 4 + 1));
  const std::string where = address >= scale_b
                                ? std::to_string(address - scale_b) + " bytes after scale_b, which has 16"
                                : std::to_string(address - scale_a) + " bytes after scale_a";
  throw Wrong("In " + name(of_k_tile) + " a scale is read " + where +
              ": a float has 4 bytes, scale_a has 128 of them, scale_b 4, those of the k tiles from k_tile / 4 * 4 on" +
              LINES);
}

struct Scale {
  int row, b;  // -1: of none
};

Scale scale_of(float product) {
  int exponent = 0;
  const float mantissa = 2 * std::frexp(product, &exponent);  // 1 to 2
  --exponent;
  const float row = (mantissa - 1) * 256 - 1;
  return {row >= 0 && row < BM && row == std::floor(row) ? static_cast<int>(row) : -1,
          exponent % 2 == 0 && exponent >= 2 && exponent <= 8 ? exponent / 2 - 1 : -1};
}

// The holes

void multiply(int k_tile, int warp, int lane) {
#include "hole/multiply"
}

void scales(int k_tile, int warp, int lane, float (&scale)[2]) {
#include "hole/scale"
}

void promote(int k_tile, int warp, int lane, const float (&scale)[2], float (&acc)[1][BN / 8][4]) {
#include "hole/promote"
}

// What they mean

void look_at_scale(float found, int half, int k_tile, int warp, int lane) {
  const int row = (warp - 4) * 16 + mma_c(lane, half * 2).row;
  const auto [of_row, of_b] = scale_of(found);
  const std::string of = "Warp " + std::to_string(warp) + ", lane " + std::to_string(lane) + ", " + name(k_tile) +
                         ": scale[" + std::to_string(half) + "] ";
  if (of_row < 0 && of_b < 0)
    throw Wrong(of + "is " + std::to_string(found) + ", which is no scale of A times one of B: it belongs to row " +
                std::to_string(row) + " and to " + name(k_tile) + IDEA);
  if (of_row < 0) throw Wrong(of + "lacks the scale of A: that of row " + std::to_string(row) + IDEA);
  if (of_b < 0) throw Wrong(of + "lacks the scale of B: that of the block's columns in " + name(k_tile) + IDEA);
  if (of_row != row)
    throw Wrong(of + "has the scale of row " + std::to_string(of_row) + ", and the results " +
                std::to_string(half * 2) + " and " + std::to_string(half * 2 + 1) + " of a lane are in row " +
                std::to_string(row) + " of the block: row " + std::to_string(mma_c(lane, half * 2).row) +
                " of the warp's 16" +
                (of_row == mma_c(lane, half * 2).row ? ", whose first is row " + std::to_string((warp - 4) * 16) : "") +
                ". Rows " + std::to_string(mma_c(lane, 0).row) + " and " + std::to_string(mma_c(lane, 2).row) +
                " are lane " + std::to_string(lane) + "'s (chapter 10, The picture; chapter 42, The idea).");
  if (of_b != k_tile % 4)
    throw Wrong(of + "has the scale of B of " + name(k_tile / 4 * 4 + of_b) + ", and the sum is that of " +
                name(k_tile) + ": scale_b begins at k tile " + std::to_string(k_tile / 4 * 4) + ", so it is number " +
                std::to_string(k_tile % 4) + " of four" + LINES);
}

void look_at_products(int k_tile) {
  std::set<int> missing, others;
  for (int k_step = 0; k_step < K_STEPS; ++k_step)
    if (std::count(products.begin(), products.end(), k_tile * K_STEPS + k_step) != 1) missing.insert(k_step);
  for (const int product : products)
    if (product / K_STEPS != k_tile) others.insert(product / K_STEPS);
  if (!others.empty())
    throw Wrong(
        "In " + name(k_tile) + " partial also has the sum of " + name(*others.rbegin()) +
        ", and all of it is multiplied by the scales of " + name(k_tile) +
        ". Each 128 elements along k have scales of their own: the first wgmma of a k tile must not add to what "
        "there is, and each k tile is promoted by itself" +
        IDEA);
  if (!missing.empty())
    throw Wrong(
        "In " + name(k_tile) + " the products of k step " + std::to_string(*missing.begin()) +
        (std::count(products.begin(), products.end(), k_tile * K_STEPS + *missing.begin()) > 1
             ? " are in partial more than once."
             : " are not in partial: a later wgmma with 0 as its last argument does not add, it overwrites. Only "
               "the first of a k tile should") +
        LINES);
}

/// All of one thread.
void look_at(unsigned thread) {
  threadIdx.x = thread;
  const int warp = thread / 32, lane = thread % 32;
  float acc[1][BN / 8][4] = {};
  for (auto& row : partial) std::fill(row, row + 4, 0.0F);
  products.clear(), under_way = false;
  int promoted = -1;  // k tile
  for (int k_tile = 0; k_tile < K_TILES; ++k_tile) {
    of_k_tile = k_tile, state.index = k_tile % Tile::STAGES, state.phase = k_tile / Tile::STAGES % 2;
    multiply(k_tile, warp, lane);
    float scale[2] = {}, before[1][BN / 8][4];
    scales(k_tile, warp, lane, scale);
    for (int half = 0; half < 2; ++half) look_at_scale(scale[half], half, k_tile, warp, lane);
    std::copy(&acc[0][0][0], &acc[0][0][0] + BN / 2, &before[0][0][0]);
    releases = 0, released_early = released_other = false;
    promote(k_tile, warp, lane, scale, acc);
    bool same = true;
    for (int j = 0; j < BN / 8; ++j)
      for (int e = 0; e < 4; ++e) {
        const float now = acc[0][j][e], was = before[0][j][e];
        same &= now == was;
        if (std::isnan(now))
          throw Wrong(
              "In " + name(k_tile) +
              " partial is added to acc while its wgmma are still under way: only wgmma_wait_group<0>() says that "
              "those of this k tile are complete" +
              LINES);
      }
    if (!same) look_at_products(k_tile);
    if (!same && promoted != k_tile - 1)
      throw Wrong("The sum of " + name(k_tile - 1) + " is never added to acc: the first wgmma of " + name(k_tile) +
                  " overwrites it. Each k tile is promoted by itself" + IDEA);
    if (!same) promoted = k_tile;
    if (!same)
      for (int j = 0; j < BN / 8; ++j)
        for (int e = 0; e < 4; ++e) {
          const float right = before[0][j][e] + scale[e / 2] * sum(j, e), now = acc[0][j][e];
          const auto near = [&](float x) { return std::abs(now - x) <= 1e-4F * std::abs(x); };
          const std::string of = "In " + name(k_tile) + " result " + std::to_string(e) + " of columns " +
                                 std::to_string(j * 8) + " to " + std::to_string(j * 8 + 7);
          if (near(right)) continue;
          if (near(scale[e / 2] * sum(j, e)))
            throw Wrong(of + " loses the k tiles before: a promotion adds to acc" + IDEA);
          if (near(before[0][j][e] + scale[1 - e / 2] * sum(j, e)))
            throw Wrong(of + " is multiplied by the scale of the lane's other row. Results 0 and 1 are in row " +
                        std::to_string(mma_c(lane, 0).row) + " of lane " + std::to_string(lane) + ", 2 and 3 in row " +
                        std::to_string(mma_c(lane, 2).row) + ": e / 2 says which" + LINES);
          if (near(before[0][j][e] + sum(j, e))) throw Wrong(of + " is added without its scales" + IDEA);
          throw Wrong(of + " is not the sum before plus scale times partial" + IDEA);
        }
    if (released_other)
      throw Wrong(
          "A warp arrives on another mbarrier than empty of the stage that it has multiplied, empty + state.index * "
          "8" +
          LINES);
    if (released_early)
      throw Wrong("In " + name(k_tile) +
                  " a warp gives its stage back while its wgmma still read it: the producer may fill it again" + LINES);
    if (releases != (lane == 0))
      throw Wrong(
          lane == 0 && releases == 0
              ? "No lane 0 arrives on empty of the stage: the producer waits for ever before the k tile that needs "
                "it next" +
                    LINES
              : "More than one arrival per warp comes on empty of the stage, which expects one of each of the 8 "
                "warps: it is complete too early" +
                    LINES);
  }
  if (promoted != K_TILES - 1)
    throw Wrong((promoted < 0 ? "No k tile's sum is" : "The sum of " + name(K_TILES - 1) + ", the last one, is not") +
                (" added to acc, from which C is stored" + IDEA));
}

}  // namespace

int main() {
  try {
    for (unsigned thread = 128; thread < 128 + Tile::CONSUMERS; ++thread) look_at(thread);
  } catch (const Wrong& wrong) {
    finding(wrong.what());
  }
}
