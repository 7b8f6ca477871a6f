// What came with sm_90: clusters, mbarriers, bulk copies, wgmma.
#include "sim/executor/decoder.h"

namespace sim {

bool Decoder::hopper(Op& op) {
  const std::string_view m = instruction_->mnemonic;
  if (m == "barrier" && has("cluster"))
    cluster_barrier(op);
  else if (m == "mapa" || m == "getctarank")
    map_address(op);
  else if (m == "mbarrier")
    mbarrier(op);
  else if (m == "fence" && (has("proxy") || has("mbarrier_init")))
    fence_proxy(op);
  else
    return false;
  return true;
}

/// PTX ISA 9.7.13.3, barrier.cluster. Arrivals release and waits acquire, unless .relaxed.
void Decoder::cluster_barrier(Op& op) {
  only({"cluster", "arrive", "wait", "release", "relaxed", "acquire", "aligned"});
  if (has("arrive") == has("wait") || (has("wait") && (has("release") || has("relaxed")))) fail("unknown instruction");
  op.kind = Kind::cluster_barrier;
  op.counted = Class::barrier;
  op.aligned = has("aligned");
  op.sub = has("wait");
  op.strong = !has("relaxed");
}

/// PTX ISA 9.7.9.25, mapa; 9.7.9.26, getctarank.
void Decoder::map_address(Op& op) {
  only({"shared::cluster", "u32", "u64"});
  op.kind = Kind::map_address;
  op.counted = Class::integer;
  op.sub = instruction_->mnemonic == "getctarank";
  op.space = space_of({"shared::cluster"});
  op.cluster = true;
  op.bytes = has("u64") ? 8 : 4;
  if (op.space == Space::generic && op.bytes == 4) fail("a generic address of 32 bits");
  op.o.d = write(operand(0), op.sub ? 4 : op.bytes);
  op.o.a = read_bytes(operand(1), op.bytes);
  if (!op.sub) op.o.b = read_bytes(operand(2), 4);
}

/// PTX ISA 9.7.13.15. What follows the address is a count, bytes, a state or a parity; or, after an arrival, nothing.
void Decoder::mbarrier(Op& op) {
  const auto& modifiers = instruction_->modifiers;
  static const std::map<std::string_view, MbarrierOp> operations = {{"init", MbarrierOp::init},
                                                                    {"inval", MbarrierOp::inval},
                                                                    {"arrive", MbarrierOp::arrive},
                                                                    {"arrive_drop", MbarrierOp::arrive_drop},
                                                                    {"expect_tx", MbarrierOp::expect_tx},
                                                                    {"complete_tx", MbarrierOp::complete_tx},
                                                                    {"test_wait", MbarrierOp::wait},
                                                                    {"try_wait", MbarrierOp::wait},
                                                                    {"pending_count", MbarrierOp::pending_count}};
  const auto found = modifiers.empty() ? operations.end() : operations.find(modifiers.front());
  if (found == operations.end()) fail("unknown instruction");
  only({modifiers.front(), "expect_tx", "noComplete", "parity", "release", "acquire", "relaxed", "cta", "cluster",
        "shared", "shared::cta", "shared::cluster", "b64"});
  op.kind = Kind::mbarrier;
  op.counted = Class::barrier;
  op.sub = uint8_t(found->second);
  op.bytes = 8;
  op.strong = !has("relaxed");
  op.space = space_of({"shared", "shared::cta", "shared::cluster"});
  op.cluster = has("shared::cluster");
  switch (found->second) {
    case MbarrierOp::pending_count:
      op.o.d = write(operand(0), 4);
      op.o.a = read_bytes(operand(1), 8);
      return;
    case MbarrierOp::inval:
      address(op, operand(0));
      return;
    case MbarrierOp::init:
    case MbarrierOp::expect_tx:
    case MbarrierOp::complete_tx:
      address(op, operand(0));
      op.o.b = read_bytes(operand(1), 4);
      return;
    case MbarrierOp::wait:  // the hint, how long try_wait may wait, comes last
      op.o.d = write(operand(0), predicate);
      address(op, operand(1));
      op.o.flags = has("parity") ? flag_parity : 0;
      op.o.b = read_bytes(operand(2), has("parity") ? 4 : 8);
      return;
    default:
      break;
  }
  op.o.flags = (has("expect_tx") ? flag_expect_tx : 0) | (has("noComplete") ? flag_no_complete : 0);
  if (operand(0).kind == Operand::Kind::sink)
    op.elements.push_back({discarded, 8});
  else
    op.elements.push_back({write(operand(0), 8), 8});
  address(op, operand(1));
  if (operands() > 2)
    op.o.b = read_bytes(operand(2), 4);
  else if (!op.o.flags)
    op.o.b = constant(1, 4);
  else
    fail("too few operands");
}

/// PTX ISA 9.7.13.4: fence.proxy.async, between the generic proxy and the asynchronous one; fence.mbarrier_init.
void Decoder::fence_proxy(Op& op) {
  only({"proxy", "async", "global", "shared::cta", "shared::cluster", "mbarrier_init", "release", "cluster"});
  op.kind = Kind::fence_proxy;
  op.sub = has("mbarrier_init");
  op.space = space_of({"global", "shared::cta", "shared::cluster"});
}

}  // namespace sim
