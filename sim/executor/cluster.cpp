// Whose turn it is among the warps of a cluster, the cluster's barrier, and deadlock.
#include "executor/cluster.h"

#include "text.h"

namespace sim {
namespace {

constexpr uint32_t param_alignment = 128;  ///< of a tensor map among the parameters; cuTensorMapEncode asks for 64

/// A warp looks at an mbarrier this often while nothing else happens; then it is a deadlock. Once is not enough, because its
/// lanes may be in different loops.
constexpr uint32_t patience = 64;

}  // namespace

Cluster::Cluster(const Program& program, const ptx::Module& module, const LaunchParams& launch,
                 const DeviceMemory& memory, ProgressWatchdog& watchdog, size_t worker, GlobalRaces* races)
    : program(program),
      module(module),
      launch(launch),
      memory(memory),
      clocks(launch.cooperative && !races
                 ? Clocks(blocks_of_cluster() * actors_per_block(), uint32_t(launch.grid.count()) / blocks_of_cluster())
                 : Clocks(uint32_t((launch.cooperative ? launch.grid : launch.cluster).count()) * actors_per_block())),
      counts_(program.ops.size()),
      patterns_(program.ops.size()),
      ranges_(program.ops.size()),
      contents_(program.ops.size()),
      races_(races),
      param_bytes_(launch.params.size() + param_alignment),
      watchdog_(watchdog),
      worker_(worker) {
  const uint64_t begin = reinterpret_cast<uint64_t>(param_bytes_.data());
  param_ = param_bytes_.data() + (param_alignment - begin % param_alignment) % param_alignment;
  std::copy(launch.params.begin(), launch.params.end(), param_);
  const uint64_t count = (launch.cooperative ? launch.grid : launch.cluster).count();
  for (uint32_t number = 0; number < count; ++number) blocks_.push_back(std::make_unique<Block>(*this, number));
  for (const auto& block : blocks_)
    for (Warp& warp : block->warps()) warps_.push_back(&warp);
  barriers_.resize(count / blocks_of_cluster());
}

Cluster::~Cluster() {
  if (launch.warnings) launch.warnings->add(warnings_);
}

void Cluster::start(uint64_t index) {
  index_ = index;
  instructions_before_ = instructions();
  random_.seed(launch.seed * 0x9e3779b97f4a7c15 + index);
  clocks.reset();
  progress_ = 0;
  pending_.clear();
  arrivals_.clear();
  for (Barrier& barrier : barriers_) barrier = {};
  const Extent& size = launch.cluster;
  const uint64_t nx = launch.grid.x / size.x, ny = launch.grid.y / size.y;
  for (uint32_t number = 0; number < blocks_.size(); ++number) {
    const uint64_t cluster = index * barriers_.size() + number / blocks_of_cluster();
    const uint32_t rank = number % blocks_of_cluster();
    blocks_[number]->start({uint32_t(cluster % nx) * size.x + rank % size.x,
                            uint32_t(cluster / nx % ny) * size.y + rank / size.x % size.y,
                            uint32_t(cluster / nx / ny) * size.z + rank / size.x / size.y});
  }
}

void Cluster::run(uint64_t index) {
  start(index);
  while (Warp* const warp = next()) {
    warp->block->run_warp(*warp);
    look_at(*warp);
    if (warp->state != Warp::done) continue;
    clocks.arrive(warp->actor, barrier_of(*warp).arriving);  // to the barrier of the cluster, an exit is an arrival
    warp->block->warp_ended(*warp);
    check_barrier(*warp);
  }
  finish();
}

bool Cluster::has_patience(const Warp& warp) const {
  return warp.poll.progress != progress_ || warp.poll.times < patience;
}

uint64_t Cluster::instructions() const {
  uint64_t sum = 0;
  for (const OpCount& count : counts_) sum += count.warps;
  return sum;
}

/// A loop whose state is another one each time it comes round, such as one that counts how often it has looked, is no
/// livelock. If it executes far more than any kernel does, it has no end.
void Cluster::check_limit(const Warp& warp) {
  const uint64_t executed = instructions() - instructions_before_;
  if (executed / blocks() <= launch.limit || !warp.live) return;
  int lane = 0;
  while (!(warp.live >> lane & 1)) ++lane;
  warp.block->report(warp, lane, program.ops[warp.pc[lane]],
                     formatted("a block has executed more than {} warp instructions: a loop without an end? "
                               "(GEMM_LADDER_SIM_LIMIT=N allows N)",
                               launch.limit),
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
  const uint64_t state = warp.block->state_of(warp);
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
  if (launch.cooperative && random_() % 64)  // of thousands of warps: mostly one is found without a look at all of them
    for (int attempt = 0; attempt < 8; ++attempt)
      if (Warp* const warp = warps_[random_() % warps_.size()]; warp->state == Warp::ready) return warp;
  ready_.clear();
  polling_.clear();
  bool all_done = true;
  for (Warp* const warp : warps_) {
    if (warp->state == Warp::ready) ready_.push_back(warp);
    if (warp->state == Warp::polling) polling_.push_back(warp);
    all_done = all_done && warp->state == Warp::done;
  }
  if (all_done) return nullptr;
  if (!ready_.empty() && (polling_.empty() || random_() % 8)) return ready_[random_() % ready_.size()];
  if (polling_.empty()) deadlock();
  if (ready_.empty()) {
    bool hope = false;
    for (const Warp* const warp : polling_) hope = hope || has_patience(*warp);
    if (!hope && !land_any()) deadlock();
  }
  Warp* const warp = polling_[random_() % polling_.size()];
  if (ready_.empty() || random_() % 2) land_for(*warp->block, warp->poll.address);
  return warp;
}

// --- barrier.cluster (PTX ISA 9.7.13.3) --------------------------------------------------------------------------------------

void Cluster::arrive(Warp& warp, const Op& op) {
  if (warp.cluster_arrived)
    warp.block->report(warp, 0, op, "the warp arrives at the cluster's barrier a second time without waiting there",
                       Fault::launch_failure);
  warp.cluster_arrived = true;
  warp.cluster_phase = barrier_of(warp).phase;
  if (op.strong) clocks.arrive(warp.actor, barrier_of(warp).arriving);
  check_barrier(warp);
}

bool Cluster::wait(Warp& warp, const Op& op) {
  if (!warp.cluster_arrived)
    warp.block->report(warp, 0, op, "the warp waits at the cluster's barrier without having arrived there",
                       Fault::launch_failure);
  const Barrier& barrier = barrier_of(warp);
  if (warp.cluster_phase == barrier.phase) return false;
  warp.cluster_arrived = false;
  warp.cluster_waited = barrier.phase;
  clocks.leave(warp.actor, barrier.arrived);
  return true;
}

/// That of the warp's cluster. Complete when all of its warps that have not ended have arrived. A warp that has not yet waited for the last phase cannot have
/// arrived in this one, so one phase's clock is enough.
void Cluster::check_barrier(const Warp& one) {
  Barrier& barrier = barrier_of(one);
  const size_t of_cluster = size_t{blocks_of_cluster()} * warps_per_block();
  const std::span warps(warps_.data() + size_t(&barrier - barriers_.data()) * of_cluster, of_cluster);
  bool any = false;
  for (const Warp* const warp : warps) {
    if (warp->state == Warp::done) continue;
    if (!warp->cluster_arrived || warp->cluster_phase != barrier.phase) return;
    any = true;
  }
  if (!any) return;
  ++barrier.phase;
  barrier.arrived = std::exchange(barrier.arriving, {});
  for (Warp* const warp : warps)
    if (warp->state == Warp::waiting && program.ops[warp->waits_at].kind == Kind::cluster_wait)
      warp->state = Warp::ready;
}

// --- reports -----------------------------------------------------------------------------------------------------------------

std::string Cluster::name_of(uint32_t actor, const Block& block) const {
  const Block& owner = *blocks_[actor / actors_per_block()];
  const uint32_t index = actor % actors_per_block();
  const bool copy = index == warps_per_block();
  std::string name = copy ? "a bulk copy" : formatted("warp {}", index);
  const Extent at = owner.index();
  if (&owner != &block) name += formatted("{} block ({}, {}, {})", copy ? " into" : " of", at.x, at.y, at.z);
  return name;
}

void Cluster::livelock(const Warp& warp) {
  std::string text =
      "livelock: a loop comes round to where it was, and nobody is left who could change what it waits for (blocks "
      "that "
      "wait for one another need a cooperative launch)";
  for (const Warp* const w : warps_) text += formatted("\n  warp {} {}", w->index, w->block->waits_for(*w));
  int lane = 0;
  while (!(warp.live >> lane & 1)) ++lane;
  warp.block->report(warp, lane, program.ops[warp.pc[lane]], text, Fault::launch_failure);
}

void Cluster::deadlock() {
  std::string text = "deadlock: every warp waits, or has ended";
  const Warp* one = nullptr;
  for (const Warp* const warp : warps_) {
    if (warp->state != Warp::done) one = warp;
    text += "\n  ";
    if (blocks() > 1) {
      const Extent at = warp->block->index();
      text += formatted("block ({}, {}, {}), ", at.x, at.y, at.z);
    }
    text += formatted("warp {} {}", warp->index, warp->block->waits_for(*warp));
  }
  int lane = 0;
  while (!(one->live >> lane & 1)) ++lane;
  one->block->report(*one, lane, program.ops[one->waits_at], text, Fault::launch_failure);
}

}  // namespace sim
