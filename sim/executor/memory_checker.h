// Every access is checked here: its alignment, its bounds, what it finds there, who else touches the same bytes. And what it costs
// is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "executor/access_pattern.h"
#include "executor/global_races.h"
#include "executor/reports.h"
#include "executor/unit.h"

namespace sim {

class MemoryChecker {
 public:
  /// `races`: null where races in global memory are not looked for.
  MemoryChecker(Unit& unit, Reports& reports, GlobalRaces* races);

  /// Thrown where an access is out of bounds or misaligned, and the kernel goes on: these lanes make no access.
  struct Skip {
    Mask lanes;
  };

  /// The pattern of access number `part` of an operation, of `bytes` bytes per lane.
  Pattern& pattern(uint32_t pc, uint32_t part, Space space, Mask mask, const Addresses& address, uint32_t bytes);

  /// The last load of an operation from global memory by all lanes. Another one in its pattern is in bounds where the first lane's
  /// address lies in `origins` bytes from `origin` on. Pattern null: there was no such load.
  struct LastLoad {
    Pattern* pattern = nullptr;
    uint64_t origin = 0, origins = 0;
    uint32_t bytes = 0;                   ///< per lane
    uint32_t word_register = discarded;   ///< of one word per lane, side by side or the same: where they go
    bool complete = false;                ///< all of the allocation's bytes hold values ...
    const Contents* read_only = nullptr;  ///< ... of which none may be stored to before the load
  };

  /// Checks and counts a load from global memory by all lanes in the pattern of this operation's last one, where nothing speaks
  /// against it: most are such loads, and here they cost little. Null: it is not known to be one, and nothing has happened.
  const LastLoad* load_in_last_pattern(const Warp& warp, const Op& op, uint32_t pc);
  /// The operation has made an access, by all lanes of `pattern`.
  void keep_for_next_load(const Op& op, uint32_t pc, uint32_t bytes, Pattern& pattern);

  void check_aligned(const Warp& warp, const Op& op, const Addresses& address, uint32_t bytes, const Pattern& pattern);

  /// Global memory: bounds and contents, counted.
  void check_global(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                    Pattern& pattern);
  void check_bounds(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                    const Pattern& pattern);
  void check_contents(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                      const Pattern* pattern);
  void check_contents(const Warp& warp, int lane, const Op& op, uint64_t address, uint64_t bytes, bool reads,
                      bool writes);
  void count_global(uint32_t pc, uint64_t origin, uint64_t bytes, Pattern& pattern) {
    OpCount& count = counts_[pc];
    ++count.global_requests;
    count.global_bytes += bytes;
    count.sectors += pattern.sectors_at(origin);
  }
  /// A fence, or another operation that orders accesses of the warp's block.
  void note_synchronisation(const Warp& warp, const Op& op);

  /// Shared memory of `owner`, counted. The addresses are offsets in it.
  void check_shared(const Warp& warp, const Op& op, uint32_t pc, Mask mask, Block& owner, const Addresses& address,
                    uint32_t bytes, Pattern& pattern);
  /// The block in whose shared memory an address of shared::cluster, or a generic one, lies.
  Block& owner_of(const Warp& warp, int lane, const Op& op, uint64_t address);
  void check_reachable(const Warp& warp, int lane, const Op& op, const Block& owner);
  /// `access`: "read" or "write".
  void report_shared(const Warp& warp, int lane, const Op& op, uint32_t word, const char* access,
                     const SharedMemory::Verdict& verdict);
  void report_unfenced(const Warp& warp, int lane, const Op& op, uint32_t word);

  /// Ends the access of this lane, after an error's or a warning's report.
  [[noreturn]] void reject(const Warp& warp, int lane, const Op& op, Check check,
                           const std::function<std::string()>& what);

 private:
  /// An allocation that an operation has hit, and what is known of its bytes; null: they all hold values.
  struct KnownContents {
    uint64_t begin = 0, bytes = 0;
    Contents* contents = nullptr;
  };

  /// The lanes' accesses as one, where they lie side by side or at one place and nothing speaks against it. False: nothing has
  /// happened.
  bool have_contents(const Op& op, const KnownContents& known, uint64_t origin, uint32_t bytes,
                     const Pattern& pattern) const;
  void check_global_race(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                         uint32_t bytes);
  static bool writes_what_is_there(const Warp& warp, const Op& op, Mask mask, const Addresses& address, uint32_t bytes,
                                   uint32_t word, const std::byte* memory);
  uint64_t number_in_grid(const Block& block) const;

  Unit& unit_;
  Reports& reports_;
  const Program& program_;
  const LaunchParams& launch_;
  const DeviceMemory& memory_;
  const Clocks& clocks_;
  std::vector<OpCount>& counts_;
  GlobalRaces* const races_;
  // By operation.
  std::vector<std::vector<Pattern>> patterns_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  ///< the allocation it hit last, first byte and end
  std::vector<KnownContents> contents_;                ///< the same, for what has been written there
  std::vector<LastLoad> last_loads_;
};

inline bool MemoryChecker::have_contents(const Op& op, const KnownContents& known, uint64_t origin, uint32_t bytes,
                                         const Pattern& pattern) const {
  if (!pattern.within(origin - known.begin, bytes, known.bytes)) return false;
  if (!known.contents) return true;
  Contents& contents = *known.contents;
  const bool reads = !is_write(op.kind), writes = !is_read(op.kind) && op.kind != Kind::async_copy;
  const uint8_t launch = memory_.launch();
  if (!writes && contents.complete() && !(op.read_only && contents.has_stores_of(launch))) return true;
  if (pattern.form == Pattern::Form::general) return false;
  const uint64_t size = pattern.form == Pattern::Form::uniform ? bytes : uint64_t{bytes} * warp_size;
  if (reads && !contents.may_be_read(origin - known.begin, size, op.read_only, launch)) return false;
  if (writes) contents.kernel_wrote(origin - known.begin, size, launch);
  return true;
}

inline const MemoryChecker::LastLoad* MemoryChecker::load_in_last_pattern(const Warp& warp, const Op& op, uint32_t pc) {
  const LastLoad& last = last_loads_[pc];
  if (!last.pattern) return nullptr;
  const uint64_t* const base = reinterpret_cast<const uint64_t*>(warp.registers + op.o.a);
  const uint64_t origin = base[0] + uint64_t(op.displacement);
  if (origin - last.origin >= last.origins || origin & (last.bytes - 1) || !last.pattern->is_from(base)) return nullptr;
  const bool all_well = last.complete && !(last.read_only && last.read_only->has_stores_of(memory_.launch()));
  if (!all_well && !have_contents(op, contents_[pc], origin, last.bytes, *last.pattern)) return nullptr;
  count_global(pc, origin, uint64_t{last.bytes} * warp_size, *last.pattern);
  return &last;
}

}  // namespace sim
