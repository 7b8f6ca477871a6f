#include "executor/interpreter.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "executor/lanes.h"
#include "text.h"

namespace sim {
namespace {

constexpr uint32_t no_limit = 0xffffffff;
constexpr uint64_t quantum = 1 << 20;  ///< backward branches; then other warps run: it may wait for them
/// What a backward branch counts after a load that looks for what others store: it soon lets them run.
constexpr uint64_t poll = quantum / 16;

void set_pc(Warp& warp, Mask mask, uint32_t to) {
  for (int l = 0; l < warp_size; ++l) warp.pc[l] = mask >> l & 1 ? to : warp.pc[l];
}

}  // namespace

Interpreter::Interpreter(Unit& unit, Reports& reports, MemoryChecker& checker, Synchronisation& sync,
                         AsyncCopies& async_copies, BulkCopies& bulk_copies, WgmmaEngine& wgmma, Tcgen05Engine& tcgen05)
    : unit_(unit),
      reports_(reports),
      checker_(checker),
      sync_(sync),
      async_copies_(async_copies),
      bulk_copies_(bulk_copies),
      wgmma_(wgmma),
      tcgen05_(tcgen05),
      program_(unit.program),
      launch_(unit.launch),
      memory_(unit.memory),
      clocks_(unit.clocks),
      counts_(unit.counts) {}

/// Where a warp is while it runs.
struct Interpreter::Turn {
  uint32_t pc = 0;
  uint32_t limit = no_limit;  ///< lanes that are not active wait at this operation
  Mask active = 0;            ///< the lanes that run
  uint64_t branches_left = quantum;
  bool looked = false;  ///< since the last backward branch it has loaded what others may store at any time
};

/// What comes after an instruction.
enum class Interpreter::Then {
  next,     ///< the active lanes go on to the next instruction
  jump,     ///< they go on at turn.pc
  regroup,  ///< the lanes have gone different ways, each to its pc
  yield     ///< the turn ends; the lanes go on at their pc
};

void Interpreter::run(Warp& warp) {
  Turn turn;
  warp.state = Warp::ready;
  if (!regroup(warp, turn)) throw Error("simulator: a ready warp without a lane that can run");
  for (;;) {
    const Then then = run_straight(warp, turn);
    if (then == Then::jump && turn.limit == no_limit) continue;
    if (then == Then::yield) return;
    if (then != Then::regroup) set_pc(warp, turn.active, turn.pc);
    if (!warp.live) {
      warp.state = Warp::done;
      return;
    }
    if (regroup(warp, turn)) continue;
    release_parked(warp);
    if (warp.state == Warp::waiting) return;
    regroup(warp, turn);
  }
}

/// Executes one operation after another, as far as no branch is taken and no lane waits. `next`: at turn.limit.
Interpreter::Then Interpreter::run_straight(Warp& warp, Turn& turn) {
  const Mask active = turn.active;
  const uint32_t begin = turn.pc;
  uint32_t pc = begin;
  Then then = Then::next;
  for (const Op* op = &program_.ops[begin]; then == Then::next && pc < turn.limit; ++op, ++pc) {
    Mask mask = active;
    if (op->guard) mask &= *at<Mask>(warp.registers, op->guard) ^ (op->guard_negated ? all_lanes : 0);
    if (mask) {
      if (op->uses_accumulator && warp.wgmma_under_way) [[unlikely]]
        wgmma_.check_accumulators(warp, *op, pc, mask);
      if (op->uses_accumulator && !warp.tensor_loads.empty()) [[unlikely]]
        tcgen05_.check_loads(warp, *op, pc, mask);
      if (op->kind == Kind::lanes) {
        op->function(warp.registers, op->o, mask);
      } else if (op->kind == Kind::load && mask == all_lanes && load_as_before(warp, *op, pc)) {
        turn.looked = turn.looked || op->strong;
      } else {
        turn.pc = pc;
        Mask executed = mask;  // whose address is passed on: `mask` stays in a register
        then = execute(warp, *op, turn, executed);
        mask = executed;
      }
    }
    if (mask != active) {  // the run counts this operation as one of `active`
      OpCount& count = counts_[pc];
      count.warps -= mask == 0;
      count.lanes += uint64_t(std::popcount(mask)) - uint64_t(std::popcount(active));
    }
  }
  unit_.count_run(begin, pc, std::popcount(active));
  if (then == Then::next) turn.pc = pc;
  return then;
}

/// Executes one instruction in the lanes of `mask`, which becomes the lanes that have executed it: none, where it
/// waits.
inline Interpreter::Then Interpreter::execute(Warp& warp, const Op& op, Turn& turn, Mask& mask) {
  const uint32_t pc = turn.pc;
  switch (op.kind) {
    case Kind::lanes:
      op.function(warp.registers, op.o, mask);
      return Then::next;
    case Kind::load:
    case Kind::store:
    case Kind::atomic:
      turn.looked = turn.looked || (op.strong && op.kind != Kind::store);
      memory_operation(warp, op, pc, mask);
      return Then::next;
    case Kind::branch:
      return branch(warp, op, turn, mask);
    case Kind::call:
      return call(warp, op, turn, mask);
    case Kind::call_indirect:
      return call_indirect(warp, op, turn, mask);
    case Kind::stack_allocate:
    case Kind::stack_save:
    case Kind::stack_restore:
      stack_operation(warp, op, mask);
      return Then::next;
    case Kind::ret:
    case Kind::exit:
      return leave(warp, op, turn, mask);
    case Kind::trap:
      trap(warp, op, mask);
    case Kind::print:
      print(warp, op, mask);
      return Then::next;
    case Kind::pack:
      pack(warp, op, mask);
      return Then::next;
    case Kind::unpack:
      unpack(warp, op, mask);
      return Then::next;
    case Kind::clock:
      read_clock(warp, op, mask);
      return Then::next;
    case Kind::nothing:
      checker_.note_synchronisation(warp, op);
      return Then::next;
    case Kind::yield:
      return yield(warp, turn);
    case Kind::is_space:
      is_space(warp, op, mask);
      return Then::next;
    case Kind::active_mask:
      for (int l = 0; l < warp_size; ++l)
        if (mask >> l & 1) at<Mask>(warp.registers, op.o.d)[l] = mask;
      return Then::next;
    case Kind::map_address:
    case Kind::cluster_rank:
      map_address(warp, op, mask);
      return Then::next;
    case Kind::mbarrier:
      return mbarrier(warp, op, turn, mask);
    case Kind::bulk_copy:
      bulk_copies_.issue(warp, op, pc, mask);
      return Then::next;
    case Kind::bulk_commit:
      for (int l = 0; l < warp_size; ++l) warp.bulk_groups[l] += mask >> l & 1;
      return Then::next;
    case Kind::bulk_wait:
    case Kind::bulk_wait_read:
      bulk_copies_.wait(warp, op, mask);
      return Then::next;
    case Kind::fence_proxy:
      clocks_.fence_proxy(warp.actor);
      return Then::next;
    case Kind::launch_cancel:
      bulk_copies_.cancel_launches(warp, op, pc, mask);
      return Then::next;
    case Kind::launch_query:
      query_launch(warp, op, mask);
      return Then::next;
    case Kind::tensor_multiply:
    case Kind::tensor_copy:
    case Kind::tensor_shift:
    case Kind::tensor_commit:
      tcgen05_.issue(warp, op, pc, mask);
      return Then::next;
    case Kind::tensor_fence:
      tcgen05_.fence(warp, op);
      return Then::next;
    case Kind::fence_mbarrier_init:
      sync_.fence_mbarriers(warp);
      return Then::next;
    case Kind::async_copy:
      async_copies_.issue(warp, op, pc, mask);
      return Then::next;
    case Kind::async_store:
      bulk_copies_.issue_stores(warp, op, pc, mask);
      return Then::next;
    case Kind::async_arrive:
      async_copies_.arrive(warp, op, mask);
      return Then::next;
    case Kind::async_commit:
      for (int l = 0; l < warp_size; ++l) warp.groups[l] += mask >> l & 1;
      return Then::next;
    case Kind::async_wait:
    case Kind::async_wait_all:
      async_copies_.wait(warp, op, mask);
      return Then::next;
    case Kind::shuffle:
    case Kind::vote:
    case Kind::elect:
    case Kind::match_any:
    case Kind::match_all:
    case Kind::redux:
    case Kind::warp_barrier:
    case Kind::matrix_load:
    case Kind::matrix_store:
    case Kind::matrix_transpose:
    case Kind::matrix_multiply:
    case Kind::fragment_load:
    case Kind::fragment_store:
    case Kind::barrier:
    case Kind::cluster_arrive:
    case Kind::cluster_wait:
    case Kind::wgmma_fence:
    case Kind::wgmma_multiply:
    case Kind::wgmma_commit:
    case Kind::wgmma_wait:
    case Kind::tensor_allocate:
    case Kind::tensor_free:
    case Kind::tensor_relinquish:
    case Kind::tensor_load:
    case Kind::tensor_store:
    case Kind::tensor_wait:
    case Kind::give_registers:
    case Kind::take_registers:
      return meet(warp, op, turn, mask);
  }
  return Then::next;
}

// --- control flow ----------------------------------------------------------------------------------------------------------------

inline Interpreter::Then Interpreter::branch(Warp& warp, const Op& op, Turn& turn, Mask mask) {
  if (mask != turn.active) {
    set_pc(warp, turn.active & ~mask, turn.pc + 1);
    set_pc(warp, mask, op.target);
    return Then::regroup;
  }
  if (op.target <= turn.pc) {
    turn.branches_left -= std::min(turn.branches_left, turn.looked ? poll : 1);
    turn.looked = false;
    if (turn.branches_left == 0) {
      set_pc(warp, turn.active, op.target);
      spin(warp, turn);
      return Then::yield;
    }
  }
  turn.pc = op.target;
  return Then::jump;
}

Interpreter::Then Interpreter::call(Warp& warp, const Op& op, Turn& turn, Mask mask) {
  const Callee& callee = program_.callees[op.o.extra];
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    if (callee.keeps) enter(warp, l, op, callee);
    copy_in_frame(warp, l, std::span(op.copies).first(op.arguments));
    warp.calls[l].push_back(turn.pc);
  }
  set_pc(warp, turn.active & ~mask, turn.pc + 1);
  set_pc(warp, mask, op.target);
  return Then::regroup;
}

/// Each lane to the function that its pointer names.
Interpreter::Then Interpreter::call_indirect(Warp& warp, const Op& op, Turn& turn, Mask mask) {
  set_pc(warp, turn.active & ~mask, turn.pc + 1);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const uint64_t address = at<uint64_t>(warp.registers, op.o.a)[l];
    const auto found = program_.callee_at.find(address);
    if (found == program_.callee_at.end() || program_.callees[found->second].signature != op.o.immediate)
      reports_.report(warp, l, op,
                      address ? formatted("a call through {:#x}, which is no function with these parameters", address)
                              : std::string("a call through a null pointer"),
                      Fault::launch_failure);
    const Callee& callee = program_.callees[found->second];
    if (callee.keeps) enter(warp, l, op, callee);
    std::byte* const frame = warp.frames + size_t(l) * program_.frame_bytes;
    for (const Copy& copy : std::span(op.copies).first(op.arguments))
      std::memcpy(frame + callee.parameters + copy.to, frame + copy.from, copy.bytes);
    warp.calls[l].push_back(turn.pc);
    warp.pc[l] = callee.first_op;
  }
  return Then::regroup;
}

/// Keeps what the callee holds, in this lane, from an earlier call of it.
void Interpreter::enter(Warp& warp, int lane, const Op& op, const Callee& callee) {
  constexpr size_t deepest = 1 << 16;
  if (warp.calls[lane].size() >= deepest)
    reports_.report(warp, lane, op, formatted("{} calls inside one another: a recursion without an end", deepest),
                    Fault::launch_failure);
  Kept kept;
  kept.stack = warp.stack[lane];
  const std::byte* const frame = warp.frames + size_t(lane) * program_.frame_bytes + callee.frame;
  kept.bytes.assign(frame, frame + callee.frame_bytes);
  for (const Element& e : callee.registers) {
    if (e.bytes == predicate) {
      kept.bytes.push_back(std::byte(*at<Mask>(warp.registers, e.offset) >> lane & 1));
      continue;
    }
    const std::byte* const value = warp.registers + e.offset + size_t(lane) * e.bytes;
    kept.bytes.insert(kept.bytes.end(), value, value + e.bytes);
  }
  warp.kept[lane].push_back(std::move(kept));
  if (callee.local_bytes)
    at<uint64_t>(warp.registers, callee.local_base)[lane] = grow_stack(warp, lane, op, callee.local_bytes, 16);
}

/// The callee returns: an earlier call of it finds what it held.
void Interpreter::restore(Warp& warp, int lane, const Callee& callee) {
  const Kept& kept = warp.kept[lane].back();
  warp.stack[lane] = kept.stack;
  const std::byte* from = kept.bytes.data();
  std::memcpy(warp.frames + size_t(lane) * program_.frame_bytes + callee.frame, from, callee.frame_bytes);
  from += callee.frame_bytes;
  for (const Element& e : callee.registers) {
    if (e.bytes == predicate) {
      Mask& word = *at<Mask>(warp.registers, e.offset);
      word = (word & ~(Mask{1} << lane)) | Mask(*from++) << lane;
      continue;
    }
    std::memcpy(warp.registers + e.offset + size_t(lane) * e.bytes, from, e.bytes);
    from += e.bytes;
  }
  warp.kept[lane].pop_back();
}

/// Returns where the new bytes begin. `alignment`: a power of two.
uint32_t Interpreter::grow_stack(Warp& warp, int lane, const Op& op, uint64_t bytes, uint32_t alignment) {
  const uint64_t begin = (uint64_t{warp.stack[lane]} + alignment - 1) & ~uint64_t{alignment - 1};
  if (begin > program_.frame_bytes || bytes > program_.frame_bytes - begin)
    reports_.report(warp, lane, op,
                    formatted("the thread's stack of {} bytes is full (local variables of recursive functions, alloca)",
                              stack_bytes),
                    Fault::launch_failure);
  warp.stack[lane] = static_cast<uint32_t>(begin + bytes);
  return static_cast<uint32_t>(begin);
}

void Interpreter::stack_operation(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    uint64_t value = 0;
    if (op.kind != Kind::stack_save) std::memcpy(&value, warp.registers + op.o.a + size_t(l) * op.bytes, op.bytes);
    if (op.kind == Kind::stack_restore) {
      warp.stack[l] = static_cast<uint32_t>(value);
      continue;
    }
    value = op.kind == Kind::stack_save ? warp.stack[l] : grow_stack(warp, l, op, value, op.o.immediate);
    std::memcpy(warp.registers + op.o.d + size_t(l) * op.bytes, &value, op.bytes);
  }
}

/// ret and exit. A ret outside of any call ends the thread.
Interpreter::Then Interpreter::leave(Warp& warp, const Op& op, Turn& turn, Mask mask) {
  set_pc(warp, turn.active & ~mask, turn.pc + 1);
  if (op.kind == Kind::exit || program_.callees.size() <= 1) {  // nothing is called
    warp.live &= ~mask;
    return Then::regroup;
  }
  const Callee& callee = program_.callees[op.o.extra];
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    if (warp.calls[l].empty()) {
      warp.live &= ~(Mask{1} << l);
      continue;
    }
    const uint32_t from = warp.calls[l].back();
    warp.calls[l].pop_back();
    const Op& call = program_.ops[from];
    const auto results = std::span(call.copies).subspan(call.arguments);
    const uint32_t base = call.kind == Kind::call_indirect ? callee.results : 0;
    std::byte* const frame = warp.frames + size_t(l) * program_.frame_bytes;
    if (callee.keeps) {  // the caller may be the same function, whose frame comes back: its results must not go with it
      std::vector<std::byte> values;
      for (const Copy& copy : results)
        values.insert(values.end(), frame + base + copy.from, frame + base + copy.from + copy.bytes);
      restore(warp, l, callee);
      const std::byte* value = values.data();
      for (const Copy& copy : results) {
        std::memcpy(frame + copy.to, value, copy.bytes);
        value += copy.bytes;
      }
    } else {
      for (const Copy& copy : results) std::memcpy(frame + copy.to, frame + base + copy.from, copy.bytes);
    }
    warp.pc[l] = from + 1;
  }
  return Then::regroup;
}

void Interpreter::copy_in_frame(Warp& warp, int lane, std::span<const Copy> copies) {
  std::byte* const frame = warp.frames + size_t(lane) * program_.frame_bytes;
  for (const Copy& copy : copies) std::memcpy(frame + copy.to, frame + copy.from, copy.bytes);
}

void Interpreter::trap(const Warp& warp, const Op& op, Mask mask) {
  const int lane = first(mask);
  if (op.text.starts_with("call of __assertfail"))
    reports_.report(warp, lane, op, "an assertion failed: " + argument_text(warp, lane, op, op.o.a), Fault::assertion);
  if (op.text.starts_with("call of"))
    reports_.report(warp, lane, op, op.text + " is not supported", Fault::unsupported);
  reports_.report(warp, lane, op, op.text == "brkpt" ? "a breakpoint, and no debugger is there" : "trap", Fault::trap);
}

/// nanosleep: others run.
Interpreter::Then Interpreter::yield(Warp& warp, const Turn& turn) {
  set_pc(warp, turn.active, turn.pc + 1);
  spin(warp, turn);
  return Then::yield;
}

/// The active lanes wait for something, perhaps for other lanes of the warp: those have the next turns.
void Interpreter::spin(Warp& warp, const Turn& turn) {
  warp.spun = true;
  warp.had_turn |= turn.active;
}

/// Where a wait has found its phase incomplete, other warps must run. After any other operation they may.
Interpreter::Then Interpreter::mbarrier(Warp& warp, const Op& op, const Turn& turn, Mask mask) {
  const bool complete = sync_.mbarrier_operation(warp, op, turn.pc, mask);
  if (complete && unit_.random() % 4) return Then::next;
  set_pc(warp, turn.active, turn.pc + 1);
  if (!complete) {
    spin(warp, turn);
    warp.waits_at = turn.pc;
    warp.state = Warp::polling;
  }
  return Then::yield;
}

// --- registers -------------------------------------------------------------------------------------------------------------------

void Interpreter::pack(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte packed[16];
    size_t offset = 0;
    for (const Element& e : op.elements) {
      std::memcpy(packed + offset, warp.registers + e.offset + size_t(l) * e.bytes, e.bytes);
      offset += e.bytes;
    }
    std::memcpy(warp.registers + op.o.d + l * offset, packed, offset);
  }
}

void Interpreter::unpack(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte packed[16];
    std::memcpy(packed, warp.registers + op.o.a + size_t(l) * op.bytes, op.bytes);
    size_t offset = 0;
    for (const Element& e : op.elements) {
      if (e.offset != discarded) std::memcpy(warp.registers + e.offset + size_t(l) * e.bytes, packed + offset, e.bytes);
      offset += e.bytes;
    }
  }
}

void Interpreter::read_clock(Warp& warp, const Op& op, Mask mask) {
  uint64_t now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  if (op.high_word) now >>= 32;
  for (int l = 0; l < warp_size; ++l)
    if (mask >> l & 1) std::memcpy(warp.registers + op.o.d + size_t(l) * op.bytes, &now, op.bytes);
}

void Interpreter::is_space(Warp& warp, const Op& op, Mask mask) {
  Mask in = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const uint64_t a = at<uint64_t>(warp.registers, op.o.a)[l];
    const bool shared = in_shared_window(a), local = in_local_window(a);
    const bool reachable = shared && (op.cluster || &checker_.owner_of(warp, l, op, a) == warp.block);
    if (op.space == Space::shared ? reachable : op.space == Space::local ? local : !shared && !local)
      in |= Mask{1} << l;
  }
  Mask& d = *at<Mask>(warp.registers, op.o.d);
  d = (d & ~mask) | (in & mask);
}

/// clusterlaunchcontrol.query_cancel, of a LaunchCancel.
void Interpreter::query_launch(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    LaunchCancel result;
    std::memcpy(&result, warp.registers + op.o.a + size_t(l) * sizeof result, sizeof result);
    if (result.canceled > 1)
      reports_.report(warp, l, op, "no result of clusterlaunchcontrol.try_cancel", Fault::launch_failure);
    if (op.o.immediate == query_is_canceled) {
      Mask& d = *at<Mask>(warp.registers, op.o.d);
      d = (d & ~(Mask{1} << l)) | Mask{result.canceled} << l;
      continue;
    }
    if (!result.canceled)
      reports_.report(warp, l, op, "no cluster was cancelled: it has no first block (PTX ISA 9.7.13)",
                      Fault::launch_failure);
    for (size_t i = 0; i < std::min<size_t>(op.elements.size(), 3); ++i)
      if (const Element& e = op.elements[i]; e.offset != discarded)
        at<uint32_t>(warp.registers, e.offset)[l] = result.first[op.o.immediate == query_all ? i : op.o.immediate];
  }
}

// --- divergence ------------------------------------------------------------------------------------------------------------------

/// Chooses the lanes that run next: of those inside the most calls, the ones with the smallest pc. After a long spin,
/// which may wait for other lanes of the warp, any lane is chosen that has not spun since the others had their turn. They run
/// until they come to turn.limit, where others wait. False where no lane can run.
bool Interpreter::regroup(Warp& warp, Turn& turn) {
  uint32_t& pc = turn.pc;
  uint32_t& limit = turn.limit;
  const Mask able = warp.live & ~warp.parked;
  if (!able) return false;
  size_t depth = 0;
  pc = no_limit;
  limit = no_limit;
  if (warp.spun) {
    if (!(able & ~warp.had_turn)) warp.had_turn = 0;
    const Mask next = able & ~warp.had_turn;
    int lane = first(next);
    for (uint64_t skip = unit_.random() % uint64_t(std::popcount(next)); skip; --skip)
      lane = first(next & ~((Mask{2} << lane) - 1));
    depth = warp.calls[lane].size();
    pc = warp.pc[lane];
    warp.spun = false;
  } else if (program_.callees.size() <= 1) {  // no calls: three loops over neighbouring values
    for (int l = 0; l < warp_size; ++l) pc = std::min(pc, able >> l & 1 ? warp.pc[l] : no_limit);
    Mask here = 0;
    for (int l = 0; l < warp_size; ++l) here |= Mask{warp.pc[l] == pc} << l;
    turn.active = here & able;
    for (int l = 0; l < warp_size; ++l)
      limit = std::min(limit, (warp.live & ~here) >> l & 1 && warp.pc[l] > pc ? warp.pc[l] : no_limit);
    return true;
  } else {
    for (int l = 0; l < warp_size; ++l)
      if (able >> l & 1) depth = std::max(depth, warp.calls[l].size());
    for (int l = 0; l < warp_size; ++l)
      if ((able >> l & 1) && warp.calls[l].size() == depth) pc = std::min(pc, warp.pc[l]);
  }
  turn.active = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (!(warp.live >> l & 1) || warp.calls[l].size() != depth) continue;
    if (warp.pc[l] == pc && !(warp.parked >> l & 1))
      turn.active |= Mask{1} << l;
    else if (warp.pc[l] > pc)
      limit = std::min(limit, warp.pc[l]);
  }
  return true;
}

/// An instruction for which lanes must have come together.
Interpreter::Then Interpreter::meet(Warp& warp, const Op& op, const Turn& turn, Mask& mask) {
  set_pc(warp, turn.active, turn.pc);
  set_pc(warp, turn.active & ~mask, turn.pc + 1);
  if (!synchronise(warp, turn.pc, mask)) {
    mask = 0;
    return Then::regroup;
  }
  if (mask & (mask - 1)) clocks_.tick(warp.actor);
  switch (meeting(op.kind)) {
    case Meeting::block:
      if (collective(warp, op, turn.pc))
        set_pc(warp, mask, turn.pc + 1);
      else
        mask = 0;
      return Then::yield;
    case Meeting::warp:
      matrix_operation(warp, op, turn.pc, mask);
      break;
    default:
      warp_operation(warp, op, mask);
  }
  if (mask == turn.active && turn.limit == no_limit) return Then::next;
  set_pc(warp, mask, turn.pc + 1);
  return Then::regroup;
}

/// Whether all lanes that the operation at `pc` needs have come to it; `mask` becomes those that execute it now.
/// Otherwise the lanes of `mask` are parked there. `.aligned` and a block's barrier need all live lanes of the warp,
/// `.sync` those of its member mask (PTX ISA 9.7.13).
bool Interpreter::synchronise(Warp& warp, uint32_t pc, Mask& mask) {
  const Op& op = program_.ops[pc];
  Mask here = mask;
  for (int l = 0; l < warp_size; ++l)
    if ((warp.parked >> l & 1) && warp.pc[l] == pc) here |= Mask{1} << l;
  Mask needed = warp.live;
  if (meeting(op.kind) == Meeting::members) {
    const Mask* members = at<Mask>(warp.registers, op.o.c);
    const Mask wanted = members[first(mask)];
    for (int l = 0; l < warp_size; ++l) {
      if (!(mask >> l & 1)) continue;
      if (!(members[l] >> l & 1) && reports_.finds(Check::member_mask, op))
        reports_.report(warp, l, op, formatted("{}: the lane is not in its own member mask {:#x}", op.text, members[l]),
                        Check::member_mask);
    }
    Mask same = 0;
    for (int l = 0; l < warp_size; ++l)
      if ((here >> l & 1) && members[l] == wanted) same |= Mask{1} << l;
    needed = wanted & warp.live;
    if ((needed & ~same) == 0) {
      // Lanes of `mask` with another member mask are looked at again when no other lane can run.
      warp.parked = (warp.parked & ~same) | (mask & ~same);
      mask = same;
      return true;
    }
    // bar.warp.sync may be met in different places: the compiler duplicates it.
    if (op.kind == Kind::warp_barrier) {
      Mask elsewhere = here;
      for (int l = 0; l < warp_size; ++l)
        if ((warp.parked >> l & 1) && program_.ops[warp.pc[l]].kind == Kind::warp_barrier &&
            at<Mask>(warp.registers, program_.ops[warp.pc[l]].o.c)[l] == wanted)
          elsewhere |= Mask{1} << l;
      if ((needed & ~elsewhere) == 0) {
        for (int l = 0; l < warp_size; ++l)
          if ((elsewhere & ~here) >> l & 1) ++warp.pc[l];
        warp.parked &= ~elsewhere;
        mask = here;
        return true;
      }
    }
  } else if ((needed & ~here) == 0) {
    warp.parked &= ~here;
    mask = here;
    return true;
  }
  warp.parked |= mask;
  return false;
}

/// The lanes of `parked` that wait where `lane` does.
Mask Interpreter::parked_with(const Warp& warp, Mask parked, int lane) {
  Mask group = 0;
  for (int l = 0; l < warp_size; ++l)
    if ((parked >> l & 1) && warp.pc[l] == warp.pc[lane]) group |= Mask{1} << l;
  return group;
}

/// Every lane waits for others: perhaps those that were missing have exited since. Otherwise it is an error.
void Interpreter::release_parked(Warp& warp) {
  const Mask parked = warp.parked;
  for (int l = 0; l < warp_size; ++l) {
    if (!(parked >> l & 1)) continue;
    const Mask group = parked_with(warp, parked, l);
    Mask attempt = group;
    warp.parked &= ~group;
    if (synchronise(warp, warp.pc[l], attempt)) {
      if (program_.ops[warp.pc[l]].kind == Kind::warp_barrier)  // it has met lanes elsewhere, which have gone on
        set_pc(warp, attempt, warp.pc[l] + 1);
      return;
    }
    warp.parked |= group;
  }
  const int lane = first(parked);
  const Op& op = program_.ops[warp.pc[lane]];
  const bool can_go_on = launch_.checks[Check::divergent] != Severity::error && can_meet_at_different_barriers(warp);
  if (can_go_on && !reports_.finds(Check::divergent, op)) return meet_at_different_barriers(warp);
  std::string others;
  for (Mask rest = parked; rest;) {
    const Mask group = parked_with(warp, rest, first(rest));
    const Op& there = program_.ops[warp.pc[first(rest)]];
    others += formatted("\n  {} wait at {} ({})", lanes_of(group), there.text, reports_.where(there));
    rest &= ~group;
  }
  const std::string what =
      formatted("divergent {}: it needs lanes that wait elsewhere, or that are not coming{}", op.text, others);
  if (!can_go_on) reports_.report(warp, lane, op, what, Fault::launch_failure);
  reports_.report(warp, lane, op, what, Check::divergent);
  meet_at_different_barriers(warp);
}

/// All lanes of the warp wait at a __syncthreads() of the same number, but not at the same one.
bool Interpreter::can_meet_at_different_barriers(const Warp& warp) {
  if (warp.parked != warp.live) return false;
  const auto number = [&](int lane) { return at<uint32_t>(warp.registers, program_.ops[warp.pc[lane]].o.a)[lane]; };
  for (int l = 0; l < warp_size; ++l) {
    if (!(warp.live >> l & 1)) continue;
    const Op& op = program_.ops[warp.pc[l]];
    if (op.kind != Kind::barrier || op.barrier != BarrierOp::sync || op.o.b || number(l) != number(first(warp.live)))
      return false;
  }
  return true;
}

/// From Volta on threads arrive one by one, so that this works on a GPU.
void Interpreter::meet_at_different_barriers(Warp& warp) {
  warp.waits_at = warp.pc[first(warp.live)];
  for (int l = 0; l < warp_size; ++l) warp.pc[l] += warp.live >> l & 1;
  warp.parked = 0;
  clocks_.tick(warp.actor);
  sync_.arrive(warp, program_.ops[warp.waits_at]);
}

/// Executed by all live lanes of the warp together. False: the warp waits, and executes it again when it goes on.
bool Interpreter::collective(Warp& warp, const Op& op, uint32_t pc) {
  warp.waits_at = pc;
  switch (op.kind) {
    case Kind::cluster_arrive:
      sync_.arrive_at_cluster(warp, op);
      return true;
    case Kind::cluster_wait:
      if (sync_.wait_for_cluster(warp, op)) return true;
      break;
    case Kind::wgmma_fence:
    case Kind::wgmma_multiply:
    case Kind::wgmma_commit:
    case Kind::wgmma_wait:
      if (wgmma_.execute(warp, op, pc)) return true;
      break;
    case Kind::tensor_allocate:
    case Kind::tensor_free:
    case Kind::tensor_relinquish:
      if (tcgen05_.allocation(warp, op, pc)) return true;
      break;
    case Kind::give_registers:
    case Kind::take_registers:
      if (sync_.set_registers(warp, op)) return true;
      break;
    default:
      sync_.arrive(warp, op);
      return true;
  }
  warp.state = Warp::waiting;
  return false;
}

// --- addresses in a cluster --------------------------------------------------------------------------------------------------

/// mapa and getctarank.
void Interpreter::map_address(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const uint64_t a = op.bytes == 8 ? value<uint64_t>(warp, op.o.a, l) : value<uint32_t>(warp, op.o.a, l);
    if (op.space == Space::generic && !in_shared_window(a))
      reports_.report(warp, l, op, formatted("{:#x} is no address of shared memory", a), Fault::illegal_address);
    if (op.kind == Kind::cluster_rank) {
      const uint32_t rank = checker_.owner_of(warp, l, op, a).rank;
      std::memcpy(warp.registers + op.o.d + size_t(l) * 4, &rank, 4);
      continue;
    }
    const uint32_t rank = value<uint32_t>(warp, op.o.b, l);
    if (rank >= launch_.cluster.count())
      reports_.report(warp, l, op, formatted("there is no block {} in a cluster of {}", rank, launch_.cluster.count()),
                      Fault::illegal_address);
    const uint64_t base = op.space == Space::generic ? shared_window : 0;
    const uint64_t mapped =
        base + (uint64_t{program_.block_pairs ? rank : rank + 1} << cluster_rank_shift | shared_offset(a));
    std::memcpy(warp.registers + op.o.d + size_t(l) * op.bytes, &mapped, op.bytes);
  }
}

}  // namespace sim
