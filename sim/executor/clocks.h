// Which actor knows of which event: vector clocks (Lamport; Fidge; Mattern) of the actors of a cluster. An actor is a warp,
// or the asynchronous copies into one block. Row a of the table says how much of each actor's past actor a knows of; barriers and
// mbarriers hand on what the arriving ones knew to those who wait (PTX ISA 8, "Memory Consistency Model": happens before).
//
// All clusters of a cooperative launch run interleaved. There are thousands of actors then, and each is interested in those of its
// own cluster only: they are a group, and a row has no more than the actors of one group.
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
  explicit Clocks(uint32_t group, uint32_t groups = 1)
      : group_(group), first_(size_t{group} * groups), rows_(size_t{2} * group * group * groups) {
    for (uint32_t a = 0; a < first_.size(); ++a) first_[a] = a / group * group;
  }

  /// Nothing has happened: each actor's time is 1, and nobody knows of another.
  void reset() {
    std::fill(rows_.begin(), rows_.end(), 0);
    for (uint32_t a = 0; a < first_.size(); ++a) own(a) = 1;
  }

  uint32_t now(uint32_t actor) const { return row(actor)[actor - first_[actor]]; }

  /// `other` is of the same group, here and below.
  bool knows(uint32_t actor, uint32_t other, uint32_t time) const { return row(actor)[other - first_[actor]] >= time; }

  /// Whether the asynchronous proxy, at work for `actor`, sees what `other` wrote at `time`.
  bool fenced(uint32_t actor, uint32_t other, uint32_t time) const {
    return row(actor)[group_ + other - first_[actor]] >= time;
  }

  /// What `actor` knows goes into `known`, and its time goes on.
  void arrive(uint32_t actor, Knowledge& known) {
    known.resize(2 * group_);
    const uint32_t* const from = row(actor);
    for (uint32_t i = 0; i < 2 * group_; ++i) known[i] = std::max(known[i], from[i]);
    ++own(actor);
  }

  /// The lanes of a warp have met: what they do from now on comes after what they did before.
  void tick(uint32_t actor) { ++own(actor); }

  /// `actor` learns what is in `known`.
  void leave(uint32_t actor, const Knowledge& known) {
    uint32_t* const to = row(actor);
    for (uint32_t i = 0; i < known.size(); ++i) to[i] = std::max(to[i], known[i]);
  }

  /// fence.proxy.async: all that `actor` knows of becomes visible to the asynchronous proxy. Its time goes on, so that what
  /// it writes next is not.
  void fence_proxy(uint32_t actor) {
    std::copy(row(actor), row(actor) + group_, row(actor) + group_);
    ++own(actor);
  }

  /// An event of `actor` of which only those learn to whom `known` is handed; gives back its time. `fenced`: it is visible
  /// to the asynchronous proxy.
  uint32_t event(uint32_t actor, Knowledge& known, bool fenced = true) {
    const uint32_t slot = actor - first_[actor];
    known.resize(2 * group_);
    known[slot] = std::max(known[slot], now(actor));
    if (fenced) known[group_ + slot] = known[slot];
    return own(actor)++;
  }

  /// `actor` learns of all that `other` has done up to `time`.
  void learn(uint32_t actor, uint32_t other, uint32_t time) {
    uint32_t& known = row(actor)[other - first_[actor]];
    known = std::max(known, time);
  }

 private:
  uint32_t* row(uint32_t actor) { return rows_.data() + size_t{2} * group_ * actor; }
  const uint32_t* row(uint32_t actor) const { return rows_.data() + size_t{2} * group_ * actor; }
  uint32_t& own(uint32_t actor) { return row(actor)[actor - first_[actor]]; }

  uint32_t group_;               ///< actors of each
  std::vector<uint32_t> first_;  ///< of each actor: the first one of its group
  std::vector<uint32_t> rows_;   ///< of each actor: what it knows, then what of it is fenced
};

}  // namespace sim
