// cp.async and its groups (PTX ISA 9.7.9.25.3, "Non-bulk copy").
#include "executor/decoder.h"

namespace sim {

/// st.async and red.async (PTX ISA 9.7.9.12 and 9.7.9.13), to the shared memory of a block of the cluster.
void Decoder::async_store(Op& op) {
  only({"async",
        "weak",
        "relaxed",
        "cluster",
        "shared::cluster",
        "mbarrier::complete_tx::bytes",
        "v2",
        "v4",
        "b32",
        "b64",
        "u32",
        "u64",
        "s32",
        "s64",
        "f32",
        "f64",
        "inc",
        "dec",
        "min",
        "max",
        "and",
        "or",
        "xor",
        "add"});
  if (!has("mbarrier::complete_tx::bytes")) fail("a completion other than .mbarrier::complete_tx::bytes");
  op.kind = Kind::async_store;
  op.counted = Class::shared;
  op.space = Space::shared;
  op.cluster = true;
  const std::string_view type = instruction_->modifiers.back();
  element_type(op, type);
  if (instruction_->mnemonic == "red") {
    if (has("v2") || has("v4")) fail("unknown instruction");
    op.o.flags = flag_reduce;
    op.type = type[0] == 's' ? NumberType::signed_ : NumberType::unsigned_;
    reduction(op);
    const bool is_64 = op.bytes == 8, is_add = op.reduction == Reduction::add;
    if (type[0] == 'f' || (is_64 && !is_add) || (type[0] == 'b') != is_bitwise(op.reduction))
      fail("unknown instruction");
  }
  op.addresses = {address(operand(0)), address(operand(2))};
  const Operand& value = operand(1);
  const size_t count = has("v2") ? 2 : has("v4") ? 4 : 1;
  if (value.kind == Operand::Kind::vector) {
    if (value.elements.size() != count) fail("a vector of the wrong length");
    for (const Operand& e : value.elements) op.elements.push_back(element(op, e, false));
  } else {
    if (count != 1) fail("no vector");
    op.elements.push_back(element(op, value, false));
  }
}

Op Decoder::async_copy(Op& op) {
  if (!has("async")) fail("unknown instruction");
  if (has("mbarrier")) {  // PTX ISA 9.7.13.15.17
    only({"async", "mbarrier", "arrive", "noinc", "shared", "shared::cta", "b64"});
    if (!has("arrive")) fail("unknown instruction");
    op.kind = Kind::async_arrive;
    op.counted = Class::barrier;
    op.space = space_of({"shared", "shared::cta"});
    op.o.flags = has("noinc") ? flag_noinc : 0;
    address(op, operand(0));
    return op;
  }
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
