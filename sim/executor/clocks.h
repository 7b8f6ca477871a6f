// What happens before what (PTX ISA 8, "Memory Consistency Model"): vector clocks (Lamport; Fidge; Mattern) of the actors of a
// cluster. An actor is a warp, or the asynchronous copies into one block. Row a of the table is the clock of actor a: up to which
// time each actor's past happens before what a does next. Barriers and mbarriers join the clocks of those who arrive, and those who
// wait join the result.
//
// All clusters of a cooperative launch run interleaved. There are thousands of actors then, and each is interested in those of its
// own cluster only: they are a group, and a row has no more than the actors of one group.
//
// Next to it stands how much of that past the asynchronous proxy may see: a write through the generic proxy is visible to
// bulk copies and wgmma only after a proxy fence (PTX ISA 8.4, "Proxies"; 9.7.13.4, fence.proxy.async).
//
// Where there is tensor memory, two more rows: what of that past the actor has handed on by tcgen05.fence::before_thread_sync, or
// has been handed so; and how much of this it has taken over by tcgen05.fence::after_thread_sync (PTX ISA 9.7.16, "Memory Consistency Model").
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sim {

/// The clocks that have arrived at a point of synchronisation, joined; empty: none yet.
using VectorClock = std::vector<uint32_t>;

class Clocks {
 public:
  explicit Clocks(uint32_t group, uint32_t groups = 1, bool tensor_memory = false)
      : group_(group),
        row_(group * (tensor_memory ? 4 : 2)),
        handed_on_(group * (tensor_memory ? 3 : 2)),
        first_(size_t{group} * groups),
        rows_(size_t{row_} * group * groups) {
    for (uint32_t a = 0; a < first_.size(); ++a) first_[a] = a / group * group;
  }

  /// Nothing has happened: each actor's time is 1, and 0 in the others' clocks.
  void reset() {
    std::fill(rows_.begin(), rows_.end(), 0);
    for (uint32_t a = 0; a < first_.size(); ++a) own(a) = 1;
  }

  uint32_t now(uint32_t actor) const { return row(actor)[actor - first_[actor]]; }

  /// Whether what `other` did at `time` happens before what `actor` does now. Both are of the same group, here and below.
  bool happens_before(uint32_t other, uint32_t time, uint32_t actor) const {
    return row(actor)[other - first_[actor]] >= time;
  }

  /// Whether the asynchronous proxy, at work for `actor`, sees what `other` wrote at `time`.
  bool fenced(uint32_t actor, uint32_t other, uint32_t time) const {
    return row(actor)[group_ + other - first_[actor]] >= time;
  }

  /// Joins the actor's clock into `clock`; the actor's time goes on.
  void arrive(uint32_t actor, VectorClock& clock) {
    clock.resize(handed_on_);
    const uint32_t* const from = row(actor);
    for (uint32_t i = 0; i < handed_on_; ++i) clock[i] = std::max(clock[i], from[i]);
    ++own(actor);
  }

  /// The lanes of a warp have met: what they do from now on comes after what they did before.
  void tick(uint32_t actor) { ++own(actor); }

  /// Joins `clock` into the actor's.
  void leave(uint32_t actor, const VectorClock& clock) {
    uint32_t* const to = row(actor);
    for (uint32_t i = 0; i < clock.size(); ++i) to[i] = std::max(to[i], clock[i]);
  }

  /// fence.proxy.async: all that happens before it becomes visible to the asynchronous proxy. Its time goes on, so that what
  /// it writes next is not.
  void fence_proxy(uint32_t actor) {
    std::copy(row(actor), row(actor) + group_, row(actor) + group_);
    ++own(actor);
  }

  /// An event of `actor` that happens before what those do who join `clock`; gives back its time. `fenced`: it is visible to
  /// the asynchronous proxy.
  uint32_t event(uint32_t actor, VectorClock& clock, bool fenced = true) {
    const uint32_t slot = actor - first_[actor];
    clock.resize(handed_on_);
    clock[slot] = std::max(clock[slot], now(actor));
    if (fenced) clock[group_ + slot] = clock[slot];
    return own(actor)++;
  }

  /// The same of the tensor core: a commit has the effect of tcgen05.fence::before_thread_sync.
  uint32_t tensor_event(uint32_t actor, VectorClock& clock) {
    const uint32_t time = event(actor, clock);
    clock[2 * group_ + actor - first_[actor]] = time;
    return time;
  }

  /// tcgen05.fence::before_thread_sync and ::after_thread_sync.
  void fence_before_sync(uint32_t actor) {
    uint32_t* const r = row(actor);
    std::copy(r, r + group_, r + 2 * group_);
    ++own(actor);
  }
  void fence_after_sync(uint32_t actor) {
    uint32_t* const r = row(actor);
    for (uint32_t i = 0; i < group_; ++i) r[3 * group_ + i] = std::max(r[3 * group_ + i], r[2 * group_ + i]);
  }
  /// As if both had been everywhere: what was missing has been reported.
  void forgive_fences(uint32_t actor) {
    uint32_t* const r = row(actor);
    for (uint32_t i = 0; i < group_; ++i) r[3 * group_ + i] = std::max(r[3 * group_ + i], r[i]);
  }
  /// Whether both fences lie between what `other` did at `time` and what `actor` does now.
  bool tensor_fenced(uint32_t actor, uint32_t other, uint32_t time) const {
    return row(actor)[3 * group_ + other - first_[actor]] >= time;
  }

  /// All that `other` has done up to `time` happens before what `actor` does next.
  void order(uint32_t other, uint32_t time, uint32_t actor) {
    uint32_t& seen = row(actor)[other - first_[actor]];
    seen = std::max(seen, time);
  }

 private:
  uint32_t* row(uint32_t actor) { return rows_.data() + size_t{row_} * actor; }
  const uint32_t* row(uint32_t actor) const { return rows_.data() + size_t{row_} * actor; }
  uint32_t& own(uint32_t actor) { return row(actor)[actor - first_[actor]]; }

  uint32_t group_;               ///< actors of each
  uint32_t row_, handed_on_;     ///< words of a row; of these, those that synchronisation hands on
  std::vector<uint32_t> first_;  ///< of each actor: the first one of its group
  std::vector<uint32_t> rows_;   ///< of each actor: its clock, then what of it is fenced, and so on
};

}  // namespace sim
