// tcgen05: allocates tensor memory, issues, lands, and multiplies.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/matrix_operands.h"
#include "executor/memory_checker.h"
#include "executor/reports.h"
#include "executor/synchronisation.h"
#include "executor/tcgen05.h"
#include "executor/unit.h"

namespace sim {

class Tcgen05Engine {
 public:
  Tcgen05Engine(Unit& unit, Reports& reports, MemoryChecker& checker, Synchronisation& sync)
      : unit_(unit), reports_(reports), checker_(checker), sync_(sync), program_(unit.program), clocks_(unit.clocks) {}

  /// The unit starts.
  void start() {
    queues_.clear();
    collectors_.clear();
  }

  /// tcgen05.alloc, dealloc and relinquish_alloc_permit, by all lanes of a warp together. False: the warp waits for columns.
  bool allocation(Warp& warp, const Op& op, uint32_t pc);
  /// tcgen05.ld, st and wait, by all lanes of a warp together.
  void move(Warp& warp, const Op& op, uint32_t pc);
  /// tcgen05.mma, cp, shift and commit, by each lane of `mask`.
  void issue(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void fence(const Warp& warp, const Op& op);

  /// Of any instruction: that it uses no register that a tcgen05.ld will fill.
  void check_loads(Warp& warp, const Op& op, uint32_t pc, Mask mask);

  /// What a commit that arrives at the mbarrier of `block` at `address` waits for, and the arrival. False where there is none.
  bool land_for(const Block& block, uint32_t address);
  /// At any mbarrier.
  bool land_any();

  void block_ends(const Block& block);

 private:
  using Queue = std::deque<TensorWork>;
  /// How an instruction touches a region.
  struct Use {
    bool reads = false, writes = false;
    bool in_pipeline =
        false;  ///< after others of its thread that are under way (PTX ISA 9.7.16, "Pipelined tcgen05 Instructions")
    bool in_order =
        true;  ///< after accesses that are over; tcgen05.dealloc need only come after them in time: a use after it is reported
  };

  /// A matrix in a collector buffer: its descriptor, or its address in tensor memory; and what it is.
  struct Collected {
    uint64_t matrix = 0;
    bool in_tensor_memory = false;
    OperandFormat format = OperandFormat::none;
    uint32_t extent = 0;
    bool operator==(const Collected&) const = default;
  };

  static uint32_t thread_of(const Warp& warp, int lane) { return warp.actor * warp_size + uint32_t(lane); }
  uint32_t tensor_address(const Warp& warp, int lane, const Address& address) const;
  void fail(const Warp& warp, int lane, const Op& op, const std::string& what) {
    reports_.report(warp, lane, op, what, Fault::launch_failure);
  }
  void check_pair(const Warp& warp, int lane, const Op& op);
  void check_allocated(const Warp& warp, int lane, const Op& op, Block& block, const TensorRegion& region);
  void check(const Warp& warp, int lane, const Op& op, Block& block, const TensorRegion& region, const Use& use);
  /// Whether an earlier access is over for what the warp does now: synchronisation lies between, and fences.
  bool check_order(const Warp& warp, int lane, const Op& op, const TensorAccess& before, const char* access,
                   uint32_t column, const Use& use);

  bool allocate(Warp& warp, const Op& op, uint32_t pc, uint32_t columns);
  void free(Warp& warp, const Op& op, uint32_t columns);
  TensorRegion region_of(const Warp& warp, const Op& op, uint32_t address, uint32_t& lane);
  void load(Warp& warp, const Op& op, uint32_t pc);
  void store(Warp& warp, const Op& op, uint32_t pc);
  void wait_for_loads(Warp& warp);
  void wait_for_stores(Warp& warp);

  void issue_multiply(TensorWork work);
  void issue_copy(TensorWork work);
  void issue_shift(TensorWork work);
  void issue_commit(TensorWork work);
  TensorRegion rows(const TensorWork& work, uint32_t address, const DataPath& path, uint32_t columns,
                    const char* matrix);
  TensorRegion scales(const TensorWork& work, uint32_t address, uint32_t count, const char* matrix);
  bool meet_peer(Warp& warp);
  void begin_shared_reads(TensorWork& work, uint64_t bits, bool k_contiguous, uint32_t extent, uint32_t element_bytes,
                          const char* matrix, uint32_t units = units_per_row);
  void check_shared_reads(TensorWork& work, bool a_k_contiguous, bool b_k_contiguous, uint32_t element_bytes);
  void check_collector(const TensorWork& work, const InstructionDescriptor& shape);
  void enqueue(TensorWork work);

  void land(Queue& queue, size_t last);
  void carry_out(TensorWork& work);
  void multiply(TensorWork& work);  // tcgen05_multiply.cpp
  void multiply_rows(const TensorWork& work, uint32_t index, uint32_t first_row, uint32_t rows);
  void apply_scale_factors(const TensorWork& work, Block& block, uint32_t first_row, uint32_t rows);
  void copy(const TensorWork& work, Block& block);
  void shift(const TensorWork& work, Block& block);
  void arrive(TensorWork& work);

  Unit& unit_;
  Reports& reports_;
  MemoryChecker& checker_;
  Synchronisation& sync_;
  const Program& program_;
  Clocks& clocks_;
  std::map<uint32_t, Queue> queues_;                           ///< by the thread that issued
  bool lanes_reported_ = false, scale_bits_reported_ = false;  ///< once is enough
  std::vector<double> a_, b_;                                  ///< of one product: a[k][m], b[n][k]
  std::vector<double> scaled_b_;                               ///< by the scale factors that some rows have
  /// Of each block (of a pair, the even one) what its collector buffers hold: of A, and four of B.
  std::map<const Block*, std::array<std::optional<Collected>, 5>> collectors_;
};

}  // namespace sim
