// What --list prints: the facts that rungs state about themselves.
#pragma once

#include <string>
#include <vector>

#include "common/rung.h"

namespace ladder {

/// A table for people: number, name, kind, idea, types, instruction, least architecture.
std::string list_text(const std::vector<const Rung*>& rungs);

/// JSON for scripts: the types that exist, the families of shapes, and everything that a rung states, a line each.
std::string list_json(const std::vector<const Rung*>& rungs);

}  // namespace ladder
