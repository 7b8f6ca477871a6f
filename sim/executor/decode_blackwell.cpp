// Instructions that are new in sm_100: tcgen05 (PTX ISA 9.7.16).
#include <tuple>

#include "executor/decoder.h"
#include "executor/tcgen05.h"

namespace sim {

bool Decoder::blackwell(Op& op) {
  const std::string_view m = instruction_->mnemonic;
  if (m == "clusterlaunchcontrol") {
    has("try_cancel") ? launch_cancel(op) : launch_query(op);
    return true;
  }
  if (m != "tcgen05") return false;
  require_tensor_memory();
  program_.tensor_memory = true;
  const std::string_view what = instruction_->modifiers.empty() ? "" : instruction_->modifiers.front();
  if (what == "alloc" || what == "dealloc" || what == "relinquish_alloc_permit")
    tensor_allocation(op, what);
  else if (what == "ld" || what == "st")
    tensor_move(op, what == "ld");
  else if (what == "mma")
    tensor_multiply(op);
  else if (what == "cp")
    tensor_copy(op);
  else if (what == "shift")
    tensor_shift(op);
  else if (what == "commit")
    tensor_commit(op);
  else if (what == "wait::ld" || what == "wait::st") {
    only({"wait::ld", "wait::st", "sync", "aligned"});
    op.kind = Kind::tensor_wait;
    op.counted = Class::barrier;
    op.o.immediate = what == "wait::st";
  } else if (what == "fence::before_thread_sync" || what == "fence::after_thread_sync") {
    only({"fence::before_thread_sync", "fence::after_thread_sync"});
    op.kind = Kind::tensor_fence;
    op.o.immediate = what == "fence::after_thread_sync";
  } else {
    fail(formatted("tcgen05.{} is not supported", what));
  }
  return true;
}

/// PTX ISA 9.7.13, clusterlaunchcontrol.try_cancel [result], [mbar]: 16 bytes and their mbarrier, of this block or of all of the cluster.
void Decoder::launch_cancel(Op& op) {
  only({"try_cancel", "async", "shared::cta", "mbarrier::complete_tx::bytes", "multicast::cluster::all", "b128"});
  program_.cancels_launches = true;
  op.kind = Kind::launch_cancel;
  op.counted = Class::other;
  op.space = space_of({"shared::cta"});
  op.o.flags = has("multicast::cluster::all") ? flag_multicast : 0;
  op.addresses.push_back(address(operand(0)));
  op.addresses.push_back(address(operand(1)));
}

/// PTX ISA 9.7.13, clusterlaunchcontrol.query_cancel.
void Decoder::launch_query(Op& op) {
  only({"query_cancel", "is_canceled", "pred", "get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y",
        "get_first_ctaid::z", "v4", "b32", "b128"});
  op.kind = Kind::launch_query;
  op.counted = Class::integer;
  op.o.a = read_bytes(operand(1), 16);
  op.o.immediate = has("is_canceled")          ? query_is_canceled
                   : has("get_first_ctaid::x") ? 0
                   : has("get_first_ctaid::y") ? 1
                   : has("get_first_ctaid::z") ? 2
                                               : query_all;
  if (op.o.immediate == query_is_canceled) {
    op.o.d = write(operand(0), predicate);
  } else if (op.o.immediate == query_all) {
    if (operand(0).kind != Operand::Kind::vector || operand(0).elements.size() != 4) fail("no vector of 4");
    list(op, operand(0), 4, 4, true);
  } else {
    op.elements.push_back({write(operand(0), 4), 4});
  }
}

/// Fails, in the words of ptxas, where the module's target has no tensor memory: it needs an architecture-specific target, or
/// one of a family.
void Decoder::require_tensor_memory() const {
  const std::string& target = module_.target;
  for (const char* const known :
       {"sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f", "sm_101a", "sm_101f"})
    if (target.starts_with(known)) return;
  fail(formatted("feature 'tcgen05' is not supported on .target {}; sm_100a has it", target));
}

/// All tcgen05 instructions of a kernel have the same one (PTX ISA 9.7.16, "Issue Granularity").
void Decoder::cta_group() {
  if (!has("cta_group::1") && !has("cta_group::2")) fail("no .cta_group");
  if (has("cta_group::2") != program_.block_pairs)
    fail("tcgen05 with .cta_group::1 and with .cta_group::2 in one kernel: all must have the same");
}

/// A register with an address in tensor memory, and what is added; with brackets or without.
Address Decoder::tensor_address(const Operand& a) {
  if (a.kind == Operand::Kind::address) {
    const Address found = address(a);
    if (a.has_register && found.bytes != 4) fail("an address in tensor memory has 32 bits");
    return found;
  }
  return {read_bytes(a, 4), 4, 0};
}

/// PTX ISA 9.7.16: tcgen05.alloc [dst], nCols; tcgen05.dealloc taddr, nCols; tcgen05.relinquish_alloc_permit.
void Decoder::tensor_allocation(Op& op, std::string_view what) {
  only({"alloc", "dealloc", "relinquish_alloc_permit", "cta_group::1", "cta_group::2", "sync", "aligned", "shared::cta",
        "b32"});
  cta_group();
  op.kind = what == "alloc" ? Kind::tensor_allocate : what == "dealloc" ? Kind::tensor_free : Kind::tensor_relinquish;
  if (what == "relinquish_alloc_permit") return;
  op.space = space_of({"shared::cta"});
  op.bytes = 4;
  if (what == "alloc")
    address(op, operand(0));
  else
    op.addresses.push_back(tensor_address(operand(0)));
  op.o.b = read_bytes(operand(1), 4);
}

/// PTX ISA 9.7.16: tcgen05.ld r, [taddr]{, split}; tcgen05.st [taddr]{, split}, r.
void Decoder::tensor_move(Op& op, bool is_load) {
  const auto& m = instruction_->modifiers;
  static const std::map<std::string_view, std::pair<TensorShape, uint32_t>> shapes = {
      {"32x32b", {TensorShape::s32x32b, 1}},
      {"16x64b", {TensorShape::s16x64b, 1}},
      {"16x128b", {TensorShape::s16x128b, 2}},
      {"16x256b", {TensorShape::s16x256b, 4}},
      {"16x32bx2", {TensorShape::s16x32bx2, 1}}};
  static const std::map<std::string_view, uint32_t> repeats = {{"x1", 1},   {"x2", 2},   {"x4", 4},   {"x8", 8},
                                                               {"x16", 16}, {"x32", 32}, {"x64", 64}, {"x128", 128}};
  const auto shape = m.size() > 4 ? shapes.find(m[3]) : shapes.end();
  const auto repeat = m.size() > 4 ? repeats.find(m[4]) : repeats.end();
  if (has("red")) fail("tcgen05.ld.red is not supported");
  if (shape == shapes.end() || repeat == repeats.end()) fail("unknown shape");
  only({m[0], "sync", "aligned", m[3], m[4], is_load ? "pack::16b" : "unpack::16b", "b32"});
  const uint32_t registers = repeat->second * shape->second.second;
  if (registers > 128) fail("unknown shape");
  op.kind = is_load ? Kind::tensor_load : Kind::tensor_store;
  op.counted = Class::move;
  const bool two = shape->second.first == TensorShape::s16x32bx2;
  TensorMove move;
  move.shape = shape->second.first;
  move.packed = has("pack::16b") || has("unpack::16b");
  const size_t where = is_load ? 1 : 0, value = is_load ? 0 : two ? 2 : 1;
  op.addresses.push_back(tensor_address(operand(where)));
  if (two) {
    const Operand& split = operand(where + 1);
    if (split.kind != Operand::Kind::integer) fail("immHalfSplitoff is no immediate");
    move.split = static_cast<uint32_t>(split.bits);
  }
  list(op, operand(value), registers, 4, is_load);
  op.o.immediate = move.pack();
}

/// PTX ISA 9.7.16: tcgen05.mma [d], a-desc or [a], b-desc, idesc, {disable-output-lane}, enable-input-d{, scale-input-d}; with scale factors
/// [scale-a], [scale-b], enable-input-d after idesc; .ws: enable-input-d{, zero-column-mask-desc}.
void Decoder::tensor_multiply(Op& op) {
  static const std::map<std::string_view, MmaKind> kinds = {
      {"kind::f16", MmaKind::f16},           {"kind::tf32", MmaKind::tf32},
      {"kind::f8f6f4", MmaKind::f8f6f4},     {"kind::i8", MmaKind::i8},
      {"kind::mxf8f6f4", MmaKind::mxf8f6f4}, {"kind::mxf4", MmaKind::mxf4},
      {"kind::mxf4nvf4", MmaKind::mxf4nvf4}};
  for (const char* const missing : {"sp", "ashift"})
    if (has(missing)) fail(formatted("tcgen05.mma with .{} is not supported", missing));
  MmaOptions options;
  options.weight_stationary = has("ws");
  std::string_view kind, collector = "mma";
  for (const std::string_view m : instruction_->modifiers) {
    if (m.starts_with("kind::")) kind = m;
    if (m.starts_with("collector::")) collector = m;
  }
  const auto found = kinds.find(kind);
  if (found == kinds.end()) fail("unknown kind");
  options.kind = found->second;
  if (collector != "mma") collector_use(options, collector);
  const bool scaled = has_scale_factors(options.kind);
  if (scaled != has("block_scale")) fail(scaled ? "no .block_scale" : "unknown modifier .block_scale");
  if (scaled && options.weight_stationary) fail(formatted("no .{} with .ws", kind));
  std::string_view block = "mma", vector = "mma";
  if (scaled) std::tie(block, vector) = scale_vector(options);
  only({"mma", "ws", "cta_group::1", "cta_group::2", kind, collector, "block_scale", block, vector});
  cta_group();
  if (options.weight_stationary && !has("cta_group::1")) fail("tcgen05.mma.ws is of .cta_group::1");
  op.kind = Kind::tensor_multiply;
  op.counted = Class::tensor;
  op.addresses.push_back(tensor_address(operand(0)));
  options.a_in_tensor_memory = operand(1).kind == Operand::Kind::address;
  if (options.a_in_tensor_memory)
    op.addresses.push_back(tensor_address(operand(1)));
  else
    op.o.a = read_bytes(operand(1), 8);
  op.o.b = read_bytes(operand(2), 8);
  op.o.d = read_bytes(operand(3), 4);
  size_t next = 4;
  if (scaled) {  // the last two addresses: scale factors of A and of B
    op.addresses.push_back(tensor_address(operand(next++)));
    op.addresses.push_back(tensor_address(operand(next++)));
  } else if (!options.weight_stationary && operand(next).kind == Operand::Kind::vector) {
    list(op, operand(next++), program_.block_pairs ? 8 : 4, 4, false);
  }
  op.o.c = read_predicate(op, operand(next++));
  if (options.weight_stationary && next < operands()) {
    options.has_zero_columns = true;
    op.elements.push_back({read_bytes(operand(next++), 8), 8});
  }
  options.has_scale = next < operands();
  if (options.has_scale) {
    const Operand& scale = operand(next++);
    if ((options.kind != MmaKind::f16 && options.kind != MmaKind::tf32) || options.weight_stationary ||
        scale.kind != Operand::Kind::integer || scale.bits > 15)
      fail("scale-input-d is an immediate from 0 to 15, of kind::f16 and kind::tf32");
    options.scale = static_cast<uint32_t>(scale.bits);
  }
  if (next != operands()) fail("the wrong number of operands");
  op.o.immediate = options.pack();
}

/// PTX ISA 9.7.16, .collector_usage: .collector::a::op, or of .ws .collector::b0::op to b3.
void Decoder::collector_use(MmaOptions& options, std::string_view modifier) {
  static const std::map<std::string_view, CollectorUse> uses = {{"fill", CollectorUse::fill},
                                                                {"use", CollectorUse::use},
                                                                {"lastuse", CollectorUse::lastuse},
                                                                {"discard", CollectorUse::discard}};
  modifier.remove_prefix(std::string_view("collector::").size());
  const size_t colons = modifier.find("::");
  const std::string_view buffer = modifier.substr(0, colons);
  const auto use = colons == modifier.npos ? uses.end() : uses.find(modifier.substr(colons + 2));
  const bool is_b = buffer.size() == 2 && buffer[0] == 'b' && buffer[1] >= '0' && buffer[1] <= '3';
  if (use == uses.end() || (options.weight_stationary ? !is_b : buffer != "a"))
    fail(formatted("unknown modifier .collector::{}", modifier));
  options.collector = use->second;
  options.buffer = is_b ? uint32_t(buffer[1] - '0') + 1 : 0;
}

/// PTX ISA 9.7.16.10.7.1: which .scale_vectorsize goes with which kind. Returns its two names.
std::pair<std::string_view, std::string_view> Decoder::scale_vector(MmaOptions& options) {
  const bool is_4x = options.kind == MmaKind::mxf4nvf4 && (has("scale_vec::4X") || has("block16"));
  options.scale_factors = options.kind == MmaKind::mxf8f6f4 ? 1 : is_4x ? 4 : 2;
  if (is_4x) return {"block16", "scale_vec::4X"};
  if (options.kind == MmaKind::mxf4nvf4 && !has("scale_vec::2X") && !has("block32"))
    fail("no .scale_vec::2X or .scale_vec::4X");
  return {"block32", options.scale_factors == 1 ? "scale_vec::1X" : "scale_vec::2X"};
}

/// PTX ISA 9.7.16: tcgen05.cp [taddr], s-desc.
void Decoder::tensor_copy(Op& op) {
  if (has("b8x16")) fail("tcgen05.cp that expands 4 or 6 bits to 8 is not supported");
  static const std::map<std::string_view, TensorCopyShape> shapes = {{"128x256b", TensorCopyShape::s128x256b},
                                                                     {"4x256b", TensorCopyShape::s4x256b},
                                                                     {"128x128b", TensorCopyShape::s128x128b},
                                                                     {"64x128b", TensorCopyShape::s64x128b_02_13},
                                                                     {"32x128b", TensorCopyShape::s32x128b}};
  only({"cp", "cta_group::1", "cta_group::2", "128x256b", "4x256b", "128x128b", "64x128b", "32x128b", "warpx2::02_13",
        "warpx2::01_23", "warpx4"});
  cta_group();
  const auto found = std::find_if(shapes.begin(), shapes.end(), [&](const auto& shape) { return has(shape.first); });
  if (found == shapes.end()) fail("unknown shape");
  TensorCopyShape shape = found->second;
  const bool halves = has("warpx2::02_13") || has("warpx2::01_23");
  if (halves != (shape == TensorCopyShape::s64x128b_02_13) || has("warpx4") != (shape == TensorCopyShape::s32x128b))
    fail("a shape with the wrong multicast");
  if (has("warpx2::01_23")) shape = TensorCopyShape::s64x128b_01_23;
  op.kind = Kind::tensor_copy;
  op.counted = Class::move;
  op.addresses.push_back(tensor_address(operand(0)));
  op.o.a = read_bytes(operand(1), 8);
  op.o.immediate = uint32_t(shape);
}

/// PTX ISA 9.7.16: tcgen05.shift.down [taddr].
void Decoder::tensor_shift(Op& op) {
  only({"shift", "cta_group::1", "cta_group::2", "down"});
  cta_group();
  op.kind = Kind::tensor_shift;
  op.counted = Class::move;
  op.addresses.push_back(tensor_address(operand(0)));
}

/// PTX ISA 9.7.16: tcgen05.commit [mbar]{, the blocks of a multicast}.
void Decoder::tensor_commit(Op& op) {
  only({"commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster", "multicast::cluster",
        "b64"});
  cta_group();
  if (!has("mbarrier::arrive::one")) fail("no completion mechanism");
  op.kind = Kind::tensor_commit;
  op.counted = Class::barrier;
  op.space = space_of({"shared::cluster"});
  op.cluster = has("shared::cluster");
  op.bytes = 8;
  address(op, operand(0));
  op.o.flags = has("multicast::cluster") ? flag_multicast : 0;
  if (op.o.flags) op.o.c = read_bytes(operand(1), 2);
}

}  // namespace sim
