// Which actor knows of which event: vector clocks (Lamport; Fidge; Mattern) of the actors of a cluster. An actor is a warp,
// or the asynchronous copies into one block. Row a of the table says how much of each actor's past actor a knows of; barriers and
// mbarriers hand on what the arriving ones knew to those who wait (PTX ISA 8, "Memory Consistency Model": happens before).
//
// Next to it stands how much of that past the asynchronous proxy may see: a write through the generic proxy is visible to
// bulk copies and wgmma only after a proxy fence (PTX ISA 8.4, "Proxies"; 9.7.13.4, fence.proxy.async).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sim {

/// What arrives at a point of synchronisation and is handed on there; empty: nothing yet.
using Knowledge = std::vector<uint32_t>;

class Clocks {
 public:
  explicit Clocks(uint32_t actors) : actors_(actors), rows_(size_t{2} * actors * actors) {}

  /// Nothing has happened: each actor's time is 1, and nobody knows of another.
  void reset() {
    std::fill(rows_.begin(), rows_.end(), 0);
    for (uint32_t a = 0; a < actors_; ++a) row(a)[a] = 1;
  }

  uint32_t now(uint32_t actor) const { return row(actor)[actor]; }
  bool knows(uint32_t actor, uint32_t other, uint32_t time) const { return row(actor)[other] >= time; }

  /// Whether the asynchronous proxy, at work for `actor`, sees what `other` wrote at `time`.
  bool fenced(uint32_t actor, uint32_t other, uint32_t time) const { return row(actor)[actors_ + other] >= time; }

  /// What `actor` knows goes into `known`, and its time goes on.
  void arrive(uint32_t actor, Knowledge& known) {
    known.resize(2 * actors_);
    uint32_t* const own = row(actor);
    for (uint32_t i = 0; i < 2 * actors_; ++i) known[i] = std::max(known[i], own[i]);
    ++own[actor];
  }

  /// The lanes of a warp have met: what they do from now on comes after what they did before.
  void tick(uint32_t actor) { ++row(actor)[actor]; }

  /// `actor` learns what is in `known`.
  void leave(uint32_t actor, const Knowledge& known) {
    uint32_t* const own = row(actor);
    for (uint32_t i = 0; i < known.size(); ++i) own[i] = std::max(own[i], known[i]);
  }

  /// fence.proxy.async: all that `actor` knows of becomes visible to the asynchronous proxy. Its time goes on, so that what
  /// it writes next is not.
  void fence_proxy(uint32_t actor) {
    uint32_t* const own = row(actor);
    std::copy(own, own + actors_, own + actors_);
    ++own[actor];
  }

  /// An event of `actor` of which only those learn to whom `known` is handed; gives back its time. `fenced`: it is visible
  /// to the asynchronous proxy.
  uint32_t event(uint32_t actor, Knowledge& known, bool fenced = true) {
    known.resize(2 * actors_);
    known[actor] = std::max(known[actor], now(actor));
    if (fenced) known[actors_ + actor] = known[actor];
    return row(actor)[actor]++;
  }

  /// `actor` learns of all that `other` has done up to `time`.
  void learn(uint32_t actor, uint32_t other, uint32_t time) {
    uint32_t& known = row(actor)[other];
    known = std::max(known, time);
  }

  uint32_t actors() const { return actors_; }

 private:
  uint32_t* row(uint32_t actor) { return rows_.data() + size_t{2} * actors_ * actor; }
  const uint32_t* row(uint32_t actor) const { return rows_.data() + size_t{2} * actors_ * actor; }

  uint32_t actors_;
  std::vector<uint32_t> rows_;  ///< of each actor: what it knows, then what of it is fenced
};

}  // namespace sim
