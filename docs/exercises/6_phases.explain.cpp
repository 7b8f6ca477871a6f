// The pipeline of 23: whose phases the waits of producer and consumers wait for, and which arrivals complete them.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "docs/exercises/explain.h"

#define __device__
#define __forceinline__ inline
#include "common/hopper/pipeline.h"

using namespace ladder;

namespace {

// 23's numbers, under 23's names, for the learner's lines
struct Tile {
  static constexpr int WARPGROUPS = 2, CONSUMERS = 256, STAGES = 4, BK_BYTES = 128, THREADS = 384;
};
constexpr int STAGES = Tile::STAGES, WARPS = Tile::CONSUMERS / 32, K_TILES = 3 * STAGES;
constexpr uint32_t full = 0x1000, empty = full + STAGES * 8;

struct {
  unsigned x;
} threadIdx;

struct Wait {
  uint32_t barrier, parity;
};
std::map<uint32_t, uint32_t> arrivals;  // that complete a phase, by mbarrier
std::vector<Wait> waits;                // of the hole that runs
std::vector<uint32_t> arrived;          // mbarriers, likewise

void mbarrier_init(uint32_t barrier, uint32_t count) { arrivals[barrier] = count; }
void mbarrier_wait_parity(uint32_t barrier, uint32_t parity) { waits.push_back({barrier, parity & 1}); }
void mbarrier_arrive(uint32_t barrier) { arrived.push_back(barrier); }
bool elect_sync() { return threadIdx.x % 32 == 0; }
void __syncwarp(unsigned = ~0U) {}

// The holes

void init() {
  for (int stage = 0; stage < STAGES; ++stage) {
#include "hole/arrivals"
  }
}

void producer_acquire(PipelineState<STAGES> state) {
#include "hole/producer-acquire"
}

void consumer_wait(PipelineState<STAGES> state) {
  [[maybe_unused]] const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#include "hole/consumer-wait"
}

void consumer_release(PipelineState<STAGES> state, int multiplied) {
  [[maybe_unused]] const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#include "hole/consumer-release"
}

// What they mean

const std::string LIFE = " (chapter 21, An mbarrier's life).", IDEA = " (chapter 23, The idea).";

std::string name(uint32_t barrier) {
  if (barrier >= full && barrier < empty + STAGES * 8 && barrier % 8 == 0)
    return (barrier < empty ? "full of stage " : "empty of stage ") + std::to_string((barrier - full) / 8 % STAGES);
  return "an address that is no mbarrier";
}

PipelineState<STAGES> state_of(int k_tile) {
  PipelineState<STAGES> state;
  state.advance(k_tile);
  return state;
}

/// The waits for a k tile. Those of lane 0 of the first consumer warp, or of the producer.
std::vector<Wait> waits_of(void (*hole)(PipelineState<STAGES>), int k_tile, unsigned thread) {
  waits.clear();
  threadIdx.x = thread;
  hole(state_of(k_tile));
  return waits;
}

/// Does exactly this wait exist? Says no more than that; the caller knows what is missing.
bool has(const std::vector<Wait>& found, uint32_t barrier, uint32_t parity) {
  return std::any_of(found.begin(), found.end(), [&](Wait w) { return w.barrier == barrier && w.parity == parity; });
}

void explain_acquire() {
  for (int k_tile = 0; k_tile < K_TILES; ++k_tile) {
    const auto state = state_of(k_tile);
    const uint32_t barrier = empty + state.index * 8;
    const auto found = waits_of(producer_acquire, k_tile, 0);
    const std::string stage = std::to_string(state.index), round = std::to_string(k_tile / STAGES);
    const std::string of = "The producer, k tile " + std::to_string(k_tile) + ": ";
    for (const Wait& wait : found)
      if (wait.barrier != barrier) {
        finding(of, "it waits on ", name(wait.barrier),
                wait.barrier < empty
                    ? ", which becomes complete only when the copies that it is about to issue have landed"
                    : "",
                ". Stage ", stage, " may be filled when all warps have arrived on empty of stage ", stage, IDEA);
        return;
      }
    if (has(found, barrier, state.phase))  // the phase that this k tile's own consumers will complete
      if (k_tile < STAGES) {
        finding(of, "it waits for parity ", state.phase, " of empty, the phase that is complete when k tile ", k_tile,
                " itself has been multiplied. But k tile ", k_tile,
                " is not even copied: the producer waits for ever. It needs the phase before, state.phase ^ 1, which "
                "a new mbarrier counts as complete",
                LIFE);
        return;
      }
    if (!has(found, barrier, state.phase ^ 1)) {
      const std::string other = "k tile " + std::to_string(k_tile - STAGES);
      if (k_tile < STAGES) {  // nobody has used the stage: no wait is needed
        continue;
      }
      if (found.empty())
        finding(of, "its copies go into stage ", stage, ", which has ", other,
                ", and no wait says that all warps have ", "multiplied it. TMA overwrites what wgmma reads", IDEA);
      else
        finding(of, "it waits for parity ", state.phase, " of empty again. The phase before the one of ", other,
                " has the same parity and is complete: the wait passes while ", other,
                " is still being multiplied. The parity flips each time the stages have come round: state.phase does, "
                "a constant does not",
                LIFE);
      return;
    }
  }
}

void explain_wait() {
  for (int k_tile = 0; k_tile < K_TILES; ++k_tile) {
    const auto state = state_of(k_tile);
    const uint32_t barrier = full + state.index * 8;
    const std::string stage = std::to_string(state.index), mine = "k tile " + std::to_string(k_tile);
    const std::string of = "A consumer, " + mine + ": ";
    for (unsigned thread = 128; thread < 128 + Tile::CONSUMERS; ++thread) {
      const auto found = waits_of(consumer_wait, k_tile, thread);
      for (const Wait& wait : found)
        if (wait.barrier != barrier) {
          finding(of, "it waits on ", name(wait.barrier), ". That ", mine, " has landed in stage ", stage,
                  " is what full of stage ", stage, " says", IDEA);
          return;
        }
      if (has(found, barrier, state.phase)) continue;
      if (found.empty())
        finding(of, thread == 128 ? "nobody waits" : "some threads do not wait", " for its copies: wgmma reads stage ",
                stage, " while TMA may still be writing it", IDEA);
      else if (k_tile < STAGES)
        finding(
            of, "it waits for parity ", state.phase ^ 1,
            " of full, the phase before the first. A new mbarrier counts it as complete, so the wait passes before ",
            "anything has landed. Only the producer waits for the phase before", LIFE);
      else
        finding(of, "it waits for parity ", state.phase ^ 1, " of full, as for k tile ", k_tile - STAGES,
                ", which lay in stage ", stage, " before. That phase is complete: the wait passes before ", mine,
                " has landed. The parity flips each time the stages have come round: state.phase does, a constant does "
                "not",
                LIFE);
      return;
    }
  }
}

/// Arrivals of all consumers, by mbarrier, after k tile `k_tile` has been issued.
std::map<uint32_t, int> released_at(int k_tile) {
  std::map<uint32_t, int> count;
  for (unsigned thread = 128; thread < 128 + Tile::CONSUMERS; ++thread) {
    threadIdx.x = thread, arrived.clear();
    consumer_release(state_of(k_tile), k_tile == 0 ? -1 : state_of(k_tile - 1).index);
    for (const uint32_t barrier : arrived) ++count[barrier];
  }
  return count;
}

void explain_arrivals() {
  init();
  const int of_full = arrivals.contains(full) ? arrivals[full] : -1,
            of_empty = arrivals.contains(empty) ? arrivals[empty] : -1;
  for (int stage = 1; stage < STAGES; ++stage)
    if (!arrivals.contains(full + stage * 8) || !arrivals.contains(empty + stage * 8)) {
      finding("The mbarriers of stage ", stage, " are not initialised.");
      return;
    }
  if (of_full < 0 || of_empty < 0) {
    finding(of_full < 0 ? "full" : "empty", " is not initialised: nobody can wait on it.");
    return;
  }
  if (of_full != 1)
    finding("A phase of full expects ", of_full,
            " arrivals, and one comes: mbarrier_arrive_expect_tx of the producer. TMA counts bytes, it does not arrive",
            IDEA);
  if (const auto first = released_at(0); !first.empty()) {
    finding("In the first pass no k tile has been multiplied, `multiplied` is -1, and a warp arrives on ",
            name(first.begin()->first), " all the same: ",
            first.begin()->first < empty ? "that is the mbarrier before empty of stage 0." : "the stage is in use.");
    return;
  }
  for (int k_tile = 1; k_tile < STAGES; ++k_tile) {
    const uint32_t barrier = empty + (k_tile - 1) * 8;
    const auto found = released_at(k_tile);
    const std::string before = "k tile " + std::to_string(k_tile - 1);
    for (const auto& [other, count] : found)
      if (other == empty + k_tile * 8) {
        finding("In the pass of k tile ", k_tile, " a warp arrives on ", name(other),
                ", the stage whose wgmma it has just issued: wgmma_wait_group<1>() says that those of ", before,
                " are complete, and no more (chapter 23, The idea: one k tile stays in flight).");
        return;
      } else if (other != barrier) {
        finding("In the pass of k tile ", k_tile, " a warp arrives on ", name(other), ". It has multiplied ", before,
                ", and so has stage ", k_tile - 1, " to release: empty of stage ", k_tile - 1, IDEA);
        return;
      }
    const int count = found.contains(barrier) ? found.at(barrier) : 0;
    if (count == 0) {
      finding("Nobody arrives on empty of stage ", k_tile - 1, " after ", before, " has been multiplied: the producer ",
              "waits for ever before k tile ", k_tile - 1 + STAGES, ", the next one of this stage", IDEA);
      return;
    }
    if (count == of_empty && count % WARPS == 0) continue;
    if (count < of_empty)
      finding("A phase of empty expects ", of_empty, " arrivals, and ", count, count == 1 ? " comes" : " come",
              " per k tile: the phase is not complete, and the producer waits for ever before k tile ",
              k_tile - 1 + STAGES, IDEA);
    else if (count > of_empty)
      finding("A phase of empty expects ", of_empty, of_empty == 1 ? " arrival, and " : " arrivals, and ", count,
              " come per k tile. It is complete after the first ",
              of_empty == 1 ? std::string("one") : std::to_string(of_empty),
              ": the producer fills the stage again while other warps still multiply", IDEA);
    else
      finding("Only ", count, count == 1 ? " thread arrives" : " threads arrive", " per k tile, and a block has ",
              WARPS, " consumer warps: nobody waits for the others, which may still multiply", IDEA);
    return;
  }
}

}  // namespace

int main() {
  explain_acquire();
  explain_wait();
  explain_arrivals();
}
