// cp.async and its groups (PTX ISA 9.7.9.25.3, "Non-bulk copy").
#include "sim/executor/decoder.h"

namespace sim {

Op Decoder::async_copy(Op& op) {
  if (!has("async")) fail("unknown instruction");
  if (has("commit_group") || has("wait_group") || has("wait_all")) {
    only({"async", "commit_group", "wait_group", "wait_all"});
    op.kind = has("commit_group") ? Kind::async_commit : has("wait_all") ? Kind::async_wait_all : Kind::async_wait;
    if (has("wait_group")) {
      if (operand(0).kind != Operand::Kind::integer) fail("a number of groups that is no constant");
      op.o.immediate = uint32_t(operand(0).bits);
    }
    return op;
  }
  only({"async", "ca", "cg", "shared", "shared::cta", "global", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"});
  op.kind = Kind::async_copy;
  op.counted = Class::global;
  op.space = Space::shared;
  address(op, operand(0));
  op.from = address(operand(1));
  if (operand(2).kind != Operand::Kind::integer) fail("a size that is no constant");
  const uint64_t bytes = operand(2).bits;
  if (bytes != 16 && (has("cg") || (bytes != 4 && bytes != 8))) fail("a copy of a size that there is not");
  op.bytes = uint8_t(bytes);
  // Then, each optional, src-size or ignore-src, and a cache policy, which changes no result.
  const size_t last = operands() - (has("L2::cache_hint") ? 1 : 0);
  if (last > 4) fail("too many operands");
  if (last == 4) {
    const Operand& source = operand(3);
    const bool ignore = source.kind == Operand::Kind::reg && reg_bytes(source.index) == predicate;
    if (ignore)
      op.o.extra = read_predicate(op, source);
    else
      op.o.b = read_bytes(source, 4);
  }
  return op;
}

}  // namespace sim
