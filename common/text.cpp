#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY  // here, and nowhere else
#endif
#include <fmt/format.h>

#include "common/text.h"

namespace ladder {

std::string vformatted(fmt::string_view format, fmt::format_args values) { return fmt::vformat(format, values); }

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (&word == words.data() ? "" : separator) + word;
  return text;
}

}  // namespace ladder
