// Whether the blocks that run at the same time, on several CPU threads, make progress. A block that spins on a word of global
// memory waits for another block, which may run on another thread or spin itself. When all spin, nothing will ever change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sim {

class ProgressWatchdog {
 public:
  /// `workers`: the CPU threads of the launch.
  explicit ProgressWatchdog(size_t workers) : workers_(workers) {}

  /// A worker does something, or has no more blocks to run.
  void busy(size_t worker) { becomes(worker, State::busy); }
  void ended(size_t worker) { becomes(worker, State::ended); }

  enum class Verdict { go_on, livelock, stop };
  /// All warps of a worker wait, or have come round to the state that they were in. A livelock if all workers say so, and
  /// each has said it twice more since all do: between, it has looked once more at what it waits for.
  Verdict spins(size_t worker);

  /// A fault has ended the launch: blocks that spin must stop.
  void stop();

 private:
  enum class State : uint8_t { busy, spinning, ended };
  struct Worker {
    State state = State::busy;
    uint64_t looks = 0, looks_when_all_spun = 0;
  };
  void becomes(size_t worker, State state);

  std::mutex mutex_;
  std::vector<Worker> workers_;
  bool all_spin_ = false, stopped_ = false;
};

}  // namespace sim
