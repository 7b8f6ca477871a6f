// The fix-up of 18f on a small schedule: who is added to whom, who waits for whom, and what becomes of the locks.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/stream_k.h"
#include "docs/exercises/explain.h"

using namespace ladder;

namespace {

constexpr int K_TILES = 16, C_TILES = 15, BLOCKS = 40, LANES = 32;  // 640 x 768 x 128 on 40 SMs
constexpr Schedule schedule(BLOCKS, C_TILES, K_TILES, 1, 0);

// What the learner's lines see of CUDA, for one lane of warp 0 after the other
struct {
  unsigned x;
} threadIdx, blockIdx;

struct Tile {
  static constexpr int THREADS = 256;
};

struct NeverEnds {};  // thrown where a loop of the learner's reads locks again and again

unsigned locks[BLOCKS];
struct Lane {
  std::set<int> acquired;                  // blocks whose lock it has acquired
  std::map<int, unsigned> set, set_early;  // what it released, by block; early: before a __syncwarp()
  int votes = 0, syncs = 0;                // collective instructions
  int clears_before_sync = 0, reads = 0;
} lanes[LANES];

Lane& lane() { return lanes[threadIdx.x % LANES]; }

/// A lock's address. Reading and writing through it is a plain access, neither acquire nor release.
struct Lock {
  int block;
  struct Plain {
    int block;
    operator unsigned() const {
      if (++lane().reads > 1000) throw NeverEnds{};
      return locks[block];
    }
    unsigned operator=(unsigned value) {
      if (value == 0 && lane().syncs == 0) ++lane().clears_before_sync;
      if (value != 0) lane().set_early[block] = value;
      return locks[block] = value;
    }
  };
  Plain operator*() const { return {block}; }
};

Lock lock_of(int block) {
  if (block < 0 || block >= BLOCKS) throw std::out_of_range("There is no block " + std::to_string(block) + ".");
  return {block};
}

unsigned ld_acquire_gpu(Lock lock) {
  if (++lane().reads > 1000) throw NeverEnds{};
  lane().acquired.insert(lock.block);
  return locks[lock.block];
}
void st_release_gpu(Lock lock, unsigned value) {
  if (value == 0 && lane().syncs == 0) ++lane().clears_before_sync;
  if (value != 0) (lane().syncs ? lane().set : lane().set_early)[lock.block] = value;
  locks[lock.block] = value;
}
void __syncwarp(unsigned = ~0U) { ++lane().syncs; }
bool __any_sync(unsigned, bool here) { return ++lane().votes, here; }
bool __all_sync(unsigned, bool here) { return ++lane().votes, here; }
void __syncthreads() { ++lane().syncs; }
void __threadfence() {}

void start_lanes() {
  for (Lane& lane : lanes) lane = {};
}

// The holes

void leave() {
#include "hole/left"
}

int first_block_added(const WorkUnit& done) {
  static_cast<void>(done);
#include "hole/adds"
  return first_block;
}

void wait(int first_block) {
  static_cast<void>(first_block);
#include "hole/wait"
}

void clear(int first_block) {
  static_cast<void>(first_block);
#include "hole/clear"
}

// What they should do

struct Part {
  int block;
  WorkUnit work_unit;
};

std::vector<Part> parts_of(int c_tile) {
  std::vector<Part> parts;
  for (int block = 0; block < BLOCKS; ++block)
    for (int i = 0;; ++i) {
      const WorkUnit work_unit = work_unit_of(schedule, block, i);
      if (work_unit.k_tiles == 0) break;
      if (work_unit.c_tile == c_tile) parts.push_back({block, work_unit});
    }
  return parts;
}

std::string list(const std::vector<int>& blocks) {
  std::string text = blocks.size() == 1 ? "block " : "blocks ";
  for (size_t i = 0; i < blocks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == blocks.size() ? " and " : ", ") + std::to_string(blocks[i]);
  return text;
}

void explain_left() {
  blockIdx.x = 0;
  start_lanes();
  bool in_time = false, early = false, others = false;
  unsigned value = 1;
  for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x) {
    leave();
    for (const auto* stores : {&lane().set, &lane().set_early})
      for (const auto& [block, stored] : *stores) others |= block != 0, value = stored;
    in_time |= lane().set.contains(0), early |= lane().set_early.contains(0);
  }
  locks[0] = 0;
  if (others)
    finding(
        "A block that leaves its sums sets a lock of another block. The one to set is its own, lock_of(blockIdx.x).");
  if (!in_time && !early)
    finding(
        "Nobody sets the lock of a block that has left its sums, so the last block of the tile waits for ever, or does "
        "not wait at all.");
  if (early)
    finding(
        "The lock is set before all 32 lanes of the warp have stored their sums: a release covers what its own thread "
        "has written or ",
        "seen, and only a __syncwarp() before it shows it the stores of the other lanes (chapter 18, The fix-up).");
  if ((in_time || early) && value != 1)
    finding("The lock is set to ", value, ", and the last block of the tile waits for 1.");
}

/// Of the first tile for which that is wrong.
void explain_adds() {
  for (int c_tile = 0; c_tile < C_TILES; ++c_tile) {
    const std::vector<Part> parts = parts_of(c_tile);
    if (parts.size() < 2) continue;
    std::vector<int> all;
    for (const Part& part : parts) all.push_back(part.block);
    const int last = all.back();
    blockIdx.x = last, threadIdx.x = 0;
    const int first = first_block_added(parts.back().work_unit);
    std::vector<int> missing, added;
    for (int block = first; block < last; ++block) added.push_back(block);
    for (const int block : all)
      if (block < first) missing.push_back(block);
    const std::string tile = "Tile " + std::to_string(c_tile) + " has parts of " + list(all) + ". Block " +
                             std::to_string(last) + ", the last one, adds " +
                             (added.empty() ? "nobody's sums" : "the sums of " + list(added));
    if (!missing.empty()) {
      finding(tile, ": the products of ", list(missing),
              " are missing in its results. A tile may have more than two parts ", "(chapter 18, The picture).");
      return;
    }
    if (first != all.front()) {
      finding(tile, ", and block ", first, " has no part of it: its sums belong to another tile.");
      return;
    }
  }
}

bool ends(void (*code)(int), int first_block) {
  try {
    code(first_block);
    return true;
  } catch (const NeverEnds&) {
    return false;
  }
}

/// Block 5 adds the sums of blocks 2, 3 and 4.
void explain_wait() {
  const int first = 2, last = 5;
  blockIdx.x = last;
  std::set<int> ignored, unacquired;
  bool alone = false;  // lanes that wait neither themselves nor, at a __syncwarp(), for one that does
  for (int missing = first; missing < last; ++missing) {  // its lock is not set yet, the others' are
    start_lanes();
    bool waits = false, goes_on = false;
    for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x) {
      for (int block = first; block < last; ++block) locks[block] = block != missing;
      if (!ends(wait, first))
        waits = true;
      else if (lane().syncs == 0)
        goes_on = true;
    }
    if (!waits) ignored.insert(missing);
    alone |= waits && goes_on;
  }
  start_lanes();
  for (int block = 0; block < BLOCKS; ++block) locks[block] = 1;
  for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x) {
    if (!ends(wait, first)) {
      finding("The wait does not end when all locks are 1.");
      return;
    }
    for (int block = first; block < last; ++block)
      if (!lane().acquired.contains(block) && lane().syncs == 0) unacquired.insert(block);
  }
  const std::vector<int> early(ignored.begin(), ignored.end());
  if (static_cast<int>(early.size()) == last - first)
    finding(
        "The sums of the other blocks are added without a wait: whatever lies in the workspace then, which nobody may "
        "have written yet ",
        "(chapter 18, The fix-up).");
  else if (!early.empty())
    finding("A block that adds the sums of blocks 2, 3 and 4 does not wait for ", list(early),
            ": each of them sets a lock of its own, and ", "one says nothing about another.");
  else if (alone)
    finding(
        "Some lanes of a warp do not wait, and no __syncwarp() makes them wait for those that do: they add sums that "
        "may not be there.");
  else if (!unacquired.empty())
    finding(
        "The wait reads the locks without ld_acquire_gpu. Then the sums may be read before the lock is, in spite of "
        "the order of the ",
        "lines (chapter 18, The fix-up).");
}

void explain_clear() {
  const int first = 2, last = 5;
  blockIdx.x = last;
  start_lanes();
  for (unsigned& lock : locks) lock = 1;
  for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x) wait(first);
  bool early = false;
  for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x) {
    clear(first);
    early |= lane().clears_before_sync > 0 && lane().votes == 0;
  }
  std::vector<int> left, others;
  for (int block = 0; block < BLOCKS; ++block) {
    if (block >= first && block < last && locks[block] != 0) left.push_back(block);
    if ((block < first || block > last) && locks[block] == 0) others.push_back(block);
  }
  if (!left.empty())
    finding("After block 5 has added the sums of blocks 2, 3 and 4, the locks of ", list(left),
            " still are 1. The next launch would find ",
            "them set, and add before the sums are there (chapter 18, The fix-up).");
  if (!others.empty())
    finding("Block 5 adds the sums of blocks 2, 3 and 4, and clears the locks of ", list(others),
            ", for whom others wait.");
  if (early)
    finding(
        "A lane clears a lock while another lane of its warp may still wait for the 1: that lane then waits for ever. "
        "A __syncwarp() ",
        "before it says that all lanes have seen the locks (chapter 18, The fix-up).");
}

}  // namespace

int main() {
  try {
    explain_left();
    explain_adds();
    explain_wait();
    explain_clear();
  } catch (const std::out_of_range& error) {
    finding(error.what());
  } catch (const NeverEnds&) {  // in lines that need not wait
    finding("The fix-up does not come to an end although all locks are set.");
  }
}
