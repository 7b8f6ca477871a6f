// The pipeline of 14 as one thread sees it: which copies have landed, for whom, when a stage is read or overwritten.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "docs/exercises/explain.h"

namespace {

// 14's numbers, under 14's names, for the learner's lines
struct Tile {
  static constexpr int BK_BYTES = 128, STAGES = 3, COPY_STEPS = 3, K_STEPS = 4;
};
constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES, K_TILES = 8;

struct Wrong : std::runtime_error {
  using runtime_error::runtime_error;
};

enum class Copy { not_committed, under_way, landed, known };  // known: landed, and a barrier has told everyone

std::map<int, Copy> copies;            // of this thread, by k tile
std::vector<std::vector<int>> groups;  // k tiles of each group, the oldest first
std::map<int, bool> read;  // k tiles whose last fragments are loaded: by everyone (true) or by this warp (false)
int last_wait = -1, groups_at_wait = 0, under_way_after_wait = 0, barriers = 0;

std::string k_tile_name(int k_tile) { return "k tile " + std::to_string(k_tile); }

void copy(int k_tile) {
  if (const int before = k_tile - STAGES; before >= 0 && !read[before])
    throw Wrong(
        "The copies of " + k_tile_name(k_tile) + " go into the stage of " + k_tile_name(before) +
        ", and no barrier says that all warps have loaded their last fragments from it (chapter 14, hazard 2).");
  copies[k_tile] = Copy::not_committed;
}

void cp_async_commit_group() {
  std::vector<int> group;
  for (auto& [k_tile, state] : copies)
    if (state == Copy::not_committed) state = Copy::under_way, group.push_back(k_tile);
  groups.push_back(group);
}

template <int N>
void cp_async_wait_group() {
  static_assert(N >= 0, "a number of groups");
  last_wait = N, groups_at_wait = static_cast<int>(groups.size());
  for (size_t i = 0; i + N < groups.size(); ++i)
    for (const int k_tile : groups[i])
      if (copies[k_tile] == Copy::under_way) copies[k_tile] = Copy::landed;
  under_way_after_wait = 0;
  for (const auto& [k_tile, state] : copies) under_way_after_wait += state == Copy::under_way;
}

void __syncthreads() {
  ++barriers;
  for (auto& [k_tile, state] : copies)
    if (state == Copy::landed) state = Copy::known;
  for (auto& [k_tile, by_everyone] : read) by_everyone = true;
}

void load_fragments(int k_tile, int k_step) {
  const std::string what = "Fragments of " + k_tile_name(k_tile) + " are loaded ";
  if (copies[k_tile] == Copy::under_way) {
    int group = 0;
    while (std::find(groups[group].begin(), groups[group].end(), k_tile) == groups[group].end()) ++group;
    const std::string wait = "wait_group<" + std::to_string(last_wait) + ">", hazard = " (chapter 14, hazard 1).";
    const std::string may = what + "while its copies may still be under way: ";
    if (last_wait < 0) throw Wrong(may + "nobody waits for them" + hazard);
    if (group >= groups_at_wait) throw Wrong(may + "the last " + wait + " came before their commit" + hazard);
    const std::string let = last_wait == 1 ? "youngest group" : std::to_string(last_wait) + " youngest groups";
    throw Wrong(may + wait + " lets the " + let + " be, and theirs is number " +
                std::to_string(groups_at_wait - group) + " from the youngest" + hazard);
  }
  if (copies[k_tile] == Copy::landed)
    throw Wrong(what +
                "after this thread's own copies of it have landed. But no barrier follows the wait, so nobody knows "
                "about the " +
                "copies of the other threads (chapter 14, hazard 1).");
  if (k_step == K_STEPS - 1) read[k_tile] = false;
}

void first_wait() {
#include "hole/first-wait"
}

void wait(int k_step) {
  static_cast<void>(k_step);
#include "hole/wait"
}

/// Throws Wrong at the first hazard; then says what is right and slow.
void pipeline() {
  for (int k_tile = 0; k_tile < STAGES - 1; ++k_tile) copy(k_tile), cp_async_commit_group();
  first_wait();
  load_fragments(0, 0);
  for (int k_tile = 0; k_tile < K_TILES; ++k_tile) {
    barriers = 0, last_wait = -1;
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      wait(k_step);
      load_fragments(k_step == K_STEPS - 1 ? k_tile + 1 : k_tile, (k_step + 1) % K_STEPS);
      if (k_step < Tile::COPY_STEPS) copy(k_tile + STAGES - 1);
      if (k_step == Tile::COPY_STEPS - 1) cp_async_commit_group();
    }
  }
  const int k_tile = K_TILES - 1;
  if (under_way_after_wait == 0)
    finding("There is no hazard, but the pipeline runs dry: after wait_group<", last_wait, "> in k tile ", k_tile,
            " no copy is under way. ", "Its last step needs k tile ", k_tile + 1, " alone; k tile ", k_tile + 2,
            " may take until the last step of k tile ", k_tile + 1,
            ". That is what the third stage is for (chapter 14, The idea).");
  if (barriers > 1)
    finding("There is no hazard, but there are ", barriers,
            " barriers per k tile, and one is enough: in the last step it says that the ",
            "next stage is complete and that everyone has read this one (chapter 14, The picture).");
}

}  // namespace

int main() {
  try {
    pipeline();
  } catch (const Wrong& wrong) {
    finding(wrong.what());
  }
}
