// Formatted text. fmt's own headers beyond core.h cost each file seconds; they are compiled once, in text.cpp.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>

namespace sim {

std::string vformatted(fmt::string_view format, fmt::format_args values);

template <class... T>
std::string formatted(fmt::format_string<T...> format, const T&... values) {
  return vformatted(format, fmt::make_format_args(values...));
}

template <class... T>
void print(std::FILE* file, fmt::format_string<T...> format, const T&... values) {
  std::fputs(vformatted(format, fmt::make_format_args(values...)).c_str(), file);
}

}  // namespace sim
