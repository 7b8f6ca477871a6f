// The arithmetic instructions. Each is a loop over the lanes.
#pragma once

#include <string>
#include <vector>

#include "executor/program.h"

namespace sim {

struct LaneInstruction {
  LaneFunction function = nullptr;
  Class counted = Class::other;
  uint8_t d_bytes = 0, a_bytes = 0, b_bytes = 0, c_bytes = 0;  ///< register widths; 0: absent; `predicate`: a predicate
  uint8_t flops = 0;
};
constexpr uint8_t predicate = 255;

/// By mnemonic with all its modifiers ("fma.rn.f32"); setp and set without the operation that combines. Null where it is
/// unknown.
const LaneInstruction* find_lane_instruction(const std::string& mnemonic);

/// All that are known, sorted.
std::vector<std::string> lane_instructions();

}  // namespace sim
