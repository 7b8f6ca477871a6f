#include "executor/reports.h"

#include "text.h"

namespace sim {

Reports::~Reports() {
  if (unit_.launch.warnings) unit_.launch.warnings->add(warnings_);
}

std::string Reports::where(const Op& op) const {
  const SourceLine& line = unit_.program.sources[op.source];
  return line.line ? formatted("{}:{}, PTX line {}", line.file, line.line, op.ptx_line)
                   : formatted("PTX line {}", op.ptx_line);
}

std::string Reports::complete(const Warp& warp, int lane, const Op& op, const std::string& what) const {
  const uint32_t thread = warp.index * warp_size + uint32_t(lane);
  const Extent& size = unit_.launch.block;
  return formatted("{}\n  at {}: {}\n  kernel {}, block ({}, {}, {}), thread ({}, {}, {}): warp {}, lane {}", what,
                   where(op), op.text, unit_.program.kernel, warp.block->index.x, warp.block->index.y,
                   warp.block->index.z, thread % size.x, thread / size.x % size.y, thread / size.x / size.y, warp.index,
                   lane);
}

void Reports::report(const Warp& warp, int lane, const Op& op, const std::string& what, Fault fault) const {
  throw Error(complete(warp, lane, op, what), fault);
}

bool Reports::finds(Check check, const Op& op) {
  const Severity severity = unit_.launch.checks[check];
  if (severity != Severity::warning) return severity == Severity::error;
  return warnings_[{static_cast<uint32_t>(&op - unit_.program.ops.data()), check}].times++ == 0;
}

void Reports::report(const Warp& warp, int lane, const Op& op, const std::string& what, Check check) {
  if (unit_.launch.checks[check] == Severity::error) report(warp, lane, op, what, fault_of(check));
  Warning& warning = warnings_[{static_cast<uint32_t>(&op - unit_.program.ops.data()), check}];
  warning.unit = unit_.index;
  warning.place = formatted("{}: {}", where(op), op.text);
  warning.text = complete(warp, lane, op, what);
}

std::string Reports::name_of(uint32_t actor, const Block& block) const {
  const Block& owner = *unit_.blocks[actor / unit_.launch.actors_per_block()];
  const uint32_t index = actor % unit_.launch.actors_per_block();
  const bool copy = index == unit_.launch.warps_per_block();
  const bool tensor = index > unit_.launch.warps_per_block();
  std::string name = copy ? "a bulk copy" : tensor ? "the tensor core" : formatted("warp {}", index);
  const Extent at = owner.index;
  if (&owner != &block) name += formatted("{} block ({}, {}, {})", copy ? " into" : " of", at.x, at.y, at.z);
  return name;
}

}  // namespace sim
