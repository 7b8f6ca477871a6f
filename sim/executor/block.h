// One block: its warps, its shared memory, its barriers. A CPU thread has one Cluster of blocks and runs cluster after
// cluster in it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "error.h"
#include "executor/async_copy.h"
#include "executor/bulk_copy.h"
#include "executor/executor.h"
#include "executor/mbarrier.h"
#include "executor/shared_memory.h"
#include "executor/wgmma.h"

namespace sim {

class Block;
class Cluster;

/// Counts of one operation of the program.
struct OpCount {
  uint64_t warps = 0, lanes = 0;
  uint64_t global_requests = 0, sectors = 0, global_bytes = 0;
  uint64_t shared_requests = 0, wavefronts = 0, ideal = 0, shared_bytes = 0;
};

/// How the addresses of an access lie to one another, and what follows from that. In a loop it is the same time after time, so
/// it is kept from one access of an operation to the next.
struct Pattern {
  enum class Form : uint8_t { general, uniform, consecutive };  ///< of all 32 lanes: at one place, side by side

  std::array<int64_t, warp_size> relative{};  ///< each lane's address, from that of the first active one
  Mask mask = 0;                              ///< the active lanes; 0: no access yet
  Form form = Form::general;
  int64_t low = 0, high = 0;  ///< the least and the greatest of `relative`
  uint64_t bits = 0;          ///< all of `relative` ORed

  std::array<uint8_t, 32> sectors{};  ///< by the place of the first lane's address in its sector; 0: not counted yet

  // Of shared memory.
  uint8_t place = 0;                        ///< of the first lane's address in its word, for which the rest is known
  int wavefronts = 0, ideal = 0;            ///< 0: not counted yet
  int words = 0;                            ///< distinct words ...
  std::array<int32_t, 4 * warp_size> word;  ///< ... from the first lane's
  std::array<uint8_t, 4 * warp_size> bytes;
  std::array<Mask, 4 * warp_size> lanes;  ///< that touch the word; 0 where they touch different bytes of it

  /// `low` is at most -far where addresses are so far apart that their differences say nothing: then `within` is false.
  static constexpr int64_t far = int64_t{1} << 60;

  /// Whether all lanes' accesses lie in `size` bytes, of which the first lane's is at byte `first`.
  bool within(uint64_t first, uint32_t bytes, uint64_t size) const {
    return first < size && int64_t(first) + low >= 0 && int64_t(first) + high + int64_t(bytes) <= int64_t(size);
  }
};

/// The state of a warp whose turn ended in a loop. If the warp returns to the same state, it may never leave the loop.
struct Spin {
  uint64_t state = 0;   ///< a hash of its registers and of its lanes' pc
  uint64_t events = 0;  ///< the cluster's, at that time
  uint32_t same = 0;    ///< how often all its lanes have had a turn since, and have left it in that state
};

/// What a lane keeps during a call: of the function that it calls, which may be active already.
struct Kept {
  uint32_t stack = 0;  ///< where its stack ended
  std::vector<std::byte> bytes;
};

struct Warp {
  Block* block = nullptr;
  uint32_t index = 0;  ///< in the block
  uint32_t actor = 0;  ///< in the cluster: its row of the clocks
  std::byte* registers = nullptr;
  std::byte* frames = nullptr;  ///< lane after lane
  std::array<uint32_t, warp_size> pc{};
  std::array<std::vector<uint32_t>, warp_size> calls;  ///< the call operations that a lane is inside of
  std::array<std::vector<Kept>, warp_size> kept;       ///< of those calls whose function keeps something
  std::array<uint32_t, warp_size> stack{};             ///< its end, in a lane's frame
  Mask exist = 0, live = 0;
  Mask parked = 0;  ///< lanes that wait, at their pc, for others of the warp
  /// polling: it can run, but in its last turn it only found a phase of an mbarrier incomplete
  enum { ready, polling, waiting, done } state = ready;
  uint32_t waits_at = 0, barrier = 0;  ///< where waiting or polling: the operation; the barrier's number
  bool spun = false;             ///< after a long loop: any of its lanes may go on, not only those furthest behind
  Mask had_turn = 0;             ///< lanes that have spun since all others had their turn
  bool cluster_arrived = false;  ///< between barrier.cluster.arrive and .wait
  uint64_t cluster_phase = 0;    ///< of the cluster's barrier, when it arrived
  uint64_t cluster_waited = 0;   ///< phases of the cluster's barrier that were complete when it last waited there
  Poll poll;
  Spin spin;
  uint32_t wgmma_under_way = 0;              ///< sets of accumulators that nothing has waited for
  std::vector<bool> accumulates;             ///< by a register's offset / 32: it belongs to one of these sets
  uint32_t registers_held = 0;               ///< per thread, by setmaxnreg
  std::vector<AsyncCopy> copies;             ///< cp.async under way, in the order of their issue
  uint64_t copies_issued = 0;                ///< all of them
  uint32_t landed_at = 0;                    ///< by the clock of the block's copies: the last that landed by itself
  uint32_t waited_at = 0;                    ///< by the warp's own clock: the last that landed at a wait
  std::array<uint32_t, warp_size> groups{};  ///< of each lane: how many it has committed
  std::array<uint32_t, warp_size> bulk_groups{};  ///< how many each lane has committed
};

/// "lanes 0-15 20", for a report.
std::string lanes_of(Mask mask);

/// The new value that op.reduction gives.
uint32_t reduced(const Op& op, uint32_t a, uint32_t b);

/// What red and red.async do to a place in memory that other CPU threads may change.
void reduce_atomically(const Op& op, std::byte* at, const std::byte* value);

/// An addition to global memory that other CPU threads may change.
void add_atomically(NumberType type, uint32_t bytes, std::byte* at, const std::byte* value);

/// An allocation that an operation has hit, and what is known of its bytes; null: they all hold values.
struct KnownContents {
  uint64_t begin = 0, bytes = 0;
  Contents* contents = nullptr;
};

class Block {
 public:
  /// Block `rank` of the cluster.
  Block(Cluster& cluster, uint32_t rank);

  /// Makes it block `index` of the grid.
  void start(Extent index);
  void run_warp(Warp& warp);
  /// A warp has exited: looks again at the barriers that waited for it.
  void warp_ended(const Warp& warp);

  std::vector<Warp>& warps() { return warps_; }
  SharedMemory& shared() { return shared_; }
  Extent index() const { return block_index_; }
  bool ended() const { return live_warps_ == 0; }
  /// Thrown where an access is out of bounds or misaligned, and the kernel goes on: these lanes make no access.
  struct Skip {
    Mask lanes;
  };

  /// A hash of everything that decides what a warp does next, except memory.
  uint64_t state_of(const Warp& warp) const;

  /// What a waiting, polling or spinning warp waits for, for a report.
  std::string waits_for(const Warp& warp) const;
  std::string where(const Op& op) const;
  [[noreturn]] void report(const Warp& warp, int lane, const Op& op, const std::string& what, Fault fault) const;
  /// As an error or as a warning, after which the kernel goes on. Only where finds() has said so.
  void report(const Warp& warp, int lane, const Op& op, const std::string& what, Check check) const;
  static Fault fault_of(Check check) {
    return check == Check::bounds || check == Check::ended ? Fault::illegal_address
           : check == Check::misaligned                    ? Fault::misaligned
                                                           : Fault::launch_failure;
  }
  /// Counts a finding. True where it is to be reported: an error, or the operation's first warning of this check.
  bool finds(Check check, const Op& op) const;

 private:
  friend class Cluster;

  struct Barrier {
    uint32_t arrived = 0;   ///< warps, one bit each
    uint32_t expected = 0;  ///< warps; 0: all that live
    uint32_t waiting = 0;   ///< of the arrived, those that wait
    VectorClock clock;
    uint32_t sum = 0;  ///< of bar.red: how many predicates are true, and of how many
    uint32_t votes = 0;
  };
  using Addresses = std::array<uint64_t, warp_size>;

  void preset(Warp& warp, const Preset& p);
  // run_warp.cpp
  struct Turn;
  enum class Then;
  Then execute(Warp& warp, const Op& op, Turn& turn, Mask& mask);
  Then branch(Warp& warp, const Op& op, Turn& turn, Mask mask);
  Then call(Warp& warp, const Op& op, Turn& turn, Mask mask);
  Then call_indirect(Warp& warp, const Op& op, Turn& turn, Mask mask);
  void enter(Warp& warp, int lane, const Op& op, const Callee& callee);
  void restore(Warp& warp, int lane, const Callee& callee);
  uint32_t grow_stack(Warp& warp, int lane, const Op& op, uint64_t bytes, uint32_t alignment);
  void stack_operation(Warp& warp, const Op& op, Mask mask);
  Then leave(Warp& warp, const Op& op, Turn& turn, Mask mask);
  Then yield(Warp& warp, const Turn& turn);
  static void spin(Warp& warp, const Turn& turn);
  Then mbarrier(Warp& warp, const Op& op, const Turn& turn, Mask mask);
  Then meet(Warp& warp, const Op& op, const Turn& turn, Mask& mask);
  void copy_in_frame(Warp& warp, int lane, std::span<const Copy> copies);
  [[noreturn]] void trap(const Warp& warp, const Op& op, Mask mask) const;
  void pack(Warp& warp, const Op& op, Mask mask);
  void unpack(Warp& warp, const Op& op, Mask mask);
  void read_clock(Warp& warp, const Op& op, Mask mask);
  void is_space(Warp& warp, const Op& op, Mask mask);
  bool regroup(Warp& warp, Turn& turn);
  bool synchronise(Warp& warp, uint32_t pc, Mask& mask);
  static Mask parked_with(const Warp& warp, Mask parked, int lane);
  void release_parked(Warp& warp);
  bool collective(Warp& warp, const Op& op, uint32_t pc);

  // warp_operation.cpp
  void warp_operation(Warp& warp, const Op& op, Mask mask);
  void shuffle(Warp& warp, const Op& op, Mask mask);

  void arrive(Warp& warp, const Op& op);
  void complete(uint32_t id);
  void check_barriers();

  void memory_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  bool load_as_before(Warp& warp, const Op& op, uint32_t pc);
  void access(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address, bool generic);
  /// The lanes' addresses, as they stand in the instruction's state space.
  static Addresses addresses(const Warp& warp, const Address& operand);
  static Addresses addresses(const Warp& warp, const Op& op) {
    return addresses(warp, {op.o.a, op.address_bytes, op.displacement});
  }
  void check_global(Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                    Pattern& pattern);
  void check_bounds(Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                    const Pattern& pattern);
  void count_global(uint32_t pc, uint64_t origin, uint64_t bytes, Pattern& pattern);
  void check_aligned(const Warp& warp, const Op& op, const Addresses& address, uint32_t bytes,
                     const Pattern& pattern) const;
  void check_shared(Warp& warp, const Op& op, uint32_t pc, Mask mask, Block& owner, const Addresses& address,
                    uint32_t bytes, Pattern& pattern);
  void store_in_any_order(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at);
  void print(Warp& warp, const Op& op, Mask mask);
  const std::byte* readable(const Warp& warp, int lane, uint64_t address, uint64_t bytes) const;
  std::string text_at(const Warp& warp, int lane, const Op& op, uint64_t address) const;
  std::string argument_text(const Warp& warp, int lane, const Op& op, uint32_t argument) const;
  /// The pattern of access number `part` of an operation, of `bytes` bytes per lane.
  Pattern& pattern(uint32_t pc, uint32_t part, Space space, Mask mask, const Addresses& address, uint32_t bytes);
  static void learn(Pattern& pattern, Mask mask, const Addresses& address, uint32_t bytes);
  void move_data(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at,
                 Pattern::Form form = Pattern::Form::general);
  void atomic(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at);

  // async_copy.cpp
  void async_copy(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void async_wait(Warp& warp, const Op& op, Mask mask);
  void async_arrive(Warp& warp, const Op& op, Mask mask);
  /// The copies before an arrival land, for the lanes `due`, which arrive at the mbarrier at `address`.
  void arrive_after_copies(AsyncArrival& arrival, Mask due, uint32_t address);
  /// The parts of a copy that belong to the lanes `due` take place, as writes by `actor` at `time`.
  void land(AsyncCopy& copy, Mask due, uint32_t actor, uint32_t time);

  // matrix_memory.cpp
  void matrix_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  Addresses shared_addresses(const Warp& warp, const Op& op, Mask mask);
  void move_matrices(Warp& warp, const Op& op, uint32_t pc);
  void move_fragment(Warp& warp, const Op& op, uint32_t pc);

  /// `access`: "read" or "write".
  void report_shared(const Warp& warp, int lane, const Op& op, uint32_t word, const char* access,
                     const SharedMemory::Verdict& verdict) const;
  /// Ends the access of this lane, after an error's or a warning's report.
  [[noreturn]] void reject(const Warp& warp, int lane, const Op& op, Check check,
                           const std::function<std::string()>& what) const;
  void access_or_skip(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address, bool generic);
  static bool writes_what_is_there(const Warp& warp, const Op& op, Mask mask, const Addresses& address, uint32_t bytes,
                                   uint32_t word, const std::byte* memory);
  std::string complete(const Warp& warp, int lane, const Op& op, const std::string& what) const;
  void check_exited(const Warp& warp, const Op& op) const;
  bool can_meet_at_different_barriers(const Warp& warp) const;
  void meet_at_different_barriers(Warp& warp);

  // global_memory.cpp
  bool have_contents(const Op& op, const KnownContents& known, uint64_t origin, uint32_t bytes,
                     const Pattern& pattern) const;
  void check_contents(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                      const Pattern* pattern);
  void check_contents(const Warp& warp, int lane, const Op& op, uint64_t address, uint64_t bytes, bool reads,
                      bool writes) const;
  void check_global_race(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                         uint32_t bytes) const;
  void note_synchronisation(const Op& op) const;

  Block& owner_of(const Warp& warp, int lane, const Op& op, uint64_t address);
  void check_reachable(const Warp& warp, int lane, const Op& op, const Block& owner) const;
  void map_address(Warp& warp, const Op& op, Mask mask);

  /// The actor that stands for asynchronous copies into this block.
  uint32_t copy_actor() const;

  // mbarrier.cpp
  Block& mbarrier_owner(const Warp& warp, int lane, const Op& op, uint64_t& address);
  Mbarrier& find_mbarrier(const Warp& warp, int lane, const Op& op, Block& owner, uint64_t address) const;
  bool mbarrier_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void init_mbarrier(Warp& warp, int lane, const Op& op, uint32_t pc, uint64_t address, uint32_t count);
  void arrive(Warp& warp, int lane, const Op& op, Mbarrier& m);
  bool test_wait(Warp& warp, int lane, const Op& op, const Mbarrier& m);
  void fence_mbarriers(const Warp& warp);
  std::string polls_for(const Warp& warp) const;

  // wgmma.cpp
  Warpgroup& warpgroup(const Warp& warp);
  bool wgmma(Warp& warp, const Op& op, uint32_t pc);
  void issue_wgmma(Warp& warp, const Op& op, uint32_t pc);
  bool wait_wgmma(Warp& warp, const Op& op);
  void execute_wgmma(const Warp& warp, Warpgroup& group, const Wgmma& one);
  void execute_wgmma_bytes(const Warp& warp, Warpgroup& group, const Wgmma& one);  // wgmma_bytes.cpp
  bool set_registers(Warp& warp, const Op& op);
  void check_accumulators(const Warp& warp, const Op& op, uint32_t pc, Mask mask) const;

  // bulk_copy.cpp
  BulkCopy::End shared_end(const Warp& warp, int lane, const Op& op, uint64_t address, bool cluster);
  void bulk_copy(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  TensorMap tensor_map(const Warp& warp, int lane, const Op& op, uint64_t address) const;
  void async_store(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void issue_store(BulkCopy copy);
  void issue(BulkCopy copy);
  void count_bulk(const BulkCopy& copy);
  void check_tensor_row(const BulkCopy& copy, const TensorRow& row) const;
  void read_source(BulkCopy& copy);
  void write_destination(BulkCopy& copy);
  void bulk_wait(Warp& warp, const Op& op, Mask mask);
  void end_pending();
  void report_unfenced(const Warp& warp, int lane, const Op& op, uint32_t word) const;

  Cluster& cluster_;
  const Program& program_;
  const LaunchParams& launch_;
  const DeviceMemory& memory_;
  Clocks& clocks_;
  // Of the whole cluster, by operation.
  std::vector<OpCount>& counts_;
  std::vector<std::vector<Pattern>>& patterns_;
  std::vector<std::pair<uint64_t, uint64_t>>& ranges_;  ///< the allocation it hit last, first byte and end
  std::vector<KnownContents>& contents_;                ///< the same, for what has been written there

  uint32_t number_;  ///< among the blocks that run interleaved
  uint32_t rank_;    ///< in its cluster
  uint32_t threads_ = 0;
  Extent block_index_;
  std::vector<Warp> warps_;
  uint32_t live_warps_ = 0;
  std::unique_ptr<std::byte[]> registers_;
  std::vector<std::byte> frames_;
  SharedMemory shared_;
  std::array<Barrier, 16> barriers_;
  VectorClock exited_;  ///< of the warps that have exited
  Mbarriers mbarriers_;
  std::vector<Warpgroup> warpgroups_;
  uint32_t free_registers_ = 0;  ///< given up by setmaxnreg.dec: of one thread of a warp
};

}  // namespace sim
