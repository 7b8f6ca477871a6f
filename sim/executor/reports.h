// What is said of a fault or of a finding, and how often each was found.
#pragma once

#include <cstdint>
#include <string>

#include "error.h"
#include "executor/unit.h"
#include "executor/warnings.h"

namespace sim {

class Reports {
 public:
  explicit Reports(const Unit& unit) : unit_(unit) {}
  ~Reports();
  Reports(const Reports&) = delete;

  /// The operation's line.
  std::string where(const Op& op) const;
  /// The name of an actor of the clocks, as seen from `block`.
  std::string name_of(uint32_t actor, const Block& block) const;

  [[noreturn]] void report(const Warp& warp, int lane, const Op& op, const std::string& what, Fault fault) const;
  /// As an error or as a warning, after which the kernel goes on. Only where finds() has said so.
  void report(const Warp& warp, int lane, const Op& op, const std::string& what, Check check);
  /// Counts a finding. True where it is to be reported: an error, or the operation's first warning of this check.
  bool finds(Check check, const Op& op);

  static Fault fault_of(Check check) {
    return check == Check::bounds || check == Check::ended ? Fault::illegal_address
           : check == Check::misaligned                    ? Fault::misaligned
                                                           : Fault::launch_failure;
  }

 private:
  std::string complete(const Warp& warp, int lane, const Op& op, const std::string& what) const;

  const Unit& unit_;
  WarningsByOp warnings_;
};

}  // namespace sim
