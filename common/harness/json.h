// Text as JSON has it.
#pragma once

#include <string>
#include <string_view>

namespace ladder {

/// `text` in double quotes; control characters are left out.
inline std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

}  // namespace ladder
