#include "executor/tcgen05_engine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "text.h"

namespace sim {
namespace {

constexpr uint32_t poison = 0x7fffdead;  ///< a NaN, in FP32 and as two halves
constexpr uint32_t group_lanes = TensorRegion::group_lanes;

std::string columns_text(uint32_t column, uint32_t group) {
  return formatted("column {}, lanes {} to {}, of tensor memory", column, group * group_lanes,
                   group * group_lanes + group_lanes - 1);
}

}  // namespace

// --- checks ------------------------------------------------------------------------------------------------------------------

uint32_t Tcgen05Engine::tensor_address(const Warp& warp, int lane, const Address& address) const {
  const uint64_t base =
      address.bytes == 8 ? value<uint64_t>(warp, address.base, lane) : value<uint32_t>(warp, address.base, lane);
  return uint32_t(base + uint64_t(address.displacement));
}

void Tcgen05Engine::check_allocated(const Warp& warp, int lane, const Op& op, Block& block,
                                    const TensorRegion& region) {
  for (uint32_t c = region.column; c < region.column + region.columns; ++c)
    if (c >= TensorMemory::columns || !block.tensor.is_allocated(c))
      reports_.report(warp, lane, op,
                      c >= TensorMemory::columns
                          ? formatted("column {} of tensor memory: there are {}", c, TensorMemory::columns)
                          : formatted("column {} of tensor memory is not allocated", c),
                      Fault::illegal_address);
}

bool Tcgen05Engine::check_order(const Warp& warp, int lane, const Op& op, const TensorAccess& before,
                                const char* access, uint32_t column, const Use& use) {
  if (!use.in_order || before.actor == warp.actor || (use.in_pipeline && before.issuer == warp.actor)) return true;
  const Op& other = program_.ops[before.op];
  if (!clocks_.happens_before(before.actor, before.time, warp.actor)) {
    if (reports_.finds(Check::race, op))
      reports_.report(
          warp, lane, op,
          formatted("a race in column {} of tensor memory: nothing orders this after the {} by {} of {} at {}", column,
                    access, other.text, reports_.name_of(before.issuer, *warp.block), reports_.where(other)),
          Check::race);
    return false;
  }
  // A thread need not fence off its own work from itself; waiting for it is enough.
  if (before.issuer == warp.actor || clocks_.tensor_fenced(warp.actor, before.actor, before.time)) return true;
  if (reports_.finds(Check::tensor_fence, op))
    reports_.report(
        warp, lane, op,
        formatted("column {} of tensor memory: synchronisation orders this after the {} by {} of {} at {}, but there "
                  "is no {}tcgen05.fence::after_thread_sync before this (PTX ISA 9.7.16, tcgen05.fence)",
                  column, access, other.text, reports_.name_of(before.issuer, *warp.block), reports_.where(other),
                  before.actor != before.issuer ? "" : "tcgen05.fence::before_thread_sync there, or no "),
        Check::tensor_fence);
  clocks_.forgive_fences(warp.actor);
  return true;
}

/// The first thing that speaks against an access is reported.
void Tcgen05Engine::check(const Warp& warp, int lane, const Op& op, Block& block, const TensorRegion& region,
                          const Use& use) {
  check_allocated(warp, lane, op, block, region);
  const uint32_t thread = thread_of(warp, lane);
  bool found = false, missing_found = false;
  block.tensor.for_each_cell(region, [&](TensorMemory::Cell& cell, uint32_t column, uint32_t group) {
    if (found) return;
    const auto under_way = [&](bool write) {
      const Op& other = program_.ops[write ? cell.write_op : cell.read_op];
      const bool is_pipelined =
          other.kind == Kind::tensor_multiply || other.kind == Kind::tensor_copy || other.kind == Kind::tensor_shift;
      if (use.in_pipeline && is_pipelined && (write ? cell.write_thread : cell.read_thread) == thread) return;
      found = true;
      if (!reports_.finds(Check::copy, op)) return;
      const char* const wait = other.kind == Kind::tensor_load    ? "tcgen05.wait::ld"
                               : other.kind == Kind::tensor_store ? "tcgen05.wait::st"
                                                                  : "the mbarrier of a tcgen05.commit";
      reports_.report(warp, lane, op,
                      formatted("{} of {}, which {} at {} still {}: nobody has waited for it ({})",
                                use.writes ? "a write" : "a read", columns_text(column, group), other.text,
                                reports_.where(other), write ? "writes" : "reads", wait),
                      Check::copy);
    };
    if (cell.writes_under_way) under_way(true);
    if (!found && use.writes && cell.reads_under_way) under_way(false);
    if (!found && cell.was_written) found = !check_order(warp, lane, op, cell.write, "write", column, use);
    for (uint8_t i = 0; i < cell.reads && use.writes && !found; ++i)
      found = !check_order(warp, lane, op, cell.read[i], "read", column, use);
    const Mask missing = use.reads ? region.lanes[group] & ~cell.written : 0;
    if (missing && !missing_found && !found) {
      missing_found = true;
      if (reports_.finds(Check::uninitialised, op))
        reports_.report(
            warp, lane, op,
            formatted("a read of column {}, lane {}, of tensor memory, which nobody in this block has written", column,
                      group * group_lanes + uint32_t(std::countr_zero(missing))),
            Check::uninitialised);
    }
  });
}

/// Pairs are blocks 2 i and 2 i + 1 of a cluster (PTX ISA 9.7.16, "CTA Pair").
void Tcgen05Engine::check_pair(const Warp& warp, int lane, const Op& op) {
  if (program_.block_pairs && unit_.launch.blocks_per_cluster() % 2)
    fail(warp, lane, op,
         formatted("{}: a cluster of {} blocks has none in pairs", op.text, unit_.launch.blocks_per_cluster()));
}

void Tcgen05Engine::fence(const Warp& warp, const Op& op) {
  if (op.o.immediate)
    clocks_.fence_after_sync(warp.actor);
  else
    clocks_.fence_before_sync(warp.actor);
}

// --- allocation (PTX ISA 9.7.16) -------------------------------------------------------------------------------------------

bool Tcgen05Engine::allocation(Warp& warp, const Op& op, uint32_t pc) {
  const int lane = first(warp.live);
  check_pair(warp, lane, op);
  if (warp.live != all_lanes) fail(warp, lane, op, formatted("{} needs all lanes of the warp", op.text));
  if (op.kind == Kind::tensor_relinquish) {
    warp.block->may_allocate = false;
    return true;
  }
  const uint32_t columns = value<uint32_t>(warp, op.o.b, lane);
  if (columns < TensorMemory::least_columns || columns > TensorMemory::columns || !std::has_single_bit(columns))
    fail(warp, lane, op,
         formatted("{} columns: only powers of two from {} to {} can be", columns, TensorMemory::least_columns,
                   TensorMemory::columns));
  if (op.kind == Kind::tensor_allocate) return allocate(warp, op, pc, columns);
  free(warp, op, columns);
  return true;
}

/// The address is written through the generic proxy. Where columns are lacking, the warp waits for a tcgen05.dealloc.
bool Tcgen05Engine::allocate(Warp& warp, const Op& op, uint32_t pc, uint32_t columns) {
  const int lane = first(warp.live);
  Block& block = *warp.block;
  if (!block.may_allocate) fail(warp, lane, op, "tcgen05.alloc after tcgen05.relinquish_alloc_permit");
  uint64_t address = addresses(warp, op)[size_t(lane)];
  // ThunderKittens gives .shared::cta a generic address, as the hardware allows.
  if (in_shared_window(address)) address = shared_offset(address - shared_window);
  if (address % 4)
    reports_.report(warp, lane, op, formatted("misaligned address {:#x}: it needs a multiple of 4", address),
                    Fault::misaligned);
  if (!block.shared.contains(address, 4))
    reports_.report(warp, lane, op, formatted("{:#x} is no address of the block's shared memory", address),
                    Fault::illegal_address);
  if (program_.block_pairs && !meet_peer(warp)) return false;
  const auto column = block.tensor.allocate({columns, pc, warp.index});
  if (!column) return false;
  warp.allocates_in_pair = false;
  const auto word = uint32_t(address / 4);
  if (const auto verdict = block.shared.write(word, 0xf, warp.actor, pc, false);
      verdict.found != SharedMemory::Found::nothing) {
    checker_.report_shared(warp, lane, op, word, "write", verdict);
    block.shared.write_anyway(word, 0xf, warp.actor, pc, false, 0);
  }
  // DeepGEMM reads it after a relaxed barrier of the cluster, which orders no accesses: it is enough that it has been written.
  if (program_.block_pairs) block.shared.end_async_write(word, warp.actor, pc, 0);
  std::memcpy(block.shared.data() + address, &*column, 4);
  return true;
}

/// An allocation with cta_group::2 is made in both blocks of a pair, by a warp of each: whether the other one has come as far.
bool Tcgen05Engine::meet_peer(Warp& warp) {
  Block& block = *warp.block;
  Block& peer = unit_.in_cluster_of(block, block.rank ^ 1);
  if (!warp.allocates_in_pair) {
    warp.allocates_in_pair = true;
    warp.allocation = ++block.pair_allocations;
    for (Warp& other : peer.warps)
      if (other.state == Warp::waiting && program_.ops[other.waits_at].kind == Kind::tensor_allocate)
        other.state = Warp::ready;
  }
  return peer.pair_allocations >= warp.allocation;
}

void Tcgen05Engine::free(Warp& warp, const Op& op, uint32_t columns) {
  const int lane = first(warp.live);
  Block& block = *warp.block;
  const uint32_t address = tensor_address(warp, lane, op.addresses[0]);
  const auto found = block.tensor.allocations().find(address);
  if (found == block.tensor.allocations().end() || found->second.columns != columns)
    fail(warp, lane, op, formatted("there is no allocation of {} columns at {:#x} of tensor memory", columns, address));
  TensorRegion all{address, columns, {}};
  all.lanes.fill(0xffff);
  check(warp, lane, op, block, all, {.writes = true, .in_order = false});
  block.tensor.free(address);
  for (Warp& other : block.warps)
    if (other.state == Warp::waiting && program_.ops[other.waits_at].kind == Kind::tensor_allocate)
      other.state = Warp::ready;
}

// --- moves between tensor memory and registers (PTX ISA 9.7.16) ------------------------------------------------------------

void Tcgen05Engine::move(Warp& warp, const Op& op, uint32_t pc) {
  if (op.kind == Kind::tensor_load)
    load(warp, op, pc);
  else if (op.kind == Kind::tensor_store)
    store(warp, op, pc);
  else if (op.o.immediate)
    wait_for_stores(warp);
  else
    wait_for_loads(warp);
}

/// What a load or store of a warp touches. Each warp of a warpgroup has a quarter of the lanes (9.7.16, "Access restrictions").
TensorRegion Tcgen05Engine::region_of(const Warp& warp, const Op& op, uint32_t address, uint32_t& lane) {
  const TensorMove move = TensorMove::unpack(op.o.immediate);
  lane = address >> 16;
  const uint32_t quarter = warp.index % warpgroup_warps, lanes = move.lanes();
  for (int l = 1; l < warp_size; ++l)
    if (tensor_address(warp, l, op.addresses[0]) != address)
      fail(warp, l, op, "an address in tensor memory that is not the same in all lanes");
  // Kernels that run on a B200 give the odd block of a pair lanes from 128 on.
  if (lane >= TensorMemory::lanes && program_.block_pairs) {
    if (!std::exchange(lanes_reported_, true) && reports_.finds(Check::tensor_fence, op))
      reports_.report(warp, 0, op,
                      formatted("lane {} of tensor memory: there are {} (PTX ISA 9.7.16.1)", lane, TensorMemory::lanes),
                      Check::tensor_fence);
    lane %= TensorMemory::lanes;
  }
  if (lane % lanes || lane / 32 != quarter) {
    const std::string what = formatted(
        "lane {} of tensor memory: warp {} reaches lanes {} to {}, from {} on", lane, warp.index, 32 * quarter,
        32 * quarter + 31,
        lanes == 32 ? formatted("lane {}", 32 * quarter) : formatted("lane {} or {}", 32 * quarter, 32 * quarter + 16));
    // All warps of DeepGEMM give lanes of the first one, and reach their own on a B200.
    if (lane % lanes || lane >= 32) reports_.report(warp, 0, op, what, Fault::illegal_address);
    if (!std::exchange(lanes_reported_, true) && reports_.finds(Check::tensor_fence, op))
      reports_.report(warp, 0, op, what, Check::tensor_fence);
    lane += 32 * quarter;
  }
  TensorRegion region{address & 0xffff, move.columns(uint32_t(op.elements.size())), {}};
  for (uint32_t l = lane; l < lane + lanes; l += group_lanes) region.lanes[l / group_lanes] = 0xffff;
  return region;
}

/// The registers hold a NaN until the wait.
void Tcgen05Engine::load(Warp& warp, const Op& op, uint32_t pc) {
  const uint32_t address = tensor_address(warp, 0, op.addresses[0]);
  TensorMoveUnderWay load{&op, pc, 0, {}, {}};
  load.region = region_of(warp, op, address, load.lane);
  check(warp, 0, op, *warp.block, load.region, {.reads = true});
  warp.block->tensor.begin_read(load.region, pc, thread_of(warp, 0));
  for (const Element& e : op.elements) {
    std::fill_n(at<uint32_t>(warp.registers, e.offset), warp_size, poison);
    warp.is_loading[e.offset / 32] = true;
  }
  warp.tensor_loads.push_back(std::move(load));
}

void Tcgen05Engine::wait_for_loads(Warp& warp) {
  TensorMemory& tensor = warp.block->tensor;
  for (const TensorMoveUnderWay& load : warp.tensor_loads) {
    const TensorMove move = TensorMove::unpack(load.op->o.immediate);
    for (uint32_t r = 0; r < load.op->elements.size(); ++r) {
      const uint32_t offset = load.op->elements[r].offset;
      uint32_t* const to = at<uint32_t>(warp.registers, offset);
      for (uint32_t t = 0; t < warp_size; ++t) {
        const auto [lane, column] = move.place(t, r);
        const auto from = [&](uint32_t c) {
          const uint32_t l = load.lane + lane;
          const bool written = tensor.cell(c, l / group_lanes).written >> l % group_lanes & 1;
          return written ? tensor.column(c)[l] : poison;
        };
        const uint32_t c = load.region.column + column;
        to[t] = move.packed ? (from(c) & 0xffff) | from(c + 1) << 16 : from(c);
      }
      warp.is_loading[offset / 32] = false;
    }
    tensor.end_read(load.region, {clocks_.now(warp.actor), load.pc, uint16_t(warp.actor), uint16_t(warp.actor)});
  }
  for (const TensorMovedRegister& moved : warp.moved) {
    moved.op->function(warp.registers, moved.op->o, moved.mask);
    warp.is_loading[moved.op->o.d / 32] = false;
  }
  warp.moved.clear();
  warp.tensor_loads.clear();
}

void Tcgen05Engine::store(Warp& warp, const Op& op, uint32_t pc) {
  const uint32_t address = tensor_address(warp, 0, op.addresses[0]);
  TensorMoveUnderWay store{&op, pc, 0, {}, {}};
  store.region = region_of(warp, op, address, store.lane);
  check(warp, 0, op, *warp.block, store.region, {.writes = true});
  warp.block->tensor.begin_write(store.region, pc, thread_of(warp, 0));
  for (const Element& e : op.elements) {
    const uint32_t* const from = at<uint32_t>(warp.registers, e.offset);
    store.values.insert(store.values.end(), from, from + warp_size);
  }
  warp.tensor_stores.push_back(std::move(store));
}

void Tcgen05Engine::wait_for_stores(Warp& warp) {
  TensorMemory& tensor = warp.block->tensor;
  for (const TensorMoveUnderWay& store : warp.tensor_stores) {
    const TensorMove move = TensorMove::unpack(store.op->o.immediate);
    for (uint32_t r = 0; r < store.op->elements.size(); ++r)
      for (uint32_t t = 0; t < warp_size; ++t) {
        const auto [lane, column] = move.place(t, r);
        const uint32_t c = store.region.column + column, l = store.lane + lane, value = store.values[r * warp_size + t];
        tensor.column(c)[l] = move.packed ? value & 0xffff : value;
        if (move.packed) tensor.column(c + 1)[l] = value >> 16;
      }
    tensor.end_write(store.region, {clocks_.now(warp.actor), store.pc, uint16_t(warp.actor), uint16_t(warp.actor)});
  }
  warp.tensor_stores.clear();
}

/// PTX ISA 9.7.16, tcgen05.wait: what a tcgen05.ld fills holds nothing before tcgen05.wait::ld. A mov is carried out again after it. CUTLASS's first
/// examples do not wait, and are right on a B200: there the instruction that reads the register does. So the kernel can go on.
void Tcgen05Engine::check_loads(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  for (const uint32_t offset : program_.accumulators[pc]) {
    if (!warp.is_loading[offset / 32]) continue;
    if (is_register_move(op) && offset == op.o.a) {
      warp.moved.push_back({&op, mask});
      warp.is_loading[op.o.d / 32] = true;
      return;
    }
    const Op* load = warp.tensor_loads.back().op;
    for (const TensorMoveUnderWay& one : warp.tensor_loads)
      for (const Element& e : one.op->elements)
        if (e.offset == offset) load = one.op;
    if (reports_.finds(Check::tensor_fence, op))
      reports_.report(warp, std::countr_zero(mask), op,
                      formatted("{} uses a register that {} at {} fills, without tcgen05.wait::ld before it", op.text,
                                load->text, reports_.where(*load)),
                      Check::tensor_fence);
    return wait_for_loads(warp);
  }
}

// --- what single threads issue -----------------------------------------------------------------------------------------------

void Tcgen05Engine::issue(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    TensorWork work;
    work.op = &op;
    work.pc = pc;
    work.warp = &warp;
    work.lane = l;
    work.blocks = {warp.block};
    check_pair(warp, l, op);
    if (program_.block_pairs && op.kind != Kind::tensor_commit) {
      const uint32_t even = warp.block->rank & ~1U;
      work.blocks = {&unit_.in_cluster_of(*warp.block, even), &unit_.in_cluster_of(*warp.block, even + 1)};
    }
    switch (op.kind) {
      case Kind::tensor_multiply:
        issue_multiply(std::move(work));
        break;
      case Kind::tensor_copy:
        issue_copy(std::move(work));
        break;
      case Kind::tensor_shift:
        issue_shift(std::move(work));
        break;
      default:
        issue_commit(std::move(work));
    }
  }
}

void Tcgen05Engine::enqueue(TensorWork work) {
  const uint32_t thread = thread_of(*work.warp, work.lane);
  for (size_t i = 0; i < work.blocks.size(); ++i) {
    TensorMemory& tensor = work.blocks[i]->tensor;
    if (work.d[i].columns) tensor.begin_write(work.d[i], work.pc, thread);
    for (const TensorRegion& read : {work.a, work.a_scales, work.b_scales})
      if (read.columns) tensor.begin_read(read, work.pc, thread);
  }
  queues_[thread].push_back(std::move(work));
}

/// What holds a matrix from `address` on.
TensorRegion Tcgen05Engine::rows(const TensorWork& work, uint32_t address, const DataPath& path, uint32_t columns,
                                 const char* matrix) {
  const uint32_t lane = address >> 16;
  const bool may_begin_at_16 = path.interleaved();
  if (lane != 0 && !(may_begin_at_16 && lane == 16))
    reports_.report(*work.warp, work.lane, *work.op,
                    formatted("{} of {} rows at lane {} of tensor memory: they begin at lane 0{}", matrix, path.m, lane,
                              may_begin_at_16 ? " or 16" : ""),
                    Fault::illegal_address);
  TensorRegion region{address & 0xffff, columns, {}};
  if (path.parts() > 1)
    region.lanes.fill(0xffff);
  else
    for (uint32_t row = 0; row < path.m; row += group_lanes)
      region.lanes[(lane + path.lane(row)) / group_lanes] = 0xffff;
  return region;
}

/// Where the scale factors of `count` rows or columns lie (PTX ISA 9.7.16.10.7, "Block Scaling"): those of 32 in a column, in one, two or
/// four bytes of each lane of a quarter, and the same in all quarters.
TensorRegion Tcgen05Engine::scales(const TensorWork& work, uint32_t address, uint32_t count, const char* matrix) {
  // CUTLASS keeps the scale factor ID in the address's upper two bits, which a B200 does not look at.
  if (address >> 30) {
    if (!std::exchange(scale_bits_reported_, true) && reports_.finds(Check::tensor_fence, *work.op))
      reports_.report(*work.warp, work.lane, *work.op,
                      formatted("the address {:#x} of scale factors of {}: bits 30 and 31 are of no lane (PTX ISA "
                                "9.7.16.1)",
                                address, matrix),
                      Check::tensor_fence);
    address &= 0x3fffffff;
  }
  if (address >> 16)
    reports_.report(
        *work.warp, work.lane, *work.op,
        formatted("scale factors of {} at lane {} of tensor memory: they begin at lane 0", matrix, address >> 16),
        Fault::illegal_address);
  TensorRegion region{address & 0xffff, (count + 31) / 32, {}};
  region.lanes.fill(0xffff);
  return region;
}

/// What an operand in shared memory consists of.
void Tcgen05Engine::begin_shared_reads(TensorWork& work, uint64_t bits, bool k_contiguous, uint32_t extent,
                                       uint32_t element_bytes, const char* matrix, uint32_t units) {
  const SharedDescriptor descriptor(bits);
  const Warp& warp = *work.warp;
  const auto describe = [&] { return formatted("the shared-memory descriptor {:#018x} of {}", bits, matrix); };
  if (const std::string wrong = descriptor.check(); !wrong.empty())
    reports_.report(warp, work.lane, *work.op, formatted("{}: {}", describe(), wrong), Fault::launch_failure);
  bool found = false;
  const auto read = [&](uint32_t, uint32_t, uint32_t address) {
    work.units.push_back(address);
    for (const Block* const block : work.blocks) {
      if (address + 16 > block->shared.size())
        reports_.report(warp, work.lane, *work.op,
                        formatted("{} reaches {:#x}, outside of the block's {} bytes of shared memory", describe(),
                                  address, block->shared.size()),
                        Fault::illegal_address);
      const uint8_t copied = block->copied_swizzle[address / 16];
      if (!copied || copied == descriptor.layout.swizzle + 1 || found) continue;
      const auto [writer, pc] = block->shared.last_writer(address / 4);
      if (writer != block->copy_actor || program_.ops[pc].kind != Kind::bulk_copy) continue;
      found = true;
      if (!reports_.finds(Check::swizzle, *work.op)) continue;
      const auto mode = [](uint32_t span) {
        return span == 129 ? "128-byte swizzling of 32-byte atoms"
               : span      ? formatted("{}-byte swizzling", span)
                           : std::string("no swizzling");
      };
      reports_.report(
          warp, work.lane, *work.op,
          formatted("{} says {}, but {} at {} wrote {:#x} with {}", describe(), mode(descriptor.layout.swizzle),
                    program_.ops[pc].text, reports_.where(program_.ops[pc]), address, mode(copied - 1U)),
          Check::swizzle);
    }
  };
  for_each_unit(descriptor.layout, k_contiguous, extent, element_bytes, read, units);
}

void Tcgen05Engine::check_shared_reads(TensorWork& work, bool a_k_contiguous, bool b_k_contiguous,
                                       uint32_t element_bytes) {
  for (Block* const block : work.blocks) {
    std::vector<uint32_t> unwritten;
    block->shared.begin_async_reads(work.units, work.warp->actor, work.pc,
                                    [&](uint32_t word, const SharedMemory::Verdict& verdict) {
                                      if (verdict.found == SharedMemory::Found::unfenced)
                                        checker_.report_unfenced(*work.warp, work.lane, *work.op, word);
                                      else if (verdict.found == SharedMemory::Found::uninitialised)
                                        unwritten.push_back(word);
                                      else
                                        checker_.report_shared(*work.warp, work.lane, *work.op, word, "read", verdict);
                                    });
    if (const auto word = poison_rows(work.units, work.units_of_a, a_k_contiguous, b_k_contiguous, element_bytes,
                                      unwritten, block->shared.data()))
      checker_.report_shared(*work.warp, work.lane, *work.op, *word, "read", {SharedMemory::Found::uninitialised});
  }
}

void Tcgen05Engine::issue_multiply(TensorWork work) {
  Warp& warp = *work.warp;
  const Op& op = *work.op;
  const int lane = work.lane;
  const MmaOptions options = MmaOptions::unpack(op.o.immediate);
  work.descriptor = value<uint32_t>(warp, op.o.d, lane);
  const InstructionDescriptor shape(work.descriptor, options.kind);
  const auto blocks = uint32_t(work.blocks.size());
  if (const std::string wrong = shape.check(options, blocks); !wrong.empty())
    fail(warp, lane, op, formatted("the instruction descriptor {:#010x}: {}", work.descriptor, wrong));
  const Mask add = *at<Mask>(warp.registers, op.o.c) ^ (op.o.flags & flag_not_c ? all_lanes : 0);
  work.add = add >> lane & 1;
  if (options.has_zero_columns) {
    work.zero_columns = value<uint64_t>(warp, op.elements[0].offset, lane);
    if (ZeroColumns(work.zero_columns, shape.m, shape.n).shift)
      reports_.report(
          warp, lane, op,
          formatted("the zero-column mask descriptor {:#018x}: a column shift is not supported", work.zero_columns),
          Fault::unsupported);
  } else {
    for (size_t i = 0; i < op.elements.size(); ++i)
      work.disabled[i] = value<uint32_t>(warp, op.elements[i].offset, lane);
  }

  const DataPath path{shape.m / blocks, shape.n, blocks == 2, options.weight_stationary};
  const uint32_t address = tensor_address(warp, lane, op.addresses[0]);
  work.d_lane = address >> 16;
  for (uint32_t i = 0; i < blocks; ++i) {
    TensorRegion& d = work.d[i];
    d = rows(work, address, path, path.columns(), "D");
    for (uint32_t l = 0; l < TensorMemory::lanes; ++l)
      if (work.disabled[4 * i + l / 32] >> l % 32 & 1) d.lanes[l / group_lanes] &= uint16_t(~(1U << l % group_lanes));
    check(warp, lane, op, *work.blocks[i], d, {.reads = work.add, .writes = true, .in_pipeline = true});
  }
  const uint32_t element_bytes = std::max(1U, 16 / elements_per_unit(shape.a));  // packed FP4 has K contiguous
  if (options.a_in_tensor_memory) {
    if (shape.a >= OperandFormat::e2m3 || path.parts() > 1)
      reports_.report(warp, lane, op,
                      path.parts() > 1 ? formatted("A in tensor memory with M {} {} is not supported", shape.m,
                                                   options.weight_stationary ? "and .ws" : "of a pair of blocks")
                                       : formatted("A of {} in tensor memory is not supported", name(shape.a)),
                      Fault::unsupported);
    if (shape.transpose_a) fail(warp, lane, op, "A in tensor memory cannot be transposed");
    const uint32_t a_address = tensor_address(warp, lane, op.addresses[1]);
    work.a_lane = a_address >> 16;
    work.a = rows(work, a_address, path, operand_k_bytes / 4, "A");
    for (Block* const block : work.blocks) check(warp, lane, op, *block, work.a, {.reads = true, .in_pipeline = true});
  } else {
    begin_shared_reads(work, value<uint64_t>(warp, op.o.a, lane), !shape.transpose_a, path.m, element_bytes, "A");
  }
  if (has_scale_factors(options.kind)) {
    const size_t at = op.addresses.size() - 2;
    work.a_scales = scales(work, tensor_address(warp, lane, op.addresses[at]), path.m, "A");
    work.b_scales = scales(work, tensor_address(warp, lane, op.addresses[at + 1]), shape.n, "B");
    for (Block* const block : work.blocks)
      for (const TensorRegion& read : {work.a_scales, work.b_scales})
        check(warp, lane, op, *block, read, {.reads = true, .in_pipeline = true});
  }
  work.units_of_a = uint32_t(work.units.size());
  begin_shared_reads(work, value<uint64_t>(warp, op.o.b, lane), !shape.transpose_b, shape.n / blocks, element_bytes,
                     "B");
  check_shared_reads(work, !shape.transpose_a, !shape.transpose_b, element_bytes);
  check_collector(work, shape);

  unit_.counts[work.pc].tensor_bytes += 16 * work.units.size() * blocks;
  unit_.counts[work.pc].flops += uint64_t{2} * shape.m * shape.n * shape.k;
  enqueue(std::move(work));
}

/// PTX ISA 9.7.16, tcgen05.mma, .collector_usage: a matrix that is used from a collector buffer must have been filled there, with nothing else
/// between that takes or discards the buffer. It is read from memory all the same, which the ISA allows.
void Tcgen05Engine::check_collector(const TensorWork& work, const InstructionDescriptor& shape) {
  const MmaOptions options = MmaOptions::unpack(work.op->o.immediate);
  const bool in_tensor_memory = options.buffer == 0 && options.a_in_tensor_memory;
  const Collected wanted{in_tensor_memory
                             ? tensor_address(*work.warp, work.lane, work.op->addresses[1])
                             : value<uint64_t>(*work.warp, options.buffer ? work.op->o.b : work.op->o.a, work.lane),
                         in_tensor_memory, options.buffer ? shape.b : shape.a, options.buffer ? shape.n : shape.m};
  std::optional<Collected>& held = collectors_[work.blocks[0]][options.buffer];
  if (options.collector >= CollectorUse::use && held != wanted)
    fail(*work.warp, work.lane, *work.op,
         formatted("{}: {} is not in the collector buffer, because no tcgen05.mma before has filled it with the same "
                   "matrix (PTX ISA 9.7.16, .collector_usage)",
                   work.op->text, options.buffer ? "B" : "A"));
  if (options.collector == CollectorUse::fill || options.collector == CollectorUse::use)
    held = wanted;
  else
    held.reset();
}

/// PTX ISA 9.7.16, tcgen05.cp: rows of 16 or 32 bytes, as a descriptor has them, become lanes.
void Tcgen05Engine::issue_copy(TensorWork work) {
  Warp& warp = *work.warp;
  const Op& op = *work.op;
  const auto shape = TensorCopyShape(op.o.immediate);
  const uint32_t address = tensor_address(warp, work.lane, op.addresses[0]);
  work.d_lane = address >> 16;
  const bool wide = shape == TensorCopyShape::s128x256b || shape == TensorCopyShape::s4x256b;
  TensorRegion d{address & 0xffff, wide ? 8U : 4U, {}};
  if (shape == TensorCopyShape::s4x256b)  // the same lane of each quarter
    for (uint32_t q = 0; q < 4; ++q)
      d.lanes[2 * q + work.d_lane % 32 / group_lanes] = uint16_t(1U << work.d_lane % group_lanes);
  else
    d.lanes.fill(0xffff);
  if (shape == TensorCopyShape::s4x256b ? work.d_lane >= 32 : work.d_lane != 0)
    reports_.report(warp, work.lane, op,
                    formatted("{} to lane {} of tensor memory: it begins at lane 0", op.text, work.d_lane),
                    Fault::illegal_address);
  const uint32_t rows = shape == TensorCopyShape::s4x256b                                                      ? 4
                        : shape == TensorCopyShape::s32x128b                                                   ? 32
                        : shape == TensorCopyShape::s64x128b_02_13 || shape == TensorCopyShape::s64x128b_01_23 ? 64
                                                                                                               : 128;
  begin_shared_reads(work, value<uint64_t>(warp, op.o.a, work.lane), true, rows, 1, "the source", wide ? 2 : 1);
  unit_.counts[work.pc].tensor_bytes += 16 * work.units.size() * work.blocks.size();
  for (size_t i = 0; i < work.blocks.size(); ++i) {
    work.blocks[i]->shared.begin_async_reads(work.units, warp.actor, work.pc,
                                             [&](uint32_t word, const SharedMemory::Verdict& verdict) {
                                               if (verdict.found == SharedMemory::Found::unfenced)
                                                 checker_.report_unfenced(warp, work.lane, op, word);
                                               else
                                                 checker_.report_shared(warp, work.lane, op, word, "read", verdict);
                                             });
    work.d[i] = d;
    check(warp, work.lane, op, *work.blocks[i], d, {.writes = true, .in_pipeline = true});
  }
  enqueue(std::move(work));
}

/// PTX ISA 9.7.16, tcgen05.shift: 32 bytes of each lane but the last of 32 come from the lane after it. Of each quarter alike.
void Tcgen05Engine::issue_shift(TensorWork work) {
  const uint32_t address = tensor_address(*work.warp, work.lane, work.op->addresses[0]);
  if (address >> 16)
    reports_.report(*work.warp, work.lane, *work.op,
                    formatted("lane {} of tensor memory: tcgen05.shift begins at lane 0", address >> 16),
                    Fault::illegal_address);
  work.a = {address & 0xffff, 8, {}};
  work.a.lanes.fill(0xffff);
  for (size_t i = 0; i < work.blocks.size(); ++i) {
    work.d[i] = work.a;
    check(*work.warp, work.lane, *work.op, *work.blocks[i], work.a,
          {.reads = true, .writes = true, .in_pipeline = true});
  }
  enqueue(std::move(work));
}

/// PTX ISA 9.7.16, tcgen05.commit: an arrival when all that the thread has issued before is complete. It has the effect of
/// tcgen05.fence::before_thread_sync.
void Tcgen05Engine::issue_commit(TensorWork work) {
  Warp& warp = *work.warp;
  const Op& op = *work.op;
  uint64_t address = addresses(warp, op)[size_t(work.lane)];
  // ThunderKittens gives the address of shared::cluster where a generic one belongs, and a B200 takes it.
  if (op.space == Space::generic && address >> 32 == 0) {
    if (reports_.finds(Check::tensor_fence, op))
      reports_.report(warp, work.lane, op,
                      formatted("{:#x} is no generic address: one of shared memory needs .shared::cluster", address),
                      Check::tensor_fence);
    address += shared_window;
  }
  Block& owner = sync_.mbarrier_owner(warp, work.lane, op, address);
  const auto add = [&](Block& block) {
    sync_.find_mbarrier(warp, work.lane, op, block, address);
    work.mbarriers.push_back({&block, uint32_t(address)});
  };
  if (op.o.flags & flag_multicast) {
    const uint32_t blocks = unit_.launch.blocks_per_cluster();
    const uint32_t ranks = value<uint16_t>(warp, op.o.c, work.lane);
    for (uint32_t rank = 0; rank < 16; ++rank) {
      if (!(ranks >> rank & 1)) continue;
      if (rank >= blocks)
        reports_.report(warp, work.lane, op, formatted("multicast to block {} in a cluster of {}", rank, blocks),
                        Fault::illegal_address);
      add(unit_.in_cluster_of(*warp.block, rank));
    }
  } else {
    add(owner);
  }
  clocks_.fence_before_sync(warp.actor);
  clocks_.arrive(warp.actor, work.clock);
  enqueue(std::move(work));
}

// --- landing -----------------------------------------------------------------------------------------------------------------

bool Tcgen05Engine::land_for(const Block& block, uint32_t address) {
  for (auto& [thread, queue] : queues_)
    for (size_t i = 0; i < queue.size(); ++i)
      for (const TensorWork::Target& target : queue[i].mbarriers)
        if (target.block == &block && target.address == address) {
          land(queue, i);
          return true;
        }
  return false;
}

bool Tcgen05Engine::land_any() {
  for (auto& [thread, queue] : queues_)
    for (size_t i = 0; i < queue.size(); ++i)
      if (!queue[i].mbarriers.empty()) {
        land(queue, i);
        return true;
      }
  return false;
}

/// The queue's operations up to `last` are carried out, in their order.
void Tcgen05Engine::land(Queue& queue, size_t last) {
  for (size_t i = 0; i <= last; ++i) {
    carry_out(queue.front());
    queue.pop_front();
  }
  ++unit_.progress;
}

void Tcgen05Engine::carry_out(TensorWork& work) {
  if (work.op->kind == Kind::tensor_commit) return arrive(work);
  const uint32_t actor = work.warp->block->tensor_actor, time = clocks_.now(actor);
  if (work.op->kind == Kind::tensor_multiply)
    multiply(work);
  else
    for (size_t i = 0; i < work.blocks.size(); ++i)
      work.op->kind == Kind::tensor_copy ? copy(work, *work.blocks[i]) : shift(work, *work.blocks[i]);
  const TensorAccess access{time, work.pc, uint16_t(actor), uint16_t(work.warp->actor)};
  for (size_t i = 0; i < work.blocks.size(); ++i) {
    Block& block = *work.blocks[i];
    block.shared.end_async_reads(work.units, actor, work.pc, time);
    for (const TensorRegion& read : {work.a, work.a_scales, work.b_scales})
      if (read.columns) block.tensor.end_read(read, access);
    if (work.d[i].columns) block.tensor.end_write(work.d[i], access);
  }
}

void Tcgen05Engine::arrive(TensorWork& work) {
  clocks_.tensor_event(work.warp->block->tensor_actor, work.clock);
  for (const TensorWork::Target& target : work.mbarriers) {
    const auto found = target.block->mbarriers.find(target.address);
    if (found == target.block->mbarriers.end())
      fail(*work.warp, work.lane, *work.op, "the mbarrier was invalidated before the tcgen05.commit was complete");
    Mbarrier& m = found->second;
    if (!m.pending)
      fail(*work.warp, work.lane, *work.op,
           formatted("1 arrivals at an mbarrier that waits for 0 of {} in this phase", m.expected));
    m.arriving.resize(std::max(m.arriving.size(), work.clock.size()));
    for (size_t i = 0; i < work.clock.size(); ++i) m.arriving[i] = std::max(m.arriving[i], work.clock[i]);
    --m.pending;
    m.advance();
  }
}

void Tcgen05Engine::copy(const TensorWork& work, Block& block) {
  const auto shape = TensorCopyShape(work.op->o.immediate);
  const uint32_t per_row = work.d[0].columns / 4;
  for (size_t i = 0; i < work.units.size(); ++i) {
    const uint32_t row = uint32_t(i) / per_row, column = work.d[0].column + uint32_t(i) % per_row * 4;
    uint32_t words[4];
    std::memcpy(words, block.shared.data() + work.units[i], sizeof words);
    const auto put = [&](uint32_t lane) {
      for (uint32_t w = 0; w < 4; ++w) block.tensor.column(column + w)[lane] = words[w];
    };
    switch (shape) {
      case TensorCopyShape::s128x256b:
      case TensorCopyShape::s128x128b:
        put(row);
        break;
      case TensorCopyShape::s4x256b:
        put(work.d_lane + 32 * row);
        break;
      case TensorCopyShape::s64x128b_02_13:  // to warps 0 and 1, and again to 2 and 3
        put(row);
        put(row + 64);
        break;
      case TensorCopyShape::s64x128b_01_23:  // its halves, each to two neighbouring warps
        put(row / 32 * 64 + row % 32);
        put(row / 32 * 64 + row % 32 + 32);
        break;
      case TensorCopyShape::s32x128b:
        for (uint32_t lane = row; lane < TensorMemory::lanes; lane += 32) put(lane);
        break;
    }
  }
}

void Tcgen05Engine::shift(const TensorWork& work, Block& block) {
  for (uint32_t c = work.a.column; c < work.a.column + work.a.columns; ++c) {
    uint32_t* const column = block.tensor.column(c);
    for (uint32_t lane = 0; lane < TensorMemory::lanes; ++lane)
      if (lane % 32 != 31) column[lane] = column[lane + 1];
  }
}

/// Nothing may be under way in a block that ends, and its tensor memory must be free again. A commit that nobody waits for may be.
void Tcgen05Engine::block_ends(const Block& block) {
  for (auto& [thread, queue] : queues_)
    for (const TensorWork& work : queue)
      if (std::find(work.blocks.begin(), work.blocks.end(), &block) != work.blocks.end() &&
          work.op->kind != Kind::tensor_commit)
        fail(*work.warp, work.lane, *work.op,
             "the block ends while this is under way: nobody has waited for a tcgen05.commit after it");
  for (const auto& [column, allocation] : block.tensor.allocations())
    fail(block.warps[allocation.warp], 0, program_.ops[allocation.op],
         formatted("the block ends, and {} columns of tensor memory were not given back by tcgen05.dealloc",
                   allocation.columns));
}

}  // namespace sim
