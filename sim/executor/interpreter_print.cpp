// vprintf, and strings that kernels hand over.
#include <cstring>

#include "executor/interpreter.h"
#include "executor/print.h"
#include "text.h"

namespace sim {

/// Global or local memory at a generic address; null where that is not all of it readable.
const std::byte* Interpreter::readable(const Warp& warp, int lane, uint64_t address, uint64_t bytes) {
  if (!in_local_window(address))
    return memory_.contains(address, bytes) ? reinterpret_cast<const std::byte*>(address) : nullptr;
  address -= local_window;
  const uint64_t size = program_.frame_bytes;
  return address <= size && bytes <= size - address ? warp.frames + lane * size + address : nullptr;
}

std::string Interpreter::text_at(const Warp& warp, int lane, const Op& op, uint64_t address) {
  std::string text;
  for (;; ++address) {
    const std::byte* const at = readable(warp, lane, address, 1);
    if (!at)
      reports_.report(warp, lane, op, formatted("a string outside of every allocation: {}", memory_.describe(address)),
                      Fault::illegal_address);
    if (*at == std::byte{0}) return text;
    text += static_cast<char>(*at);
  }
}

/// Of a call: the string that one of its arguments, at this place of the lane's frame, points to.
std::string Interpreter::argument_text(const Warp& warp, int lane, const Op& op, uint32_t argument) {
  uint64_t address;
  std::memcpy(&address, warp.frames + size_t(lane) * program_.frame_bytes + argument, 8);
  return text_at(warp, lane, op, address);
}

/// int vprintf(const char* format, const void* arguments): the arguments lie one behind the other as C promotes them, each
/// aligned to its size.
void Interpreter::print(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte* const frame = warp.frames + size_t(l) * program_.frame_bytes;
    uint64_t next;
    std::memcpy(&next, frame + op.o.b, 8);
    const auto argument = [&](int bytes) {
      next = (next + bytes - 1) / bytes * bytes;
      const std::byte* const at = readable(warp, l, next, bytes);
      if (!at) reports_.report(warp, l, op, "printf has more conversions than arguments", Fault::illegal_address);
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

}  // namespace sim
