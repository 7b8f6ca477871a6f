// Names within lexical blocks ("Identifiers", "Parameterized Variable Names").
//
// Each statement of inline assembly may have a block `{ .reg .b32 t; L1: ... }` of its own. So one function can hold many
// registers and labels of the same name. An inner name hides an outer one.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "ptx/ir.h"

namespace sim::ptx {

struct RegisterId {
  uint32_t id;
};
using Named = std::variant<RegisterId, Symbol>;

/// `.reg .b32 %r<4>` declares %r0 to %r3.
struct RegisterRange {
  uint32_t first;
  uint32_t count;
};

/// A label that is used before it is defined. It keeps indices, not pointers: instructions move while their list grows.
struct PendingLabel {
  std::string_view name;
  uint32_t line;
  uint32_t instruction;  ///< or the index of a branch_targets list
  uint32_t operand;      ///< or the place in that list
  bool is_branch_target;
};

struct Scope {
  std::unordered_map<std::string_view, Named> names;
  std::unordered_map<std::string_view, RegisterRange> ranges;
  std::unordered_map<std::string_view, uint32_t> labels;  ///< to the index of the next instruction
  std::vector<PendingLabel> pending;
  uint64_t call_param_bytes = 0;  ///< of the .param variables that end with this block

  std::optional<Named> find(std::string_view name) const {
    if (const auto found = names.find(name); found != names.end()) return found->second;
    if (ranges.empty()) return std::nullopt;
    // %r12 is the 12th of %r; %r012 is not.
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string_view number = name.substr(digits);
    if (number.empty() || number.size() > 9 || (number.size() > 1 && number[0] == '0')) return std::nullopt;
    const auto range = ranges.find(name.substr(0, digits));
    if (range == ranges.end()) return std::nullopt;
    uint32_t index = 0;
    for (const char c : number) index = 10 * index + static_cast<uint32_t>(c - '0');
    if (index >= range->second.count) return std::nullopt;
    return RegisterId{range->second.first + index};
  }
};

}  // namespace sim::ptx
