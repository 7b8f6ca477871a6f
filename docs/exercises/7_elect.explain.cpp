// Who does what in the set-up of 47 and in its main loop: one lane, all lanes of a warp together, or all warps.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "docs/exercises/explain.h"

namespace {

// 47's numbers, under 47's names, for the learner's lines
struct Tile {
  static constexpr int THREADS = 128, STAGES = 4, MMA_K_BYTES = 32, BN = 256;
};
constexpr int STAGES = Tile::STAGES, BN = Tile::BN, K_STEPS = 4, WARPS = Tile::THREADS / 32, type = 0;
constexpr uint32_t full = 0x30000, multiplied = full + STAGES * 8, address = multiplied + 8, acc = 0, INSTRUCTION = 0;
constexpr uint64_t a = 0x4000404000010040, b = 0x4000404000010440;  // descriptors
constexpr int map_a = 0, map_b = 0;

struct {
  unsigned x;
} threadIdx;

struct Wrong : std::runtime_error {
  using runtime_error::runtime_error;
};

/// What a thread does, in its order.
enum What { ELECT, INIT, FENCE, PREFETCH, SYNCWARP, ALLOC, RELINQUISH, SYNCTHREADS, MMA, COMMIT };
struct Event {
  What what;
  uint64_t of;  // mbarrier, columns or k step
};
using Trace = std::vector<Event>;
std::vector<Trace> traces;  // by thread

void did(What what, uint64_t of = 0) { traces[threadIdx.x].push_back({what, of}); }

bool elect_sync() { return did(ELECT), threadIdx.x % 32 == 0; }
void mbarrier_init(uint32_t barrier, uint32_t count) {
  if (count != 1)
    throw Wrong(
        "A phase of these mbarriers expects one arrival: that of expect_tx, or of a commit (chapter 47, The lines that "
        "matter).");
  did(INIT, barrier);
}
void fence_mbarrier_init() { did(FENCE); }
void prefetch_tensormap(int) { did(PREFETCH); }
void __syncwarp(unsigned = ~0U) { did(SYNCWARP); }
void __syncthreads() { did(SYNCTHREADS); }
void tcgen05_alloc(uint32_t to, uint32_t columns) {
  if (to != address)
    throw Wrong(
        "tcgen05_alloc writes the address of the columns elsewhere than to `address`, where all threads read it.");
  did(ALLOC, columns);
}
void tcgen05_relinquish_alloc_permit() { did(RELINQUISH); }
template <int>
struct Tcgen05 {
  static void mma(uint32_t, uint64_t of_a, uint64_t, uint32_t, bool) { did(MMA, (of_a - a) / 2); }
};
void tcgen05_commit(uint32_t barrier) {
  if (barrier != multiplied)
    throw Wrong("The commit arrives on another mbarrier than `multiplied`, on which the warp waits.");
  did(COMMIT);
}

// The holes

void set_up() {
  const int warp = threadIdx.x / 32;
  [[maybe_unused]] const int lane = threadIdx.x % 32;
#include "hole/set-up"
}

void issue(bool first) {
  const int warp = threadIdx.x / 32;
  [[maybe_unused]] const int lane = threadIdx.x % 32;
#include "hole/issue"
}

// What they mean

const std::string ALLOCATION = " (chapter 47, The lines that matter: Allocation).",
                  ONE_LANE = " (chapter 47, One lane does it all).";

int count(const Trace& trace, What what) {
  return static_cast<int>(std::count_if(trace.begin(), trace.end(), [&](Event e) { return e.what == what; }));
}

/// Threads that do it, first to last.
std::vector<int> who(What what) {
  std::vector<int> found;
  for (size_t thread = 0; thread < traces.size(); ++thread)
    if (count(traces[thread], what) > 0) found.push_back(static_cast<int>(thread));
  return found;
}

std::string threads(const std::vector<int>& found) {
  if (found.size() == 1) return "thread " + std::to_string(found[0]) + " alone";
  if (found.size() == traces.size()) return "all " + std::to_string(found.size()) + " threads";
  return std::to_string(found.size()) + " threads";
}

const std::string ALL_LANES =
    "It elects one of the 32 lanes, and all of them have to be there: it waits for those that are not (glossary, "
    "elected "
    "lane).";
const std::string ALIGNED = "It is .aligned: all 32 lanes of a warp execute it together" + ALLOCATION;

/// All lanes of a warp that does it have to, for the reason `why`.
void look_at_lanes(What what, const std::string& name, const std::string& why) {
  for (size_t warp = 0; warp * 32 < traces.size(); ++warp) {
    std::vector<int> lanes;
    for (int lane = 0; lane < 32; ++lane)
      if (count(traces[warp * 32 + lane], what) > 0) lanes.push_back(lane);
    if (!lanes.empty() && lanes.size() < 32)
      throw Wrong("Only " + std::to_string(lanes.size()) + (lanes.size() == 1 ? " lane" : " lanes") + " of warp " +
                  std::to_string(warp) + " executes " + name + ". " + why);
  }
}

/// In lane 0, the one that is elected, something stands between the others' last common instruction and this one.
void look_at_convergence(What what, const std::string& name) {
  for (size_t warp = 0; warp * 32 < traces.size(); ++warp) {
    const Trace &elected = traces[warp * 32], &other = traces[warp * 32 + 1];
    bool apart = false;
    size_t at = 0;
    for (const Event& event : elected) {
      const bool common = at < other.size() && other[at].what == event.what && other[at].of == event.of;
      at += common;
      if (!common) apart = true;
      if (common && (event.what == SYNCWARP || event.what == SYNCTHREADS)) apart = false;
      if (common && event.what == what && apart)
        throw Wrong("Lane 0 of warp " + std::to_string(warp) +
                    " comes from lines that the other lanes do not execute, and " + name +
                    " is .aligned: nothing says that the lanes are together again. A __syncwarp() before it does "
                    "(chapter 24, The lines that matter).");
    }
  }
}

void look_at_set_up() {
  traces.assign(Tile::THREADS, {});
  for (threadIdx.x = 0; threadIdx.x < Tile::THREADS; ++threadIdx.x) set_up();
  look_at_lanes(ELECT, "elect_sync()", ALL_LANES);
  std::map<uint64_t, int> inits;
  for (const Trace& trace : traces)
    for (const Event& event : trace)
      if (event.what == INIT) ++inits[event.of];
  for (int i = 0; i <= STAGES; ++i) {
    const uint32_t barrier = i < STAGES ? full + i * 8 : multiplied;
    const std::string name = i < STAGES ? "full of stage " + std::to_string(i) : "multiplied";
    const int found = inits.contains(barrier) ? inits[barrier] : 0;
    if (found == 0)
      throw Wrong("Nobody initialises the mbarrier " + name +
                  ". What lies in shared memory at a launch is unknown (chapter 21, An mbarrier's life).");
    if (found > 1)
      throw Wrong(
          std::to_string(found) + " threads initialise the mbarrier " + name +
          (found == WARPS ? ", one of each warp: elect_sync() elects a lane in every warp that executes it" : "") +
          ". One thread of the block does it: warp == 0 and the elected lane of it" + ONE_LANE);
  }
  if (who(FENCE).empty())
    throw Wrong(
        "No fence_mbarrier_init() follows mbarrier_init: TMA and the tensor cores reach the mbarriers by another way, "
        "and may find them as they were (chapter 21, The lines that matter).");
  for (const int thread : who(INIT)) {
    const Trace& trace = traces[thread];
    const auto last = [&](What what) {
      for (int i = static_cast<int>(trace.size()) - 1; i >= 0; --i)
        if (trace[i].what == what) return i;
      return -1;
    };
    if (last(FENCE) < last(INIT))
      throw Wrong(
          "The thread that initialises the mbarriers executes fence_mbarrier_init() before, or not at all: it is for "
          "its own mbarrier_init, and comes after them (chapter 21, The lines that matter).");
  }
  const auto allocating = who(ALLOC);
  if (allocating.empty()) throw Wrong("Nobody allocates columns of tensor memory" + ALLOCATION);
  look_at_lanes(ALLOC, "tcgen05_alloc", ALIGNED);
  if (allocating.size() > 32)
    throw Wrong(std::to_string(allocating.size() / 32) + " warps allocate " + std::to_string(BN) +
                " columns each, and an SM has 512: one warp allocates for the block, or some wait for ever" +
                ALLOCATION);
  for (const Trace& trace : traces)
    for (const Event& event : trace)
      if (event.what == ALLOC && event.of != BN)
        throw Wrong("A block needs " + std::to_string(BN) + " columns, one per column of its tile, and " +
                    std::to_string(event.of) + " are allocated" + ALLOCATION);
  look_at_convergence(ALLOC, "tcgen05_alloc");
  if (who(RELINQUISH).empty())
    throw Wrong(
        "Nobody says that this block allocates no more: tcgen05_relinquish_alloc_permit. Another block of the SM would "
        "wait" +
        ALLOCATION);
  look_at_lanes(RELINQUISH, "tcgen05_relinquish_alloc_permit", ALIGNED);
  look_at_convergence(RELINQUISH, "tcgen05_relinquish_alloc_permit");
  const auto met = who(SYNCTHREADS);
  if (!met.empty() && met.size() < traces.size())
    throw Wrong(threads(met) + " executes __syncthreads(), and it waits for all threads of the block: for ever");
  for (const Trace& trace : traces) {
    bool done = false;
    for (const Event& event : trace)
      done =
          event.what == SYNCTHREADS || (done && event.what != INIT && event.what != ALLOC && event.what != RELINQUISH);
    if (!done)
      throw Wrong(
          "No __syncthreads() follows: the other warps read `address` and wait on the mbarriers while warp 0 may still "
          "be writing them (chapter 47, The lines that matter).");
  }
}

void look_at_issue() {
  traces.assign(32, {});
  for (threadIdx.x = 0; threadIdx.x < 32; ++threadIdx.x) issue(true);
  look_at_lanes(ELECT, "elect_sync()", ALL_LANES);
  const auto issuing = who(MMA), committing = who(COMMIT);
  if (issuing.empty()) throw Wrong("Nobody issues the mma of this k tile.");
  if (issuing.size() > 1)
    throw Wrong("The mma of a k tile are issued by " + threads(issuing) +
                ": each of them multiplies the whole tile once more. "
                "wgmma is executed by four warps, tcgen05.mma by one thread" +
                ONE_LANE);
  if (committing.empty())
    throw Wrong(
        "Nobody commits: the mbarrier `multiplied` never hears of the end of the mma, and the warp waits for ever "
        "(chapter 47, The idea).");
  if (committing.size() > 1)
    throw Wrong("tcgen05_commit is executed by " + threads(committing) +
                ": that many arrivals come at `multiplied`, which expects one. And a commit is about the mma of its "
                "own thread" +
                ONE_LANE);
  if (issuing != committing)
    throw Wrong("Thread " + std::to_string(committing[0]) + " commits, and thread " + std::to_string(issuing[0]) +
                " has issued the mma: a commit is about those of its own thread, so nobody waits for these (chapter "
                "47, The idea).");
  const Trace& trace = traces[issuing[0]];
  if (count(trace, MMA) != K_STEPS)
    throw Wrong("A k tile has " + std::to_string(K_STEPS) + " k steps, and " + std::to_string(count(trace, MMA)) +
                " mma are issued.");
  if (trace.back().what != COMMIT)
    throw Wrong(
        "The commit comes before an mma: it is about those that its thread has issued before (chapter 47, The idea).");
}

void guarded(void (*look)()) {
  try {
    look();
  } catch (const Wrong& wrong) {
    finding(wrong.what());
  }
}

}  // namespace

int main() {
  guarded(look_at_set_up);
  guarded(look_at_issue);
}
