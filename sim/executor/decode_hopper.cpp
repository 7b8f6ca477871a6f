// Instructions that are new in sm_90: clusters, mbarriers, bulk copies, wgmma.
#include "executor/decoder.h"
#include "executor/wgmma.h"
#include "gpu.h"

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
  else if ((m == "cp" && has("bulk")) || (m == "cp" && has("reduce")))
    has("commit_group") || has("wait_group") ? bulk_group(op) : bulk_copy(op);
  else if ((m == "st" || m == "red") && has("async"))
    async_store(op);
  else if (m == "wgmma")
    wgmma(op);
  else if (m == "setmaxnreg")
    set_registers(op);
  else if (m == "prefetch" && has("tensormap"))
    only({"tensormap", "param", "const"});  // a hint on speed
  else if (m == "griddepcontrol")
    only({"launch_dependents", "wait"});  // one kernel runs at a time
  else
    return false;
  return true;
}

/// PTX ISA 9.7.13.3, barrier.cluster. Arrivals release and waits acquire, unless .relaxed.
void Decoder::cluster_barrier(Op& op) {
  only({"cluster", "arrive", "wait", "release", "relaxed", "acquire", "aligned"});
  if (has("arrive") == has("wait") || (has("wait") && (has("release") || has("relaxed")))) fail("unknown instruction");
  op.kind = has("wait") ? Kind::cluster_wait : Kind::cluster_arrive;
  op.counted = Class::barrier;
  op.strong = !has("relaxed");
}

/// PTX ISA 9.7.9.25, mapa; 9.7.9.26, getctarank.
void Decoder::map_address(Op& op) {
  only({"shared::cluster", "u32", "u64"});
  const bool to_rank = instruction_->mnemonic == "getctarank";
  op.kind = to_rank ? Kind::cluster_rank : Kind::map_address;
  op.counted = Class::integer;
  op.space = space_of({"shared::cluster"});
  op.cluster = true;
  op.bytes = has("u64") ? 8 : 4;
  if (op.space == Space::generic && op.bytes == 4) fail("a generic address of 32 bits");
  op.o.d = write(operand(0), to_rank ? 4 : op.bytes);
  op.o.a = read_bytes(operand(1), op.bytes);
  if (!to_rank) op.o.b = read_bytes(operand(2), 4);
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
  op.mbarrier = found->second;
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
  if (has("alias") || has("tensormap::generic")) {  // there is one memory, and a tensor map is read anew by each copy
    only({"proxy", "alias", "tensormap::generic", "acquire", "release", "cta", "cluster", "gpu", "sys"});
    return;
  }
  only({"proxy", "async", "global", "shared::cta", "shared::cluster", "mbarrier_init", "release", "cluster"});
  op.kind = has("mbarrier_init") ? Kind::fence_mbarrier_init : Kind::fence_proxy;
  op.space = space_of({"global", "shared::cta", "shared::cluster"});
}

/// PTX ISA 9.7.9.27.3.
void Decoder::bulk_group(Op& op) {
  only({"async", "bulk", "commit_group", "wait_group", "read"});
  op.kind = has("commit_group") ? Kind::bulk_commit : has("read") ? Kind::bulk_wait_read : Kind::bulk_wait;
  if (op.kind != Kind::bulk_commit) op.o.immediate = static_cast<uint32_t>(operand(0).bits);
}

Address Decoder::other_address(Op& op, const Operand& a) {
  Operand plain = a;
  if (!a.elements.empty()) {
    if (a.elements.size() != 1 || !op.elements.empty()) fail("two vectors in an address");
    for (const Operand& coordinate : a.elements[0].elements) op.elements.push_back({read_bytes(coordinate, 4), 4});
    plain.elements.clear();
  }
  Op parsed;
  address(parsed, plain);
  return {parsed.o.a, parsed.address_bytes, parsed.displacement};
}

/// PTX ISA 9.7.9.27: cp.async.bulk, cp.reduce.async.bulk and their .tensor forms. To shared memory: [to], [from], bytes
/// (not of a tensor), [mbarrier], the blocks of a multicast; to global memory: [to], [from], bytes. A cache policy follows.
void Decoder::bulk_copy(Op& op) {
  op.counted = Class::global;
  for (const std::string_view m : instruction_->modifiers)
    if (m.starts_with("im2col") || m.starts_with("tile::"))
      fail(formatted("a tensor copy with .{} is not supported", m));
  if (has("prefetch")) {  // a hint on speed
    only({"async", "bulk", "prefetch", "tensor", "1d", "2d", "3d", "4d", "5d", "L2", "global", "tile",
          "L2::cache_hint"});
    return;
  }
  only({"async",
        "bulk",
        "reduce",
        "tensor",
        "1d",
        "2d",
        "3d",
        "4d",
        "5d",
        "shared::cluster",
        "shared::cta",
        "global",
        "tile",
        "mbarrier::complete_tx::bytes",
        "bulk_group",
        "multicast::cluster",
        "cta_group::1",
        "cta_group::2",
        "L2::cache_hint",
        "add",
        "min",
        "max",
        "inc",
        "dec",
        "and",
        "or",
        "xor",
        "b32",
        "b64",
        "noftz",
        "f16",
        "bf16",
        "f32",
        "f64",
        "u32",
        "s32",
        "u64",
        "s64"});
  // The destination's space comes before the source's.
  std::vector<Space> spaces;
  for (const std::string_view m : instruction_->modifiers)
    if (m == "global" || m == "shared::cluster" || m == "shared::cta")
      spaces.push_back(m == "global" ? Space::global : Space::shared);
  const bool tensor = has("tensor");
  if (spaces.size() != 2 || (spaces[0] == Space::global && spaces[1] == Space::global)) fail("unknown instruction");
  op.kind = Kind::bulk_copy;
  op.space = spaces[0];
  op.from_space = spaces[1];
  op.o.flags = (tensor ? flag_tensor : 0) | (has("multicast::cluster") ? flag_multicast : 0) |
               (has("reduce") ? flag_reduce : 0) | (has("cta_group::2") ? flag_block_pair : 0);
  op.cluster = op.space == Space::shared && !(program_.block_pairs && has("shared::cta"));
  op.bytes = 1;
  if (has("reduce")) {
    if (op.space != Space::global) fail("only a reduction to global memory is supported");
    reduction(op);
    if (!tensor) {
      const std::string_view type = instruction_->modifiers.back();
      element_type(op, type);
      op.o.d_bytes = op.bytes;
      op.bytes = 1;
      op.type = type == "f16"    ? NumberType::f16
                : type == "bf16" ? NumberType::bf16
                : type == "f32"  ? NumberType::f32
                : type == "f64"  ? NumberType::f64
                : type[0] == 's' ? NumberType::signed_
                                 : NumberType::unsigned_;
      const bool extreme = op.reduction == Reduction::min || op.reduction == Reduction::max;
      const bool is_half = op.type == NumberType::f16 || op.type == NumberType::bf16;
      if (!is_integer(op.type) && op.reduction != Reduction::add && !(extreme && is_half)) fail("unknown instruction");
    }
  }
  size_t next = 0;
  op.addresses.push_back(other_address(op, operand(next++)));
  op.addresses.push_back(other_address(op, operand(next++)));
  if (tensor != !op.elements.empty()) fail("coordinates");
  if (!tensor) op.o.b = read_bytes(operand(next++), 4);
  if (op.space != Space::shared) return;
  op.addresses.push_back(other_address(op, operand(next++)));
  if (has("multicast::cluster")) op.o.c = read_bytes(operand(next++), 2);
}

/// PTX ISA 9.7.15.5.2: wgmma.mma_async d, a, b, scale-d, imm-scale-a, imm-scale-b{, imm-trans-a}{, imm-trans-b}.
void Decoder::wgmma(Op& op) {
  if (!has("sync") || !has("aligned")) fail("unknown instruction");
  if (!has("mma_async")) {
    only({"fence", "commit_group", "wait_group", "sync", "aligned"});
    op.kind = has("fence") ? Kind::wgmma_fence : has("commit_group") ? Kind::wgmma_commit : Kind::wgmma_wait;
    if (op.kind == Kind::wgmma_wait) op.o.immediate = static_cast<uint32_t>(operand(0).bits);
    return;
  }
  // wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype{.satfinite}
  const auto& m = instruction_->modifiers;
  if (m.size() != 7 && !(m.size() == 8 && m[7] == "satfinite")) fail("unknown instruction");
  struct Known {
    NumberType type;
    uint32_t k;
    std::string_view d, with;  ///< types of D, and of B, that go with it
  };
  static const std::map<std::string_view, Known> types = {{"f16", {NumberType::f16, 16, "f32 f16", "f16"}},
                                                          {"bf16", {NumberType::bf16, 16, "f32", "bf16"}},
                                                          {"tf32", {NumberType::f32, 8, "f32", "tf32"}},
                                                          {"e4m3", {NumberType::e4m3, 32, "f32 f16", "e4m3 e5m2"}},
                                                          {"e5m2", {NumberType::e5m2, 32, "f32 f16", "e4m3 e5m2"}},
                                                          {"s8", {NumberType::signed_, 32, "s32", "s8 u8"}},
                                                          {"u8", {NumberType::unsigned_, 32, "s32", "s8 u8"}}};
  const auto type = types.find(m[5]);
  if (type == types.end()) fail(formatted("operands of .{} are not supported", m[5]));
  const Known& known = type->second;
  const bool integers = is_integer(known.type);
  if (known.d.find(m[4]) == std::string_view::npos || known.with.find(m[6]) == std::string_view::npos ||
      (m.size() == 8 && !integers))
    fail("unknown instruction");
  const uint32_t k = known.k;
  uint32_t n = 0;
  for (uint32_t i = 8; i <= 256; i += integers && i >= 32 ? 16 : 8)
    if (m[3] == formatted("m64n{}k{}", i, k)) n = i;
  if (!n) fail("unknown shape");
  op.kind = Kind::wgmma_multiply;
  op.counted = Class::tensor;
  op.type = known.type;
  op.b_type = types.at(m[6]).type;
  op.o.d_bytes = m[4] == "f16" ? 2 : 4;
  op.flops = static_cast<uint16_t>(n * k);  // 2 * 64 * n * k by 128 lanes
  const auto registers = [&](const Operand& list, size_t count) {
    if (list.kind != Operand::Kind::vector || list.elements.size() != count) fail("a fragment of the wrong length");
    for (const Operand& e : list.elements) op.elements.push_back({write(e, 4), 4});
  };
  const auto immediate = [&](size_t i, int64_t low, int64_t high) {
    const int64_t value = int64_t(operand(i).bits);
    if (operand(i).kind != Operand::Kind::integer || (value != low && value != high)) fail("an immediate out of range");
    return value;
  };
  registers(operand(0), n * op.o.d_bytes / 8);
  WgmmaShape shape{};
  shape.n = n;
  shape.a_in_registers = operand(1).kind == Operand::Kind::vector;
  if (shape.a_in_registers)
    registers(operand(1), 4);
  else
    op.o.a = read_bytes(operand(1), 8);
  op.o.b = read_bytes(operand(2), 8);
  op.o.c = read_predicate(op, operand(3));
  shape.saturate = m.size() == 8;
  size_t next = 4;
  if (!integers) {
    shape.negate_a = immediate(next++, 1, -1) < 0;
    shape.negate_b = immediate(next++, 1, -1) < 0;
  }
  shape.a_k_contiguous = shape.b_k_contiguous = true;
  if (k == 16) {  // the other types are always contiguous along K
    if (!shape.a_in_registers) shape.a_k_contiguous = !immediate(next++, 0, 1);
    shape.b_k_contiguous = !immediate(next++, 0, 1);
  }
  if (next != operands()) fail("the wrong number of operands");
  op.o.immediate = shape.pack();
}

/// PTX ISA 9.7.18, setmaxnreg. A thread starts with .maxnreg registers, or with as many as all threads of .maxntid can have.
void Decoder::set_registers(Op& op) {
  only({"inc", "dec", "sync", "aligned", "u32"});
  op.kind = has("inc") ? Kind::take_registers : Kind::give_registers;
  op.o.immediate = static_cast<uint32_t>(operand(0).bits);
  if (op.o.immediate < 24 || op.o.immediate > 256 || op.o.immediate % 8)
    fail("the register count must be a multiple of 8 in [24, 256]");
  uint32_t threads = 1;
  for (const uint32_t extent : kernel_.maxntid) threads *= std::max(1U, extent);
  threads = (threads + warp_size - 1) / warp_size * warp_size * std::max(1U, kernel_.minnctapersm);
  if (kernel_.maxnreg)
    program_.registers = kernel_.maxnreg;
  else if (kernel_.maxntid[0])
    program_.registers = std::min(256U, uint32_t{Gpu::registers_per_sm} / threads / 8 * 8);
}

/// Which operations use registers that are accumulators of a wgmma, or that a tcgen05.ld fills: while that is under way, they are
/// reported. What is moved out of the latter is like them: the compiler may move it before the wait.
void Decoder::mark_accumulators() {
  const auto accumulators = [](const Op& op) { return WgmmaShape::unpack(op.o.immediate).n * op.o.d_bytes / 8; };
  const auto written = [&](const Op& op) -> size_t {
    return op.kind == Kind::wgmma_multiply ? accumulators(op) : op.kind == Kind::tensor_load ? op.elements.size() : 0;
  };
  std::set<uint32_t> all;
  for (const Op& op : program_.ops)
    for (size_t i = 0; i < written(op); ++i) all.insert(op.elements[i].offset);
  if (all.empty()) return;
  for (size_t before = 0; program_.tensor_memory && before != all.size();) {
    before = all.size();
    for (const Op& op : program_.ops)
      if (is_register_move(op) && all.count(op.o.a)) all.insert(op.o.d);
  }
  program_.accumulators.resize(program_.ops.size());
  for (size_t pc = 0; pc < program_.ops.size(); ++pc) {
    Op& op = program_.ops[pc];
    switch (op.kind) {  // their operands are not registers
      case Kind::branch:
      case Kind::call:
      case Kind::ret:
      case Kind::exit:
      case Kind::trap:
      case Kind::print:
        continue;
      default:
        break;
    }
    const auto use = [&](uint32_t offset) {
      if (all.count(offset)) program_.accumulators[pc].push_back(offset);
    };
    for (const uint32_t offset : {op.o.d, op.o.a, op.o.b, op.o.c, op.o.extra, op.from.base}) use(offset);
    for (size_t i = written(op); i < op.elements.size(); ++i) use(op.elements[i].offset);
    for (const Address& address : op.addresses) use(address.base);
    op.uses_accumulator = !program_.accumulators[pc].empty();
  }
}

}  // namespace sim
