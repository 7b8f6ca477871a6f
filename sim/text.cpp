#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY  // here, and nowhere else
#endif
#include "text.h"

#include <fmt/format.h>

namespace sim {

std::string vformatted(fmt::string_view format, fmt::format_args values) { return fmt::vformat(format, values); }

}  // namespace sim
