#include "executor/warp.h"

#include "text.h"

namespace sim {

std::string lanes_of(Mask mask) {
  if (mask == all_lanes) return "all lanes";
  std::string text = std::popcount(mask) == 1 ? "lane" : "lanes";
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    int last = l;
    while (last + 1 < warp_size && (mask >> (last + 1) & 1)) ++last;
    text += last > l ? formatted(" {}-{}", l, last) : formatted(" {}", l);
    l = last;
  }
  return text;
}

Addresses addresses(const Warp& warp, const Address& operand) {
  Addresses address;
  if (operand.bytes == 8) {
    const uint64_t* base = reinterpret_cast<const uint64_t*>(warp.registers + operand.base);
    for (int l = 0; l < warp_size; ++l) address[l] = base[l] + uint64_t(operand.displacement);
  } else {
    const uint32_t* base = reinterpret_cast<const uint32_t*>(warp.registers + operand.base);
    for (int l = 0; l < warp_size; ++l) address[l] = uint32_t(base[l] + uint64_t(operand.displacement));
  }
  return address;
}

Addresses addresses(const Warp& warp, const Op& op) {
  Addresses address = addresses(warp, {op.o.a, op.address_bytes, op.displacement});
  if (op.drops_rank)
    for (uint64_t& a : address) a = shared_offset(a);
  return address;
}

}  // namespace sim
