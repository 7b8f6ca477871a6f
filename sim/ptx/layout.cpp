#include "ptx/layout.h"

#include <algorithm>
#include <deque>

namespace sim::ptx {
namespace {

bool is_static_shared(const Variable& variable) { return variable.space == StateSpace::shared && !variable.is_extern; }

/// What an entry can reach: functions that it calls, module variables that it names.
struct Reached {
  std::vector<bool> functions;
  std::vector<bool> variables;
};

void reach(const Module& module, const Operand& operand, Reached& reached, std::deque<uint32_t>& queue) {
  if (operand.symbol.kind == Symbol::Kind::module_variable) reached.variables[operand.symbol.index] = true;
  if (operand.symbol.kind == Symbol::Kind::function && !reached.functions[operand.symbol.index]) {
    reached.functions[operand.symbol.index] = true;
    queue.push_back(operand.symbol.index);
  }
  // The callee is in a register: it may be any device function.
  if (operand.symbol.kind == Symbol::Kind::prototype)
    for (uint32_t i = 0; i < module.functions.size(); ++i)
      if (!module.functions[i].is_entry && !reached.functions[i]) {
        reached.functions[i] = true;
        queue.push_back(i);
      }
  for (const Operand& element : operand.elements) reach(module, element, reached, queue);
}

Reached reached_from(const Module& module, uint32_t entry) {
  Reached reached{std::vector<bool>(module.functions.size()), std::vector<bool>(module.variables.size())};
  reached.functions[entry] = true;
  for (std::deque<uint32_t> queue{entry}; !queue.empty(); queue.pop_front())
    for (const Instruction& instruction : module.functions[queue.front()].instructions)
      for (const Operand& operand : instruction.operands) reach(module, operand, reached, queue);
  return reached;
}

}  // namespace

uint64_t lay_out(std::vector<Variable>& variables) {
  uint64_t bytes = 0;
  for (Variable& variable : variables) {
    variable.offset = round_up(bytes, variable.alignment);
    bytes = variable.offset + variable.size;
  }
  return bytes;
}

// All entries run the same code of a device function. So the shared memory of device functions and of the module lies at
// the same place for every entry: at the start. An entry that reaches none of it does not allocate it.
void lay_out(Module& module) {
  uint64_t global_bytes = 0, constant_bytes = 0, common_bytes = 0;
  const auto append = [](Variable& variable, uint64_t& bytes) {
    variable.offset = round_up(bytes, variable.alignment);
    bytes = variable.offset + variable.size;
  };
  for (Variable& variable : module.variables) {
    if (variable.space == StateSpace::global) append(variable, global_bytes);
    if (variable.space == StateSpace::constant) append(variable, constant_bytes);
    if (is_static_shared(variable)) append(variable, common_bytes);
  }
  for (Function& function : module.functions)
    if (!function.is_entry)
      for (Variable& variable : function.variables)
        if (is_static_shared(variable)) append(variable, common_bytes);

  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    Function& entry = module.functions[i];
    if (!entry.is_entry) continue;
    const Reached reached = reached_from(module, i);
    bool uses_common = false;
    const auto look_at = [&](const Variable& variable, bool own) {
      if (is_static_shared(variable) && !own) uses_common = true;
      if (variable.space == StateSpace::shared && variable.is_extern)
        entry.dynamic_shared_alignment = std::max(entry.dynamic_shared_alignment, variable.alignment);
    };
    for (size_t v = 0; v < module.variables.size(); ++v)
      if (reached.variables[v]) look_at(module.variables[v], false);
    for (size_t f = 0; f < module.functions.size(); ++f)
      if (reached.functions[f])
        for (const Variable& variable : module.functions[f].variables) look_at(variable, f == i);

    entry.shared_bytes = uses_common ? common_bytes : 0;
    for (Variable& variable : entry.variables)
      if (is_static_shared(variable)) append(variable, entry.shared_bytes);
  }
}

}  // namespace sim::ptx
