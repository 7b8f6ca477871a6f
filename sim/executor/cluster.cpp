#include "executor/cluster.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "text.h"

namespace sim {
namespace {

/// A warp looks at an mbarrier this often while nothing else happens; then it is a deadlock. Once is not enough, because its
/// lanes may be in different loops.
constexpr uint32_t patience = 64;

/// A hash of everything that decides what a warp does next, except memory. Of the registers, in eight chains: in one, each word
/// would wait for the product of the word before.
uint64_t state_of(const Program& program, const Warp& warp) {
  constexpr uint64_t prime = 0x100000001b3;  // FNV-1a's
  std::array<uint64_t, 8> hashes;
  hashes.fill(0xcbf29ce484222325);
  for (uint32_t at = 0; at < program.register_bytes; at += sizeof hashes)  // whole lines (Block::Block)
    for (size_t i = 0; i < hashes.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, warp.registers + at + i * sizeof word, sizeof word);
      hashes[i] = std::rotl((hashes[i] ^ word) * prime, 32);
    }
  uint64_t hash = 0;
  const auto add = [&](uint64_t word) { hash = std::rotl((hash ^ word) * prime, 32); };
  for (const uint64_t one : hashes) add(one);
  for (int l = 0; l < warp_size; ++l) add(warp.live >> l & 1 ? warp.pc[l] : ~uint64_t{0});
  add(warp.parked);
  return hash;
}

}  // namespace

Cluster::Cluster(const Program& program, const ptx::Module& module, const LaunchParams& launch,
                 const DeviceMemory& memory, ProgressWatchdog& watchdog, size_t worker, GlobalRaces* races)
    : unit_(program, module, launch, memory, races != nullptr),
      reports_(unit_),
      checker_(unit_, reports_, races),
      sync_(unit_, reports_, checker_),
      async_copies_(unit_, reports_, checker_, sync_),
      bulk_copies_(unit_, reports_, checker_, sync_, async_copies_),
      wgmma_(unit_, reports_, checker_),
      tcgen05_(unit_, reports_, checker_, sync_),
      interpreter_(unit_, reports_, checker_, sync_, async_copies_, bulk_copies_, wgmma_, tcgen05_),
      watchdog_(watchdog),
      worker_(worker) {
  for (const auto& block : unit_.blocks)
    for (Warp& warp : block->warps) warps_.push_back(&warp);
}

void Cluster::start(uint64_t index) {
  instructions_before_ = instructions();
  unit_.start(index);
  sync_.start();
  async_copies_.start();
  bulk_copies_.start();
  tcgen05_.start();
}

uint64_t Cluster::run(uint64_t index, uint64_t stride) {
  unit_.stride = stride;
  start(index);
  while (Warp* const warp = next()) {
    interpreter_.run(*warp);
    look_at(*warp);
    if (warp->state != Warp::done) continue;
    sync_.ended(*warp);
    if (warp->block->ended()) {
      bulk_copies_.block_ends(*warp->block);
      tcgen05_.block_ends(*warp->block);
    }
    sync_.check_cluster_barrier(*warp->block);
  }
  bulk_copies_.finish();
  return unit_.to_cancel;
}

bool Cluster::has_patience(const Warp& warp) const {
  return warp.poll.progress != unit_.progress || warp.poll.times < patience;
}

uint64_t Cluster::instructions() {
  uint64_t sum = 0;
  for (const OpCount& count : counts()) sum += count.warps;
  return sum;
}

/// A loop whose state is another one each time it comes round, such as one that counts how often it has looked, is no
/// livelock. If it executes far more than any kernel does, it has no end.
void Cluster::check_limit(const Warp& warp) {
  const uint64_t executed = instructions() - instructions_before_;
  if (executed / unit_.blocks.size() <= unit_.launch.limit || !warp.live) return;
  int lane = 0;
  while (!(warp.live >> lane & 1)) ++lane;
  reports_.report(warp, lane, unit_.program.ops[warp.pc[lane]],
                  formatted("a block has executed more than {} warp instructions: a loop without an end? "
                            "(GEMM_LADDER_SIM_LIMIT=N allows N)",
                            unit_.launch.limit),
                  Fault::launch_failure);
}

/// A turn has ended. A turn in a loop may have changed nothing. If that is true of every warp that does not wait, after all of
/// its lanes have had a turn, and on all workers, nothing will ever change.
void Cluster::look_at(Warp& warp) {
  const bool long_turn = warp.state == Warp::ready && warp.spun;
  if (long_turn || ++turns_ % 4096 == 0) check_limit(warp);
  if (warp.state == Warp::polling) return;  // that has its own patience
  if (warp.state != Warp::ready || !warp.spun) {
    ++events_;
    return;
  }
  Spin& spin = warp.spin;
  const uint64_t state = state_of(unit_.program, warp);
  if (state != spin.state) ++events_;
  const bool unchanged = spin.events == events_, all_lanes_ran = !(warp.live & ~warp.parked & ~warp.had_turn);
  if (!unchanged) spin.same = 0;
  if (unchanged && all_lanes_ran) ++spin.same;
  if (!unchanged || all_lanes_ran) warp.had_turn = 0;
  spin.state = state;
  spin.events = events_;
  for (const Warp* const w : warps_) {
    const bool may_go_on = w->state == Warp::ready     ? w->spin.events != events_ || w->spin.same < 2
                           : w->state == Warp::polling ? has_patience(*w)
                                                       : false;
    if (may_go_on) return watchdog_.busy(worker_);
  }
  switch (watchdog_.spins(worker_)) {
    case ProgressWatchdog::Verdict::go_on:
      return;
    case ProgressWatchdog::Verdict::livelock:
      livelock(warp);
    case ProgressWatchdog::Verdict::stop:
      throw Stopped{};
  }
}

/// A warp that can run; null where all have ended. Warps that spin on an mbarrier run rarely, or when no other can.
Warp* Cluster::next() {
  if (unit_.launch.cooperative &&
      unit_.random() % 64)  // of thousands of warps: mostly one is found without a look at all of them
    for (int attempt = 0; attempt < 8; ++attempt)
      if (Warp* const warp = warps_[unit_.random() % warps_.size()]; warp->state == Warp::ready) return warp;
  ready_.clear();
  polling_.clear();
  bool all_done = true;
  for (Warp* const warp : warps_) {
    if (warp->state == Warp::ready) ready_.push_back(warp);
    if (warp->state == Warp::polling) polling_.push_back(warp);
    all_done = all_done && warp->state == Warp::done;
  }
  if (all_done) return nullptr;
  if (!ready_.empty() && (polling_.empty() || unit_.random() % 8)) return ready_[unit_.random() % ready_.size()];
  if (polling_.empty()) deadlock();
  if (ready_.empty()) {
    bool hope = false;
    for (const Warp* const warp : polling_) hope = hope || has_patience(*warp);
    if (!hope && !bulk_copies_.land_any() && !tcgen05_.land_any() && !missed_phase()) deadlock();
  }
  Warp* const warp = polling_[unit_.random() % polling_.size()];
  if (ready_.empty() || unit_.random() % 2) {
    if (!bulk_copies_.land_for(*warp->block, warp->poll.address)) tcgen05_.land_for(*warp->block, warp->poll.address);
  }
  return warp;
}

bool Cluster::missed_phase() {
  return std::any_of(polling_.begin(), polling_.end(), [&](Warp* warp) { return sync_.missed_phase(*warp); });
}

// --- reports -----------------------------------------------------------------------------------------------------------------

void Cluster::livelock(const Warp& warp) {
  std::string text =
      "livelock: a loop comes round to where it was, and nobody is left who could change what it waits for (blocks "
      "that "
      "wait for one another need a cooperative launch)";
  for (const Warp* const w : warps_) text += formatted("\n  warp {} {}", w->index, sync_.waits_for(*w));
  int lane = 0;
  while (!(warp.live >> lane & 1)) ++lane;
  reports_.report(warp, lane, unit_.program.ops[warp.pc[lane]], text, Fault::launch_failure);
}

void Cluster::deadlock() {
  std::string text = "deadlock: every warp waits, or has ended";
  const Warp* one = nullptr;
  for (const Warp* const warp : warps_) {
    if (warp->state != Warp::done) one = warp;
    text += "\n  ";
    if (unit_.blocks.size() > 1) {
      const Extent at = warp->block->index;
      text += formatted("block ({}, {}, {}), ", at.x, at.y, at.z);
    }
    text += formatted("warp {} {}", warp->index, sync_.waits_for(*warp));
  }
  int lane = 0;
  while (!(one->live >> lane & 1)) ++lane;
  reports_.report(*one, lane, unit_.program.ops[one->waits_at], text, Fault::launch_failure);
}

}  // namespace sim
