// PTX to a Program: every operand becomes a place in the register file, every instruction an Op.
#include "executor/decoder.h"
#include "executor/shared_memory.h"

namespace sim {

using enum ptx::Operand::Kind;

namespace {

uint64_t extent(const std::vector<ptx::Variable>& variables) {
  uint64_t bytes = 0;
  for (const ptx::Variable& v : variables) bytes = std::max(bytes, v.offset + v.size);
  return bytes;
}

}  // namespace

Program Decoder::run() {
  program_.kernel = kernel_.name;
  program_.register_bytes = 64;  // the carry flag, alone in its cache line
  program_.param_bytes = static_cast<uint32_t>(kernel_.parameter_bytes);
  program_.shared_bytes = static_cast<uint32_t>(kernel_.shared_bytes);
  program_.dynamic_shared_align = std::max(1U, kernel_.dynamic_shared_alignment);
  program_.max_threads = kernel_.maxntid;
  // The kernel, then every function that it calls, one after the other.
  place(kernel_);
  for (size_t i = 0; i < functions_.size(); ++i) collect_calls(*functions_[i]);
  for (const ptx::Function* function : functions_)
    for (const ptx::Instruction& instruction : function->instructions) {
      const auto& m = instruction.modifiers;
      if (std::find(m.begin(), m.end(), "cta_group::2") != m.end()) program_.block_pairs = true;
    }
  align_frame();
  const std::set<const ptx::Function*> keep = that_keep();
  for (const ptx::Function* function : functions_) layout(*function, keep.count(function) != 0);
  program_.stack_begin = frame(0);
  if (uses_stack_) frame(stack_bytes);
  for (const ptx::Function* function : functions_) {
    function_ = function;
    for (const ptx::Instruction& instruction : function->instructions) {
      instruction_ = &instruction;
      program_.ops.push_back(decode_one());
    }
    // The end of a body without ret is one.
    Op end;
    end.kind = Kind::ret;
    end.counted = Class::control;
    end.text = "ret";
    end.o.extra = places_.at(function).number;
    program_.ops.push_back(end);
  }
  mark_accumulators();
  for (Op& op : program_.ops) op.drops_rank = program_.block_pairs && op.space == Space::shared && !op.cluster;
  return std::move(program_);
}

// --- functions ---------------------------------------------------------------------------------------------------------

void Decoder::fail(const std::string& what) const {
  const std::string source = module_.source_of(*function_, *instruction_);
  throw Error(formatted("kernel {}: {}: {}\n  PTX line {}{}", kernel_.name, what, instruction_->text,
                        instruction_->line, source.empty() ? "" : ", source " + source),
              Fault::unsupported);
}

void Decoder::place(const ptx::Function& function) {
  if (places_.count(&function)) return;
  if (!function.refused.empty())
    throw Error(formatted("kernel {}: {}{}", kernel_.name, &function == &kernel_ ? "" : "in " + function.name + ", ",
                          function.refused),
                Fault::unsupported);
  places_[&function] = {};
  functions_.push_back(&function);
}

const ptx::Function* Decoder::callee(const ptx::Instruction& call) const {
  const Operand& target = call.operands.at(1);
  return target.kind == symbol && target.symbol.kind == ptx::Symbol::Kind::function
             ? &module_.functions.at(target.symbol.index)
             : nullptr;
}

void Decoder::collect_calls(const ptx::Function& function) {
  for (const ptx::Instruction& instruction : function.instructions) {
    if (instruction.mnemonic != "call") continue;
    std::vector<const ptx::Function*> targets;
    if (const ptx::Function* const target = callee(instruction))
      targets.push_back(target);
    else if (instruction.operands.size() == 4)
      targets = pointed_at(function.prototypes.at(instruction.operands[3].symbol.index));
    for (const ptx::Function* const target : targets)
      if (!target->is_declaration) {
        calls_[&function].insert(target);
        place(*target);
      }
  }
}

template <class Signature>
uint32_t Decoder::signature_of(const Signature& of) {
  std::vector<uint64_t> sizes;
  for (const auto* const list : {&of.parameters, &of.results}) {
    sizes.push_back(list->size());
    for (const ptx::Variable& one : *list) {
      sizes.push_back(one.offset);
      sizes.push_back(one.size);
    }
  }
  return signatures_.emplace(std::move(sizes), static_cast<uint32_t>(signatures_.size() + 1)).first->second;
}

std::vector<const ptx::Function*> Decoder::pointed_at(const ptx::Prototype& prototype) {
  std::set<uint32_t> taken;
  for (const ptx::Variable& variable : module_.variables)
    for (const ptx::Relocation& relocation : variable.relocations)
      if (relocation.symbol.kind == ptx::Symbol::Kind::function) taken.insert(relocation.symbol.index);
  for (const ptx::Function& function : module_.functions)
    for (const ptx::Instruction& instruction : function.instructions)
      if (instruction.mnemonic != "call")
        for (const Operand& operand : instruction.operands)
          if (operand.kind == symbol && operand.symbol.kind == ptx::Symbol::Kind::function)
            taken.insert(operand.symbol.index);
  std::vector<const ptx::Function*> found;
  for (const uint32_t index : taken) {
    const ptx::Function& function = module_.functions.at(index);
    if (!function.is_entry && signature_of(function) == signature_of(prototype)) found.push_back(&function);
  }
  return found;
}

std::set<const ptx::Function*> Decoder::that_keep() const {
  std::set<const ptx::Function*> keep;
  for (const ptx::Function* const f : functions_) {
    std::set<const ptx::Function*> reached;
    std::vector<const ptx::Function*> next{f};
    while (!next.empty()) {
      const auto calls = calls_.find(next.back());
      next.pop_back();
      if (calls == calls_.end()) continue;
      for (const ptx::Function* const g : calls->second)
        if (reached.insert(g).second) next.push_back(g);
    }
    if (reached.count(f)) keep.insert(f);
    if (f != &kernel_)
      for (const ptx::Instruction& instruction : f->instructions)
        if (instruction.mnemonic == "alloca") keep.insert(f);
  }
  return keep;
}

void Decoder::align_frame() {
  constexpr uint32_t most = 16384;  // more would cost each lane as much memory
  for (const ptx::Function* const function : functions_)
    for (const ptx::Variable& v : function->variables)
      if (v.space == ptx::StateSpace::local) frame_align_ = std::max(frame_align_, std::min(v.alignment, most));
}

uint32_t Decoder::frame(uint64_t bytes) {
  program_.frame_bytes = (program_.frame_bytes + frame_align_ - 1) / frame_align_ * frame_align_;
  const uint32_t offset = program_.frame_bytes;
  program_.frame_bytes += static_cast<uint32_t>(bytes);
  return offset;
}

void Decoder::layout(const ptx::Function& function, bool keeps) {
  Place& p = places_[&function];
  p.first_op = next_op_;
  next_op_ += static_cast<uint32_t>(function.instructions.size()) + 1;
  Callee known;
  known.keeps = keeps;
  if (keeps)
    known.local_bytes = static_cast<uint32_t>(function.local_bytes);
  else
    p.locals = frame(function.local_bytes);
  known.frame = frame(0);
  if (!function.is_entry)
    p.parameters = frame(function.parameter_bytes ? function.parameter_bytes : extent(function.parameters));
  p.results = frame(function.result_bytes ? function.result_bytes : extent(function.results));
  p.call_params = frame(function.call_param_bytes);
  for (const ptx::Register& r : function.registers) p.registers.push_back(allocate(register_bytes(r.type)));

  p.number = static_cast<uint32_t>(program_.callees.size());
  known.name = function.name;
  known.first_op = p.first_op;
  known.signature = signature_of(function);
  known.parameters = p.parameters;
  known.results = p.results;
  known.frame_bytes = program_.frame_bytes - known.frame;
  if (keeps) {
    for (size_t i = 0; i < function.registers.size(); ++i)
      known.registers.push_back({p.registers[i], register_bytes(function.registers[i].type)});
    known.local_base = allocate(8);
    known.registers.push_back({known.local_base, 8});
    uses_stack_ = true;
  }
  for (const ptx::Instruction& instruction : function.instructions)
    uses_stack_ = uses_stack_ || instruction.mnemonic == "alloca";
  for (uint32_t i = 0; i < module_.functions.size(); ++i)
    if (&module_.functions[i] == &function) program_.callee_at[function_address(i)] = p.number;
  program_.callees.push_back(std::move(known));
}

// --- the register file -------------------------------------------------------------------------------------------------

uint32_t Decoder::allocate(uint8_t bytes) {
  uint32_t& end = program_.register_bytes;
  const uint32_t align = bytes == predicate ? 4 : 32;
  end = (end + align - 1) / align * align;
  const uint32_t offset = end;
  end += bytes == predicate ? 4 : uint32_t(bytes) * warp_size;
  return offset;
}

uint32_t Decoder::preset(Preset::What what, uint8_t bytes, uint64_t value, const std::string& name) {
  const auto key = std::make_tuple(what, bytes, value, name);
  if (const auto found = presets_.find(key); found != presets_.end()) return found->second;
  const uint32_t offset = allocate(bytes);
  program_.presets.push_back({what, bytes, offset, value, name});
  return presets_[key] = offset;
}

const ptx::Variable& Decoder::variable(const ptx::Symbol& s) const {
  using K = ptx::Symbol::Kind;
  if (s.kind == K::module_variable) return module_.variables.at(s.index);
  if (s.kind == K::function_variable) return function_->variables.at(s.index);
  if (s.kind == K::parameter) return function_->parameters.at(s.index);
  if (s.kind == K::result) return function_->results.at(s.index);
  fail("the address of a function or prototype is not supported");
}

uint32_t Decoder::address_of(const ptx::Symbol& s, uint64_t addend, uint8_t bytes) {
  if (s.kind == ptx::Symbol::Kind::function) return constant(function_address(s.index) + addend, bytes);
  const ptx::Variable& v = variable(s);
  const Place& p = places_.at(function_);
  using K = ptx::Symbol::Kind;
  using S = ptx::StateSpace;
  if (s.kind == K::parameter)
    return function_->is_entry ? preset(Preset::param_address, bytes, v.offset + addend)
                               : constant(p.parameters + v.offset + addend, bytes);
  if (s.kind == K::result) return constant(p.results + v.offset + addend, bytes);
  switch (v.space) {
    case S::shared: {
      uint64_t offset = v.offset;
      if (v.is_extern && v.size == 0) {
        const uint64_t align = program_.dynamic_shared_align;
        offset = (kernel_.shared_bytes + align - 1) / align * align;
      }
      return program_.block_pairs ? preset(Preset::shared_address, bytes, offset + addend)
                                  : constant(offset + addend, bytes);
    }
    case S::local:
      if (const Callee& own = program_.callees.at(p.number); own.keeps) {  // on the stack
        if (bytes != 8 || v.offset + addend) fail("this address of a local variable of a recursive function");
        return own.local_base;
      }
      return constant(p.locals + v.offset + addend, bytes);
    case S::param:
      return constant(p.call_params + v.offset + addend, bytes);
    case S::global:
    case S::constant:
      return preset(Preset::variable, bytes, addend, v.name);
    default:
      fail("a variable in an unknown state space");
  }
}

uint32_t Decoder::special(const Operand& operand, uint8_t bytes) {
  using S = ptx::Special;
  static const std::map<S, Preset::What> known = {{S::tid_x, Preset::tid_x},
                                                  {S::tid_y, Preset::tid_y},
                                                  {S::tid_z, Preset::tid_z},
                                                  {S::ntid_x, Preset::ntid_x},
                                                  {S::ntid_y, Preset::ntid_y},
                                                  {S::ntid_z, Preset::ntid_z},
                                                  {S::ctaid_x, Preset::ctaid_x},
                                                  {S::ctaid_y, Preset::ctaid_y},
                                                  {S::ctaid_z, Preset::ctaid_z},
                                                  {S::nctaid_x, Preset::nctaid_x},
                                                  {S::nctaid_y, Preset::nctaid_y},
                                                  {S::nctaid_z, Preset::nctaid_z},
                                                  {S::laneid, Preset::laneid},
                                                  {S::warpid, Preset::warpid},
                                                  {S::nwarpid, Preset::nwarpid},
                                                  {S::smid, Preset::smid},
                                                  {S::nsmid, Preset::nsmid},
                                                  {S::gridid, Preset::gridid},
                                                  {S::lanemask_eq, Preset::lanemask_eq},
                                                  {S::lanemask_le, Preset::lanemask_le},
                                                  {S::lanemask_lt, Preset::lanemask_lt},
                                                  {S::lanemask_ge, Preset::lanemask_ge},
                                                  {S::lanemask_gt, Preset::lanemask_gt},
                                                  {S::dynamic_smem_size, Preset::dynamic_smem},
                                                  {S::total_smem_size, Preset::total_smem},
                                                  {S::cluster_ctaid_x, Preset::cluster_ctaid_x},
                                                  {S::cluster_ctaid_y, Preset::cluster_ctaid_y},
                                                  {S::cluster_ctaid_z, Preset::cluster_ctaid_z},
                                                  {S::cluster_nctaid_x, Preset::cluster_nctaid_x},
                                                  {S::cluster_nctaid_y, Preset::cluster_nctaid_y},
                                                  {S::cluster_nctaid_z, Preset::cluster_nctaid_z},
                                                  {S::cluster_ctarank, Preset::cluster_ctarank},
                                                  {S::cluster_nctarank, Preset::cluster_nctarank},
                                                  {S::clusterid_x, Preset::clusterid_x},
                                                  {S::clusterid_y, Preset::clusterid_y},
                                                  {S::clusterid_z, Preset::clusterid_z},
                                                  {S::nclusterid_x, Preset::nclusterid_x},
                                                  {S::nclusterid_y, Preset::nclusterid_y},
                                                  {S::nclusterid_z, Preset::nclusterid_z},
                                                  {S::is_explicit_cluster, Preset::is_explicit_cluster},
                                                  {S::envreg1, Preset::grid_workspace_high},
                                                  {S::envreg2, Preset::grid_workspace_low}};
  if (operand.special == S::warp_size) return constant(warp_size, bytes);
  // PTX ISA 10, "%reserved_smem_offset": 1 KiB per block; cooperative groups keep the state of their larger tiles at ..._1.
  const auto reserved = [&](uint32_t offset) {
    program_.reserved_smem = true;
    return preset(Preset::reserved_smem, bytes, offset);
  };
  if (operand.special == S::reserved_smem_offset_begin || operand.special == S::reserved_smem_offset_0)
    return reserved(0);
  if (operand.special == S::reserved_smem_offset_1) return reserved(SharedMemory::reserved_bytes / 2);
  if (operand.special == S::reserved_smem_offset_end) return reserved(SharedMemory::reserved_bytes);
  if (operand.special == S::reserved_smem_offset_cap) return constant(SharedMemory::reserved_bytes, bytes);
  const auto found = known.find(operand.special);
  if (found == known.end()) fail(formatted("special register %{} is not supported", ptx::name_of(operand.special)));
  return preset(found->second, bytes);
}

uint32_t Decoder::read(const Operand& operand, uint8_t& bytes) {
  switch (operand.kind) {
    case Operand::Kind::reg:
      if (operand.negated) fail("a negated predicate is not supported here");
      if (bytes && reg_bytes(operand.index) != bytes)
        fail(formatted("register {} has the wrong width", function_->registers[operand.index].name));
      bytes = reg_bytes(operand.index);
      return reg(operand.index);
    case Operand::Kind::special:
      return special(operand, bytes);
    case integer:
      return constant(bytes == predicate ? (operand.bits ? all_lanes : 0) : operand.bits, bytes);
    case float32:
      return constant(
          bytes == 8 ? std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(operand.bits)))) : operand.bits,
          bytes);
    case float64:
      return constant(bytes == 4 ? std::bit_cast<uint32_t>(float(std::bit_cast<double>(operand.bits))) : operand.bits,
                      bytes);
    case symbol:
      return address_of(operand.symbol, uint64_t(operand.offset), bytes);
    default:
      fail("an operand of an unexpected kind");
  }
}

// --- instructions ------------------------------------------------------------------------------------------------------

uint32_t Decoder::read_predicate(Op& op, Operand operand) {
  if (operand.negated) op.o.flags |= flag_not_c;
  operand.negated = false;
  return read_bytes(operand, predicate);
}

uint32_t Decoder::write(const Operand& operand, uint8_t bytes) {
  if (operand.kind == Operand::Kind::sink) return allocate(bytes);
  if (operand.kind != Operand::Kind::reg) fail("a result that is no register");
  if (reg_bytes(operand.index) != bytes)
    fail(formatted("register {} has the wrong width", function_->registers[operand.index].name));
  return reg(operand.index);
}

/// The source line that an instruction is counted and reported for. It is a line of the kernel, or of a function that was not
/// inlined. For an inlined function it is the line of the call; for a lambda in the kernel, the lambda's own line. So a line
/// of the kernel has all that it does, and a report names a line that its reader wrote.
const ptx::SourceLocation* Decoder::own_location() {
  if (instruction_->location < 0) return nullptr;
  const auto& all = function_->locations;
  const auto outermost = [&](const ptx::SourceLocation* l) {
    while (l->inlined_at >= 0) l = &all.at(l->inlined_at);
    return l;
  };
  const ptx::SourceLocation* const call = outermost(&all.at(instruction_->location));
  auto& [first, last] = extents_[{function_, call->file}];
  if (first == 0) {
    first = UINT32_MAX;
    for (const ptx::SourceLocation& l : all)
      if (l.line && l.inlined_at < 0 && l.file == call->file)
        first = std::min(first, l.line), last = std::max(last, l.line);
  }
  for (int32_t i = instruction_->location;; i = all[i].inlined_at)
    if (&all[i] == call || (all[i].file == call->file && all[i].line >= first && all[i].line <= last)) return &all[i];
}

uint32_t Decoder::source() {
  SourceLine line;
  if (const ptx::SourceLocation* const location = own_location()) {
    const auto file = module_.files.find(location->file);
    line = {file == module_.files.end() ? "" : file->second, location->line};
  }
  const auto key = std::make_pair(line.file, line.line);
  if (const auto found = source_index_.find(key); found != source_index_.end()) return found->second;
  program_.sources.push_back(line);
  return source_index_[key] = static_cast<uint32_t>(program_.sources.size() - 1);
}

void Decoder::require_fp8(const char* feature) const {
  if (has("e4m3") || has("e5m2") || has("e4m3x2") || has("e5m2x2")) {
    const size_t digits = module_.target.find_first_of("0123456789");
    if (digits != std::string::npos && std::stoul(module_.target.substr(digits)) < 89)
      fail(formatted("feature '{}' requires .target sm_89 or higher, this module's is {}", feature, module_.target));
  }
}

void Decoder::require_target(const char* feature, std::initializer_list<std::string_view> targets) const {
  const std::string_view target = module_.target;
  const auto same = [&](std::string_view one) { return target.starts_with(one); };  // texture modes may follow it
  if (std::none_of(targets.begin(), targets.end(), same))
    fail(formatted("feature '{}' is not supported on .target {}; {} has it", feature, target, *targets.begin()));
}

void Decoder::only(std::initializer_list<std::string_view> allowed) const {
  for (const std::string_view m : instruction_->modifiers)
    if (std::find(allowed.begin(), allowed.end(), m) == allowed.end()) fail(formatted("unknown modifier .{}", m));
}

Op Decoder::decode_one() {
  const ptx::Instruction& in = *instruction_;
  Op op;
  op.ptx_line = in.line;
  op.source = source();
  op.text = in.mnemonic;
  for (const std::string_view m : in.modifiers) op.text += formatted(".{}", m);
  if (in.guard.reg != ptx::Guard::always) {
    op.guard = reg(in.guard.reg);
    op.guard_negated = in.guard.negated;
  }
  const std::string_view m = in.mnemonic;
  if (hopper(op) || blackwell(op)) return op;
  if (m == "bra") return branch(op);
  if (m == "call") return call(op);
  if (stack(op)) return op;
  if (m == "ret" || m == "exit" || m == "trap" || m == "brkpt") {  // nobody is there to whom a breakpoint could speak
    op.kind = m == "ret" ? Kind::ret : m == "exit" ? Kind::exit : Kind::trap;
    op.counted = Class::control;
    op.o.extra = places_.at(function_).number;
    only({"uni"});
    return op;
  }
  if (m == "ld" || m == "st" || m == "ldu") return load_store(op, m != "st");
  if (m == "atom" || m == "red") return atomic(op, m == "atom");
  if (m == "cvta") return cvta(op);
  if (m == "mov" && move_special(op)) return op;
  if (m == "bar" || m == "barrier") return barrier(op);
  if (m == "shfl" || m == "vote" || m == "match" || m == "redux" || m == "activemask" || m == "elect") return warp(op);
  if (m == "cp" && !has("bulk")) return async_copy(op);
  if (matrix(op)) return op;
  if (m == "membar" || m == "fence") {
    op.strong = true;
    only({"cta", "gl", "sys", "gpu", "acq_rel", "sc", "cluster", "acquire", "release"});
    op.kind = Kind::nothing;
    return op;
  }
  // Hints on speed. (What discard makes undefined stays as it is.)
  if (m == "prefetch" || m == "prefetchu" || m == "pmevent" || m == "discard" || m == "applypriority") {
    only({"global", "local", "L1", "L2", "L2::evict_last", "L2::evict_normal", "mask"});
    return op;
  }
  if (m == "createpolicy") {  // only hints use it
    only({"fractional", "range", "cvt", "global", "L2", "L2::evict_last", "L2::evict_normal", "L2::evict_first",
          "L2::evict_unchanged", "b64"});
    op.kind = Kind::lanes;
    op.counted = Class::move;
    op.function = find_lane_instruction("mov.b64")->function;
    op.o.d = write(operand(0), 8);
    op.o.a = constant(0, 8);
    return op;
  }
  if (m == "nanosleep") {
    op.kind = Kind::yield;
    return op;
  }
  if (m == "isspacep") {
    op.kind = Kind::is_space;
    op.counted = Class::predicate;
    op.o.d = write(operand(0), predicate);
    op.o.a = read_bytes(operand(1), 8);
    op.space = space_of({"global", "shared", "shared::cta", "shared::cluster", "local", "const"});
    op.cluster = has("shared::cluster");
    return op;
  }
  return lanes(op);
}

Op Decoder::lanes(Op& op) {
  const ptx::Instruction& in = *instruction_;
  std::string name = op.text;
  const bool comparison = in.mnemonic == "setp" || in.mnemonic == "set";
  if (comparison && in.modifiers.size() > 2) {  // setp.lt.and.s32: the table has it without .and
    static const std::map<std::string_view, uint8_t> combine = {{"and", flag_and}, {"or", flag_or}, {"xor", flag_xor}};
    if (const auto found = combine.find(in.modifiers[1]); found != combine.end()) {
      if (in.mnemonic == "set") fail("unknown modifier");
      op.o.flags = found->second;
      name = std::string(in.mnemonic);
      for (size_t i = 0; i < in.modifiers.size(); ++i)
        if (i != 1) name += formatted(".{}", in.modifiers[i]);
    }
  }
  const LaneInstruction* known = find_lane_instruction(name);
  if (!known) fail(formatted("unknown instruction {}", op.text));
  require_fp8("cvt with .e4m3x2/.e5m2x2");
  op.kind = Kind::lanes;
  op.function = known->function;
  op.counted = known->counted;
  op.flops = known->flops;
  const bool packed = op.text.find("x2") != std::string::npos || has("pack");
  size_t next = 0;
  const Operand& d = operand(next++);
  if (d.kind == Operand::Kind::pair) {  // setp p|q
    if (in.mnemonic != "setp") fail("two results");
    op.o.d = write(d.elements.at(0), predicate);
    op.o.immediate = write(d.elements.at(1), predicate);
  } else if (in.mnemonic == "cvt") {  // registers may be wider than the types, but not than packed ones
    if (d.kind != Operand::Kind::reg || reg_bytes(d.index) < known->d_bytes ||
        (packed && reg_bytes(d.index) != known->d_bytes))
      fail("a result of the wrong width");
    op.o.d = reg(d.index);
    op.o.d_bytes = reg_bytes(d.index);
  } else {
    op.o.d = write(d, known->d_bytes);
  }
  if (in.mnemonic == "cvt" && !known->b_bytes) {
    const Operand& a = operand(next++);
    op.o.a_bytes = a.kind == Operand::Kind::reg ? reg_bytes(a.index) : known->a_bytes;
    if (op.o.a_bytes < known->a_bytes || (packed && op.o.a_bytes != known->a_bytes))
      fail("an operand of the wrong width");
    op.o.a = read_bytes(a, op.o.a_bytes);
  } else {
    op.o.a = read_bytes(operand(next++), known->a_bytes);
  }
  if (known->b_bytes) op.o.b = read_bytes(operand(next++), known->b_bytes);
  if (known->c_bytes) op.o.c = read_bytes(operand(next++), known->c_bytes);
  if (in.mnemonic == "bfi") op.o.extra = read_bytes(operand(next++), 4);
  if (in.mnemonic == "lop3") op.o.immediate = static_cast<uint32_t>(operand(next++).bits);
  if (op.o.flags) {
    op.o.extra = read_predicate(op, operand(next++));
  }
  if (next != in.operands.size()) fail("too many operands");
  return op;
}

Op Decoder::branch(Op& op) {
  only({"uni"});
  op.kind = Kind::branch;
  op.counted = Class::control;
  if (operand(0).kind != label) fail("a branch to something that is no label");
  op.target = places_.at(function_).first_op + operand(0).index;
  return op;
}

Op Decoder::call(Op& op) {
  only({"uni"});
  op.counted = Class::control;
  const ptx::Function* target = callee(*instruction_);
  if (!target) return call_indirect(op);
  if (target->is_declaration) {  // the system's; only reached where something has gone wrong, or to print
    op.kind = Kind::trap;
    op.text = "call of " + target->name;
    const auto place = [&](const Operand& list, size_t i) {
      if (i >= list.elements.size() || list.elements[i].kind != symbol) fail("an argument that is no .param variable");
      return places_.at(function_).call_params + uint32_t(variable(list.elements[i].symbol).offset);
    };
    if (target->name == "__assertfail") op.o.a = place(instruction_->operands.back(), 0);  // the message
    if (target->name != "vprintf") return op;
    op.kind = Kind::print;
    op.o.d = place(operand(0), 0);
    op.o.a = place(operand(2), 0);
    op.o.b = place(operand(2), 1);
    return op;
  }
  op.kind = Kind::call;
  const Place& to = places_.at(target);
  op.target = to.first_op;
  op.o.extra = to.number;
  arguments(op, target->parameters, to.parameters, target->results, to.results);
  return op;
}

/// Where the callee's parameters and results lie is known when it is called: the copies have offsets into them.
Op Decoder::call_indirect(Op& op) {
  op.kind = Kind::call_indirect;
  if (operands() != 4) fail("an indirect call without a prototype");
  const ptx::Prototype& prototype = function_->prototypes.at(operand(3).symbol.index);
  op.o.a = read_bytes(operand(1), 8);
  op.o.immediate = signature_of(prototype);
  arguments(op, prototype.parameters, 0, prototype.results, 0);
  return op;
}

void Decoder::arguments(Op& op, const std::vector<ptx::Variable>& parameters, uint32_t parameters_at,
                        const std::vector<ptx::Variable>& results, uint32_t results_at) {
  const Place& from = places_.at(function_);
  const auto copy = [&](const Operand& list, const std::vector<ptx::Variable>& formal, uint32_t base, bool in) {
    if (list.elements.size() != formal.size()) fail("a call with the wrong number of arguments");
    for (size_t i = 0; i < formal.size(); ++i) {
      const Operand& element = list.elements[i];
      if (element.kind != symbol) fail("an argument that is no .param variable");
      const ptx::Variable& actual = variable(element.symbol);
      const uint32_t mine = from.call_params + uint32_t(actual.offset), theirs = base + uint32_t(formal[i].offset);
      op.copies.push_back({in ? mine : theirs, in ? theirs : mine, uint32_t(formal[i].size)});
    }
  };
  copy(operand(2), parameters, parameters_at, true);
  op.arguments = static_cast<uint32_t>(op.copies.size());
  copy(operand(0), results, results_at, false);
}

/// alloca, stacksave, stackrestore (PTX ISA 9.7.16, "Stack Manipulation Instructions").
bool Decoder::stack(Op& op) {
  const std::string_view m = instruction_->mnemonic;
  if (m != "alloca" && m != "stacksave" && m != "stackrestore") return false;
  op.kind = m == "alloca" ? Kind::stack_allocate : m == "stacksave" ? Kind::stack_save : Kind::stack_restore;
  op.counted = Class::move;
  only({"u32", "u64"});
  op.bytes = has("u64") ? 8 : 4;
  if (op.kind == Kind::stack_restore) {
    op.o.a = read_bytes(operand(0), op.bytes);
    return true;
  }
  op.o.d = write(operand(0), op.bytes);
  op.o.immediate = 8;
  if (op.kind == Kind::stack_allocate) {
    op.o.a = read_bytes(operand(1), op.bytes);
    if (operands() > 2) op.o.immediate = static_cast<uint32_t>(operand(2).bits);
  }
  return true;
}

// --- memory (PTX ISA 9.7.9) ----------------------------------------------------------------------------------------------

Space Decoder::space_of(std::initializer_list<std::string_view> allowed) const {
  static const std::map<std::string_view, Space> spaces = {
      {"global", Space::global}, {"shared", Space::shared},          {"shared::cta", Space::shared},
      {"local", Space::local},   {"shared::cluster", Space::shared}, {"const", Space::constant},
      {"param", Space::param},   {"param::entry", Space::param},     {"param::func", Space::param}};
  for (const std::string_view name : allowed)
    if (has(name)) return spaces.at(name);
  return Space::generic;
}

void Decoder::address(Op& op, const Operand& a) {
  const Address address = this->address(a);
  op.o.a = address.base;
  op.address_bytes = address.bytes;
  op.displacement = address.displacement;
}

Address Decoder::address(const Operand& a) {
  if (a.kind != Operand::Kind::address || !a.elements.empty()) fail("an operand that is no address");
  if (!a.has_register)
    return {a.symbol.kind != ptx::Symbol::Kind::none ? address_of(a.symbol, uint64_t(a.offset), 8)
                                                     : constant(uint64_t(a.offset), 8),
            8, 0};
  const uint8_t bytes = reg_bytes(a.index);
  if (bytes != 4 && bytes != 8) fail("an address register of the wrong width");
  return {reg(a.index), bytes, a.offset};
}

void Decoder::resolve_param(Op& op, const Operand& a) {
  op.counted = Class::param;
  using K = ptx::Symbol::Kind;
  const bool of_kernel = a.has_register || (a.symbol.kind == K::parameter && function_->is_entry);
  op.space = of_kernel ? Space::param : Space::local;
}

void Decoder::element_type(Op& op, std::string_view type) {
  static const std::map<std::string_view, uint8_t> sizes = {
      {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},  {"s16", 2},   {"f16", 2},
      {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},  {"f16x2", 4}, {"bf16x2", 4},
      {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}, {"b128", 16}};
  const auto found = sizes.find(type);
  if (found == sizes.end()) fail(formatted("unknown type .{}", type));
  op.bytes = found->second;
  op.is_signed = type[0] == 's';
}

Element Decoder::element(const Op& op, const Operand& value, bool is_load) {
  if (value.kind == Operand::Kind::sink) return {discarded, op.bytes};
  if (value.kind == Operand::Kind::reg) {
    const uint8_t bytes = reg_bytes(value.index);
    if (bytes == predicate || bytes < op.bytes) fail("a register narrower than the access");
    return {reg(value.index), bytes};
  }
  if (is_load) fail("a result that is no register");
  return {read_bytes(value, op.bytes), op.bytes};
}

Op Decoder::load_store(Op& op, bool is_load) {
  only({"weak",
        "volatile",
        "relaxed",
        "acquire",
        "release",
        "mmio",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "const",
        "global",
        "local",
        "param",
        "param::entry",
        "param::func",
        "shared",
        "shared::cta",
        "shared::cluster",
        "nc",
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::64B",
        "L2::128B",
        "L2::256B",
        "L2::cache_hint",  // its policy, the last operand, changes no result
        "L2::evict_last",
        "L2::evict_normal",
        "L2::evict_first",
        "v2",
        "v4",
        "v8",
        "b8",
        "u8",
        "s8",
        "b16",
        "u16",
        "s16",
        "f16",
        "bf16",
        "b32",
        "u32",
        "s32",
        "f32",
        "f16x2",
        "bf16x2",
        "b64",
        "u64",
        "s64",
        "f64",
        "b128"});
  op.kind = is_load ? Kind::load : Kind::store;
  op.strong = has("volatile") || has("relaxed") || has("acquire") || has("release") || has("mmio");
  op.read_only = has("nc");
  op.space = space_of(
      {"const", "global", "local", "param", "param::entry", "param::func", "shared", "shared::cta", "shared::cluster"});
  op.cluster = has("shared::cluster");
  if (instruction_->modifiers.empty()) fail("no type");
  element_type(op, instruction_->modifiers.back());
  const Operand& where = operand(is_load ? 1 : 0);
  const Operand& value = operand(is_load ? 0 : 1);
  address(op, where);
  op.counted = op.space == Space::shared ? Class::shared : op.space == Space::local ? Class::local : Class::global;
  if (op.space == Space::constant) op.counted = Class::param;
  if (op.space == Space::param) resolve_param(op, where);
  const size_t count = has("v2") ? 2 : has("v4") ? 4 : has("v8") ? 8 : 1;
  if (value.kind == vector) {
    if (value.elements.size() != count) fail("a vector of the wrong length");
    for (const Operand& e : value.elements) op.elements.push_back(element(op, e, is_load));
  } else {
    if (count != 1) fail("no vector");
    op.elements.push_back(element(op, value, is_load));
  }
  return op;
}

/// The operation of atom, red and red.async.
void Decoder::reduction(Op& op) const {
  static const std::map<std::string_view, Reduction> operations = {
      {"add", Reduction::add}, {"exch", Reduction::exch}, {"cas", Reduction::cas}, {"min", Reduction::min},
      {"max", Reduction::max}, {"inc", Reduction::inc},   {"dec", Reduction::dec}, {"and", Reduction::and_},
      {"or", Reduction::or_},  {"xor", Reduction::xor_}};
  for (const std::string_view m : instruction_->modifiers)
    if (const auto found = operations.find(m); found != operations.end()) {
      op.reduction = found->second;
      return;
    }
  fail("unknown operation");
}

Op Decoder::atomic(Op& op, bool has_result) {
  only({"relaxed",
        "acquire",
        "release",
        "acq_rel",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "global",
        "shared",
        "shared::cluster",
        "shared::cta",
        "add",
        "exch",
        "cas",
        "min",
        "max",
        "inc",
        "dec",
        "and",
        "or",
        "xor",
        "noftz",
        "b32",
        "b64",
        "u32",
        "u64",
        "s32",
        "s64",
        "f32",
        "f64",
        "f16",
        "bf16",
        "f16x2",
        "bf16x2",
        "b16",
        "v2",
        "v4",
        "v8",
        "L2::cache_hint"});
  op.kind = Kind::atomic;
  op.counted = Class::atomic;
  op.strong = true;
  op.space = space_of({"global", "shared", "shared::cta", "shared::cluster"});
  op.cluster = has("shared::cluster");
  reduction(op);
  const std::string_view type = instruction_->modifiers.back();
  element_type(op, type);
  op.type = type == "f32"      ? NumberType::f32
            : type == "f64"    ? NumberType::f64
            : type == "f16"    ? NumberType::f16
            : type == "bf16"   ? NumberType::bf16
            : type == "f16x2"  ? NumberType::f16x2
            : type == "bf16x2" ? NumberType::bf16x2
            : type[0] == 's'   ? NumberType::signed_
                               : NumberType::unsigned_;
  // In vectors, of floating point in global memory alone, each element by itself; the 16-bit formats have .min and .max there.
  const size_t count = has("v2") ? 2 : has("v4") ? 4 : has("v8") ? 8 : 1;
  const bool extreme = op.reduction == Reduction::min || op.reduction == Reduction::max;
  if (!is_integer(op.type) && op.reduction != Reduction::add && op.reduction != Reduction::exch &&
      !(count > 1 && extreme && op.type != NumberType::f32))
    fail("unknown operation");
  if (count > 1 &&
      (is_integer(op.type) || op.bytes * count > 16 || op.reduction == Reduction::exch || op.space == Space::shared))
    fail("unknown instruction");
  size_t next = 0;
  const auto each = [&](const Operand& list, const auto& put) {
    if (count == 1) return put(list);
    if (list.kind != vector || list.elements.size() != count) fail("a vector of the wrong length");
    for (const Operand& e : list.elements) put(e);
  };
  if (has_result)
    each(operand(next++), [&](const Operand& e) { op.elements.push_back(element(op, e, true)); });
  else
    op.elements.assign(count, {discarded, op.bytes});
  address(op, operand(next++));
  if (count > 1)
    each(operand(next++), [&](const Operand& e) { op.values.push_back({read_bytes(e, op.bytes), op.bytes}); });
  else
    op.o.b = read_bytes(operand(next++), op.bytes);
  if (op.reduction == Reduction::cas) op.o.c = read_bytes(operand(next++), op.bytes);
  return op;
}

Op Decoder::cvta(Op& op) {
  only({"to", "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "u64"});
  const Space space = space_of({"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"});
  const uint64_t base = space == Space::shared ? shared_window : space == Space::local ? local_window : 0;
  const LaneInstruction* add = find_lane_instruction("add.u64");
  op.kind = Kind::lanes;
  op.counted = Class::integer;
  op.function = add->function;
  op.o.d = write(operand(0), 8);
  op.o.a = read_bytes(operand(1), 8);
  op.o.b = constant(has("to") ? 0 - base : base, 8);
  return op;
}

bool Decoder::move_special(Op& op) {
  const Operand& d = operand(0);
  const Operand& a = operand(1);
  op.counted = Class::move;
  if (a.kind == vector || d.kind == vector) {
    only({"b16", "b32", "b64", "b128", "u32", "u64", "f64"});
    element_type(op, instruction_->modifiers.back());
    op.kind = d.kind == vector ? Kind::unpack : Kind::pack;
    const Operand& list = d.kind == vector ? d : a;
    const uint8_t each = uint8_t(op.bytes / list.elements.size());
    for (const Operand& e : list.elements) {
      if (e.kind == Operand::Kind::sink)
        op.elements.push_back({discarded, each});
      else
        op.elements.push_back({op.kind == Kind::pack ? read_bytes(e, each) : write(e, each), each});
    }
    if (op.kind == Kind::pack)
      op.o.d = write(d, op.bytes);
    else
      op.o.a = read_bytes(a, op.bytes);
    return true;
  }
  using S = ptx::Special;
  if (a.kind == Operand::Kind::special &&
      (a.special == S::clock || a.special == S::clock64 || a.special == S::globaltimer || a.special == S::clock_hi ||
       a.special == S::globaltimer_lo || a.special == S::globaltimer_hi)) {
    op.kind = Kind::clock;
    op.bytes = a.special == S::clock64 || a.special == S::globaltimer ? 8 : 4;
    op.high_word = a.special == S::clock_hi || a.special == S::globaltimer_hi;
    op.o.d = write(d, op.bytes);
    return true;
  }
  return false;
}

// --- warps and blocks (PTX ISA 9.7.13) -------------------------------------------------------------------------------------

Op Decoder::warp(Op& op) {
  const std::string_view m = instruction_->mnemonic;
  op.counted = Class::warp;
  struct Known {
    Kind kind;
    uint8_t bytes = 4;  ///< of the operand
    Shuffle shuffle = {};
    Vote vote = {};
    Reduction reduction = {};
    NumberType type = {};
  };
  using enum NumberType;
  // The order of the modifiers does not matter: vote.sync.ballot is vote.ballot.sync.
  const auto any_order = [](std::string_view name) {
    std::vector<std::string> parts;
    for (size_t at = 0, end; at <= name.size(); at = end + 1) {
      end = std::min(name.find('.', at), name.size());
      parts.emplace_back(name.substr(at, end - at));
    }
    std::sort(parts.begin() + 1, parts.end());
    return parts;
  };
  static const std::map<std::string, Known> known_names = {
      {"shfl.sync.up.b32", {.kind = Kind::shuffle, .shuffle = Shuffle::up}},
      {"shfl.sync.down.b32", {.kind = Kind::shuffle, .shuffle = Shuffle::down}},
      {"shfl.sync.bfly.b32", {.kind = Kind::shuffle, .shuffle = Shuffle::bfly}},
      {"shfl.sync.idx.b32", {.kind = Kind::shuffle, .shuffle = Shuffle::idx}},
      {"vote.sync.all.pred", {.kind = Kind::vote, .vote = Vote::all}},
      {"vote.sync.any.pred", {.kind = Kind::vote, .vote = Vote::any}},
      {"vote.sync.uni.pred", {.kind = Kind::vote, .vote = Vote::uni}},
      {"vote.sync.ballot.b32", {.kind = Kind::vote, .vote = Vote::ballot}},
      {"elect.sync", {.kind = Kind::elect}},
      {"match.any.sync.b32", {.kind = Kind::match_any}},
      {"match.any.sync.b64", {.kind = Kind::match_any, .bytes = 8}},
      {"match.all.sync.b32", {.kind = Kind::match_all}},
      {"match.all.sync.b64", {.kind = Kind::match_all, .bytes = 8}},
      {"redux.sync.add.u32", {.kind = Kind::redux, .reduction = Reduction::add}},
      {"redux.sync.add.s32", {.kind = Kind::redux, .reduction = Reduction::add}},
      {"redux.sync.min.u32", {.kind = Kind::redux, .reduction = Reduction::min}},
      {"redux.sync.max.u32", {.kind = Kind::redux, .reduction = Reduction::max}},
      {"redux.sync.min.s32", {.kind = Kind::redux, .reduction = Reduction::min, .type = signed_}},
      {"redux.sync.max.s32", {.kind = Kind::redux, .reduction = Reduction::max, .type = signed_}},
      {"redux.sync.and.b32", {.kind = Kind::redux, .reduction = Reduction::and_}},
      {"redux.sync.or.b32", {.kind = Kind::redux, .reduction = Reduction::or_}},
      {"redux.sync.xor.b32", {.kind = Kind::redux, .reduction = Reduction::xor_}},
      {"activemask.b32", {.kind = Kind::active_mask}}};
  static const auto all = [&] {
    std::map<std::vector<std::string>, Known> sorted;
    for (const auto& [name, known] : known_names) sorted[any_order(name)] = known;
    return sorted;
  }();
  const auto found = all.find(any_order(op.text));
  if (found == all.end()) fail(formatted("unknown instruction {}", op.text));
  const Known& known = found->second;
  op.kind = known.kind;
  op.bytes = known.bytes;
  op.shuffle = known.shuffle;
  op.vote = known.vote;
  op.reduction = known.reduction;
  op.type = known.type;
  const Operand& d = operand(0);
  const bool two = d.kind == Operand::Kind::pair;
  const Operand& first = two ? d.elements.at(0) : d;
  const bool is_pred = op.kind == Kind::vote && op.vote != Vote::ballot;
  op.o.d = write(first, is_pred ? predicate : 4);
  if (two) op.o.extra = write(d.elements.at(1), predicate);
  if (m == "activemask") return op;
  if (m == "elect") {
    op.o.c = read_bytes(operand(1), 4);
    return op;
  }
  if (m == "vote") {
    op.o.a = read_predicate(op, operand(1));
    op.o.c = read_bytes(operand(2), 4);
    return op;
  }
  op.o.a = read_bytes(operand(1), op.bytes);
  if (m == "shfl") {
    op.o.b = read_bytes(operand(2), 4);
    op.elements.push_back({read_bytes(operand(3), 4), 4});
    op.o.c = read_bytes(operand(4), 4);
  } else {
    op.o.c = read_bytes(operand(2), 4);
  }
  return op;
}

Op Decoder::barrier(Op& op) {
  op.counted = Class::barrier;
  if (op.text == "bar.warp.sync") {
    op.kind = Kind::warp_barrier;
    op.counted = Class::warp;
    op.o.c = read_bytes(operand(0), 4);
    return op;
  }
  only({"cta", "sync", "arrive", "red", "aligned", "popc", "and", "or", "u32", "pred"});
  op.kind = Kind::barrier;
  op.barrier = has("arrive") ? BarrierOp::arrive
               : !has("red") ? BarrierOp::sync
               : has("popc") ? BarrierOp::popc
               : has("and")  ? BarrierOp::and_
                             : BarrierOp::or_;
  const bool has_result = reduces(op.barrier);
  size_t next = 0;
  if (has_result) op.o.d = write(operand(next++), op.barrier == BarrierOp::popc ? 4 : predicate);
  op.o.a = read_bytes(operand(next++), 4);
  const bool has_count = instruction_->operands.size() > next + (has_result ? 1 : 0);
  op.o.b = has_count ? read_bytes(operand(next++), 4) : 0;
  if (op.barrier == BarrierOp::arrive && !has_count) fail("bar.arrive without a number of threads");
  if (has_result) op.o.c = read_predicate(op, operand(next++));
  return op;
}

Program decode(const ptx::Module& module, const ptx::Function& kernel) { return Decoder(module, kernel).run(); }

}  // namespace sim
