// PTX text to a module: recursive descent over the grammar that nvcc emits and that inline assembly adds to it.
#pragma once

#include <string_view>

#include "ptx/ir.h"

namespace sim::ptx {

/// Throws PtxError, with the line and what was expected there, on everything that it does not understand. An instruction's
/// mnemonic and modifiers are not looked up: a module may hold instructions that are never executed.
Module parse(std::string_view text);

}  // namespace sim::ptx
