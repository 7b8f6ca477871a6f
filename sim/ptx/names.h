// Names that occur in PTX, to what they stand for; the way back is name_of() in ir.h.
#pragma once

#include <optional>
#include <string_view>

#include "ptx/ir.h"

namespace sim::ptx {

std::optional<Type> type_named(std::string_view name);        ///< "f32"
std::optional<Special> special_named(std::string_view name);  ///< "%tid.x"

}  // namespace sim::ptx
