#include "executor/print.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "executor/block.h"
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

/// Global or local memory at a generic address; null where that is not all of it readable.
const std::byte* Block::readable(const Warp& warp, int lane, uint64_t address, uint64_t bytes) const {
  if (!in_local_window(address))
    return memory_.contains(address, bytes) ? reinterpret_cast<const std::byte*>(address) : nullptr;
  address -= local_window;
  const uint64_t size = program_.frame_bytes;
  return address <= size && bytes <= size - address ? warp.frames + lane * size + address : nullptr;
}

std::string Block::text_at(const Warp& warp, int lane, const Op& op, uint64_t address) const {
  std::string text;
  for (;; ++address) {
    const std::byte* const at = readable(warp, lane, address, 1);
    if (!at)
      report(warp, lane, op, formatted("a string outside of every allocation: {}", memory_.describe(address)),
             Fault::illegal_address);
    if (*at == std::byte{0}) return text;
    text += static_cast<char>(*at);
  }
}

/// Of a call: the string that one of its arguments, at this place of the lane's frame, points to.
std::string Block::argument_text(const Warp& warp, int lane, const Op& op, uint32_t argument) const {
  uint64_t address;
  std::memcpy(&address, warp.frames + size_t(lane) * program_.frame_bytes + argument, 8);
  return text_at(warp, lane, op, address);
}

/// int vprintf(const char* format, const void* arguments): the arguments lie one behind the other as C promotes them, each
/// aligned to its size.
void Block::print(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte* const frame = warp.frames + size_t(l) * program_.frame_bytes;
    uint64_t next;
    std::memcpy(&next, frame + op.o.b, 8);
    const auto argument = [&](int bytes) {
      next = (next + bytes - 1) / bytes * bytes;
      const std::byte* const at = readable(warp, l, next, bytes);
      if (!at) report(warp, l, op, "printf has more conversions than arguments", Fault::illegal_address);
      uint64_t value = 0;
      std::memcpy(&value, at, bytes);
      next += bytes;
      return value;
    };
    int count = 0;
    const std::string line = printf_text(
        argument_text(warp, l, op, op.o.a), argument, [&](uint64_t address) { return text_at(warp, l, op, address); },
        count);
    if (launch_.print) launch_.print->add(line);
    std::memcpy(frame + op.o.d, &count, sizeof count);
  }
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
