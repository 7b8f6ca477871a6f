// What the lanes of a warp exchange: shfl, vote, elect, match and redux (PTX ISA 9.7.9.6 and 9.7.13).
#include <algorithm>
#include <bit>

#include "executor/atomics.h"
#include "executor/interpreter.h"
#include "text.h"

namespace sim {
namespace {

void write_predicate(Warp& warp, uint32_t offset, Mask value, Mask mask) {
  Mask& p = *at<Mask>(warp.registers, offset);
  p = (p & ~mask) | (value & mask);
}

/// The same 32-bit value in all lanes.
void write_all(Warp& warp, const Op& op, Mask mask, uint32_t value) {
  for (int l = 0; l < warp_size; ++l)
    if (mask >> l & 1) at<uint32_t>(warp.registers, op.o.d)[l] = value;
}

void vote(Warp& warp, const Op& op, Mask mask) {
  const Mask p = (*at<Mask>(warp.registers, op.o.a) ^ (op.o.flags & flag_not_c ? all_lanes : 0)) & mask;
  const auto write = [&](bool result) { write_predicate(warp, op.o.d, result ? all_lanes : 0, mask); };
  switch (op.vote) {
    case Vote::all:
      return write(p == mask);
    case Vote::any:
      return write(p != 0);
    case Vote::uni:
      return write(p == mask || p == 0);
    case Vote::ballot:
      return write_all(warp, op, mask, p);
  }
}

void elect(Warp& warp, const Op& op, Mask mask) {
  write_all(warp, op, mask, uint32_t(first(mask)));
  if (op.o.extra) write_predicate(warp, op.o.extra, Mask{1} << first(mask), mask);
}

void match(Warp& warp, const Op& op, Mask mask) {
  const auto value = [&](int l) {
    return op.bytes == 8 ? at<uint64_t>(warp.registers, op.o.a)[l] : at<uint32_t>(warp.registers, op.o.a)[l];
  };
  std::array<Mask, warp_size> equal{};
  for (int l = 0; l < warp_size; ++l)
    for (int m = 0; m < warp_size; ++m)
      if ((mask >> l & 1) && (mask >> m & 1) && value(l) == value(m)) equal[l] |= Mask{1} << m;
  const bool all = equal[first(mask)] == mask;
  for (int l = 0; l < warp_size; ++l)
    if (mask >> l & 1) at<Mask>(warp.registers, op.o.d)[l] = op.kind == Kind::match_any ? equal[l] : all ? mask : 0;
  if (op.o.extra) write_predicate(warp, op.o.extra, all ? all_lanes : 0, mask);
}

void redux(Warp& warp, const Op& op, Mask mask) {
  const uint32_t* const a = at<uint32_t>(warp.registers, op.o.a);
  uint32_t result = a[first(mask)];
  for (int l = first(mask) + 1; l < warp_size; ++l)
    if (mask >> l & 1) result = reduced(op, result, a[l]);
  write_all(warp, op, mask, result);
}

}  // namespace

/// The pseudo-code of shfl.sync in the PTX ISA.
void Interpreter::shuffle(Warp& warp, const Op& op, Mask mask) {
  std::byte* const r = warp.registers;
  const uint32_t *a = at<uint32_t>(r, op.o.a), *b = at<uint32_t>(r, op.o.b),
                 *c = at<uint32_t>(r, op.elements[0].offset);
  std::array<uint32_t, warp_size> result;
  Mask valid = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const int bval = b[l] & 0x1f, cval = c[l] & 0x1f, segment = c[l] >> 8 & 0x1f;
    const int max_lane = (l & segment) | (cval & ~segment), min_lane = l & segment;
    int j = 0;
    switch (op.shuffle) {
      case Shuffle::up:
        j = l - bval;
        break;
      case Shuffle::down:
        j = l + bval;
        break;
      case Shuffle::bfly:
        j = l ^ bval;
        break;
      case Shuffle::idx:
        j = min_lane | (bval & ~segment);
        break;
    }
    const bool in_range = op.shuffle == Shuffle::up ? j >= max_lane : j <= max_lane;
    if (in_range)
      valid |= Mask{1} << l;
    else
      j = l;
    if (!(mask >> j & 1) && reports_.finds(Check::shuffle, op))
      reports_.report(warp, l, op, formatted("{} reads from lane {}, which does not take part", op.text, j),
                      Check::shuffle);
    result[l] = a[j];
  }
  for (int l = 0; l < warp_size; ++l)
    if (mask >> l & 1) at<uint32_t>(r, op.o.d)[l] = result[l];
  if (op.o.extra) write_predicate(warp, op.o.extra, valid, mask);
}

void Interpreter::warp_operation(Warp& warp, const Op& op, Mask mask) {
  switch (op.kind) {
    case Kind::shuffle:
      return shuffle(warp, op, mask);
    case Kind::vote:
      return vote(warp, op, mask);
    case Kind::elect:
      return elect(warp, op, mask);
    case Kind::match_any:
    case Kind::match_all:
      return match(warp, op, mask);
    case Kind::redux:
      return redux(warp, op, mask);
    default:
      return;  // bar.warp.sync: the lanes have met, and nothing else is to be done
  }
}

}  // namespace sim
