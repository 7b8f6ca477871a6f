// Plans that were measured to be faster than those that a rung's model chooses: --tune finds them, --plans reads them.
#pragma once

#include <string>

#include "common/problem.h"

namespace ladder {

/// From now on the rung of this number goes about problems of this size, type, result and leading dimensions by its plan of this name.
void prefer(const std::string& rung, const Problem& p, const std::string& plan);

/// The plan's name; empty where none is preferred.
std::string preferred(const std::string& rung, const Problem& p);

/// What a rung that takes several layouts calls itself above: its number and the problem's layout, "39 tn".
std::string in_layout(const std::string& rung, const Problem& p);

}  // namespace ladder
