#include "executor/progress_watchdog.h"

#include <algorithm>

namespace sim {

void ProgressWatchdog::becomes(size_t worker, State state) {
  const std::lock_guard lock(mutex_);
  if (workers_[worker].state == state) return;
  workers_[worker].state = state;
  all_spin_ = false;
}

ProgressWatchdog::Verdict ProgressWatchdog::spins(size_t worker) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Verdict::stop;
  workers_[worker].state = State::spinning;
  ++workers_[worker].looks;
  const auto all = [&](auto condition) { return std::all_of(workers_.begin(), workers_.end(), condition); };
  if (!all([](const Worker& w) { return w.state != State::busy; })) {
    all_spin_ = false;
    return Verdict::go_on;
  }
  if (!all_spin_) {
    all_spin_ = true;
    for (Worker& w : workers_) w.looks_when_all_spun = w.looks;
    return Verdict::go_on;
  }
  return all([](const Worker& w) { return w.state == State::ended || w.looks >= w.looks_when_all_spun + 2; })
             ? Verdict::livelock
             : Verdict::go_on;
}

void ProgressWatchdog::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

}  // namespace sim
