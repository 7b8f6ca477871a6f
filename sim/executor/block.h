// One block: its warps, its shared memory, its barriers. A CPU thread has one Block and runs block after block in it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/executor/executor.h"
#include "sim/executor/shared_memory.h"

namespace sim {

/// Counts of one operation of the program.
struct OpCount {
  uint64_t warps = 0, lanes = 0;
  uint64_t global_requests = 0, sectors = 0, global_lanes = 0;
  uint64_t shared_requests = 0, wavefronts = 0, ideal = 0, shared_lanes = 0;
};

class Block {
 public:
  Block(const Program& program, const ptx::Module& module, const LaunchParams& launch, const DeviceMemory& memory);

  /// Runs block `index` of the grid to its end.
  void run(uint64_t index);

  const std::vector<OpCount>& counts() const { return counts_; }

 private:
  struct Warp {
    uint32_t index = 0;
    std::byte* registers = nullptr;
    std::byte* frames = nullptr;  ///< a lane's frame after the other
    std::array<uint32_t, warp_size> pc{};
    std::array<std::vector<uint32_t>, warp_size> calls;  ///< the call operations that a lane is inside of
    Mask exist = 0, live = 0;
    Mask parked = 0;  ///< lanes that wait, at their pc, for others of the warp
    enum { ready, waiting, done } state = ready;
    uint32_t waits_at = 0, barrier = 0;  ///< where waiting: the operation and the barrier's number
    bool last_first = false;             ///< after a long spin: let the lanes that are furthest on run
  };
  struct Barrier {
    uint32_t arrived = 0;   ///< warps, one bit each
    uint32_t expected = 0;  ///< warps; 0: all that live
    uint32_t waiting = 0;   ///< of the arrived, those that wait
    Clock known{};
    uint32_t sum = 0;  ///< of bar.red: how many predicates are true, and of how many
    uint32_t votes = 0;
  };
  /// What an access cost that looked alike, the last time.
  struct Pattern {
    std::array<int64_t, warp_size> relative{};
    Mask mask = 0;
    int count = 0, ideal = 0;                 ///< sectors, or wavefronts
    int words = 0;                            ///< of shared memory: distinct words ...
    std::array<int32_t, 4 * warp_size> word;  ///< ... relative to the first lane's
    std::array<uint8_t, 4 * warp_size> bytes;
  };
  using Addresses = std::array<uint64_t, warp_size>;

  void start(uint64_t index);
  void preset(Warp& warp, const Preset& p);
  bool regroup(Warp& warp, uint32_t& pc, Mask& active, uint32_t& limit);
  void run_warp(Warp& warp);
  bool synchronise(Warp& warp, uint32_t pc, Mask& mask);
  void warp_operation(Warp& warp, const Op& op, Mask mask);
  void arrive(Warp& warp, const Op& op, uint32_t pc);
  void complete(uint32_t id);
  void check_barriers();
  [[noreturn]] void deadlock() const;

  void memory_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void access(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, const Addresses& address, uint64_t base);
  void check_global(Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes);
  void check_shared(Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes);
  void move_data(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at);
  void atomic(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at);

  std::string where(const Op& op) const;
  /// `access`: "read" or "write".
  [[noreturn]] void report_shared(const Warp& warp, int lane, const Op& op, uint32_t word, const char* access,
                                  const SharedMemory::Verdict& verdict) const;
  [[noreturn]] void report(const Warp& warp, int lane, const Op& op, const std::string& what, Fault fault) const;

  const Program& program_;
  const ptx::Module& module_;
  const LaunchParams& launch_;
  const DeviceMemory& memory_;
  uint32_t threads_ = 0;
  Extent block_index_;
  uint64_t index_ = 0;
  std::vector<Warp> warps_;
  std::unique_ptr<std::byte[]> registers_;
  std::vector<std::byte> frames_;
  SharedMemory shared_;
  std::array<Barrier, 16> barriers_;
  std::vector<OpCount> counts_;
  std::vector<std::unique_ptr<Pattern>> patterns_;     ///< by operation
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  ///< by operation: the allocation it hit last, first byte and end
  std::vector<uint64_t> param_;                        ///< the launch's parameters, aligned
  std::mt19937_64 random_;
};

}  // namespace sim
