#include "executor/print.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "text.h"

namespace sim {
namespace {

/// One conversion, printed by the C library with arguments of the type that it names.
template <class... T>
std::string print_one(const std::string& conversion, T... values) {
  std::string text(256, '\0');
  for (;;) {
    const int length = std::snprintf(text.data(), text.size(), conversion.c_str(), values...);
    if (length < 0) return conversion;
    const bool fits = static_cast<size_t>(length) < text.size();
    text.resize(fits ? length : length + 1);
    if (fits) return text;
  }
}

}  // namespace

std::string printf_text(const std::string& format, const std::function<uint64_t(int bytes)>& argument,
                        const std::function<std::string(uint64_t address)>& text, int& count) {
  std::string result;
  count = 0;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      result += format[at++];
      continue;
    }
    // %[flags][width][.precision][size]type
    const size_t begin = at++;
    std::string conversion = "%";
    const auto take_while = [&](const char* among) {
      while (at < format.size() && std::strchr(among, format[at])) {
        if (format[at] == '*') {
          conversion += std::to_string(static_cast<int32_t>(argument(4)));
          ++count;
        } else {
          conversion += format[at];
        }
        ++at;
      }
    };
    take_while("-+ #0");
    take_while("0123456789*");
    take_while(".0123456789*");
    const size_t size_begin = at;
    while (at < format.size() && std::strchr("hlLqjzt", format[at])) ++at;
    const std::string size = format.substr(size_begin, at - size_begin);
    const char type = at < format.size() ? format[at++] : '\0';
    if (type == '%') {
      result += '%';
      continue;
    }
    if (!type || !std::strchr("diouxXcsfFeEgGaAp", type)) {  // as the device does: unchanged
      result += format.substr(begin, at - begin);
      continue;
    }
    ++count;
    const bool wide = size.find_first_of("lqjzt") != std::string::npos;  // 8 bytes on the device
    if (std::strchr("fFeEgGaA", type)) {
      result += print_one(conversion + type, std::bit_cast<double>(argument(8)));
    } else if (type == 's') {
      result += print_one(conversion + type, text(argument(8)).c_str());
    } else if (type == 'p') {
      result += print_one(conversion + type, reinterpret_cast<void*>(argument(8)));
    } else if (type == 'c') {
      result += print_one(conversion + type, static_cast<int>(argument(4)));
    } else if (wide) {
      result += print_one(conversion + "ll" + type, static_cast<unsigned long long>(argument(8)));
    } else {
      const std::string narrow = size == "h" || size == "hh" ? size : "";
      result += print_one(conversion + narrow + type, static_cast<int>(argument(4)));
    }
  }
  return result;
}

void PrintBuffer::add(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ += text;
  if (text_.size() > 2 * capacity) text_.erase(0, text_.size() - capacity);
}

std::string PrintBuffer::take() {
  const std::lock_guard lock(mutex_);
  if (text_.size() > capacity) text_.erase(0, text_.size() - capacity);
  return std::exchange(text_, {});
}

}  // namespace sim
