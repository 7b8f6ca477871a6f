// A block's start, its barriers, and what is said of it in reports. How its warps run is in run_warp.cpp.
#include "executor/block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "executor/cluster.h"
#include "text.h"

namespace sim {
namespace {

template <class T>
T* at(std::byte* registers, uint32_t offset) {
  return reinterpret_cast<T*>(registers + offset);
}

int first(Mask mask) { return std::countr_zero(mask); }

}  // namespace

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

Block::Block(Cluster& cluster, uint32_t number)
    : cluster_(cluster),
      program_(cluster.program),
      launch_(cluster.launch),
      memory_(cluster.memory),
      clocks_(cluster.clocks),
      counts_(cluster.counts_),
      patterns_(cluster.patterns_),
      ranges_(cluster.ranges_),
      contents_(cluster.contents_),
      number_(number),
      rank_(uint32_t(number % cluster.launch.cluster.count())),
      threads_(cluster.threads()),
      shared_(
          [&] {
            const uint32_t align = program_.dynamic_shared_align;
            const uint32_t fixed =
                launch_.dynamic_smem ? (program_.shared_bytes + align - 1) / align * align : program_.shared_bytes;
            return fixed + launch_.dynamic_smem;
          }(),
          clocks_, number * cluster.actors_per_block(), program_.reserved_smem) {
  warps_.resize(cluster.warps_per_block());
  const size_t file = (program_.register_bytes + 63) / 64 * 64;
  registers_ = std::make_unique<std::byte[]>(file * warps_.size() + 64);
  frames_.resize(size_t{program_.frame_bytes} * warp_size * warps_.size());
  const auto base = (reinterpret_cast<uintptr_t>(registers_.get()) + 63) / 64 * 64;
  for (uint32_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.block = this;
    warp.index = w;
    warp.actor = number * cluster.actors_per_block() + w;
    warp.registers = reinterpret_cast<std::byte*>(base) + file * w;
    warp.frames = frames_.data() + size_t{program_.frame_bytes} * warp_size * w;
    const uint32_t left = threads_ - w * warp_size;
    warp.exist = left >= warp_size ? all_lanes : (Mask{1} << left) - 1;
    for (const Preset& p : program_.presets) preset(warp, p);
  }
}

namespace {

/// Whether a preset differs from block to block. It is the same in all lanes.
bool is_of_block(Preset::What what) {
  switch (what) {
    case Preset::ctaid_x:
    case Preset::ctaid_y:
    case Preset::ctaid_z:
    case Preset::smid:
    case Preset::cluster_ctaid_x:
    case Preset::cluster_ctaid_y:
    case Preset::cluster_ctaid_z:
    case Preset::clusterid_x:
    case Preset::clusterid_y:
    case Preset::clusterid_z:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Block::preset(Warp& warp, const Preset& p) {
  const Extent &size = launch_.block, &in_cluster = launch_.cluster;
  uint64_t variable = 0;
  if (p.what == Preset::variable) {
    variable = memory_.variable(&cluster_.module, p.name);
    if (!variable) throw Error(formatted("kernel {}: variable {} was not defined", program_.kernel, p.name));
  }
  for (uint32_t l = 0; l < warp_size; ++l) {
    const uint32_t thread = warp.index * warp_size + l;
    const auto value = [&]() -> uint64_t {
      switch (p.what) {
        case Preset::constant:
          return p.value;
        case Preset::param_address:
          return reinterpret_cast<uint64_t>(cluster_.param()) + p.value;
        case Preset::variable:
          return variable + p.value;
        case Preset::ntid_x:
          return size.x;
        case Preset::ntid_y:
          return size.y;
        case Preset::ntid_z:
          return size.z;
        case Preset::ctaid_x:
          return block_index_.x;
        case Preset::ctaid_y:
          return block_index_.y;
        case Preset::ctaid_z:
          return block_index_.z;
        case Preset::nctaid_x:
          return launch_.grid.x;
        case Preset::nctaid_y:
          return launch_.grid.y;
        case Preset::nctaid_z:
          return launch_.grid.z;
        case Preset::tid_x:
          return thread % size.x;
        case Preset::tid_y:
          return thread / size.x % size.y;
        case Preset::tid_z:
          return thread / size.x / size.y;
        case Preset::laneid:
          return l;
        case Preset::warpid:
          return warp.index;
        case Preset::nwarpid:
          return warps_.size();
        case Preset::smid:
          return cluster_.index() % launch_.sms;
        case Preset::nsmid:
          return launch_.sms;
        case Preset::gridid:
          return 1;
        case Preset::zero:
          return 0;
        case Preset::lanemask_eq:
          return Mask{1} << l;
        case Preset::lanemask_lt:
          return (Mask{1} << l) - 1;
        case Preset::lanemask_le:
          return ((Mask{1} << l) - 1) | Mask{1} << l;
        case Preset::lanemask_gt:
          return ~(((Mask{1} << l) - 1) | Mask{1} << l);
        case Preset::lanemask_ge:
          return ~((Mask{1} << l) - 1);
        case Preset::dynamic_smem:
          return launch_.dynamic_smem;
        case Preset::total_smem:
          return shared_.size();
        case Preset::reserved_smem:
          return shared_.reserved() + p.value;
        case Preset::cluster_ctaid_x:
          return block_index_.x % in_cluster.x;
        case Preset::cluster_ctaid_y:
          return block_index_.y % in_cluster.y;
        case Preset::cluster_ctaid_z:
          return block_index_.z % in_cluster.z;
        case Preset::cluster_nctaid_x:
          return in_cluster.x;
        case Preset::cluster_nctaid_y:
          return in_cluster.y;
        case Preset::cluster_nctaid_z:
          return in_cluster.z;
        case Preset::cluster_ctarank:
          return rank_;
        case Preset::cluster_nctarank:
          return in_cluster.count();
        case Preset::clusterid_x:
          return block_index_.x / in_cluster.x;
        case Preset::clusterid_y:
          return block_index_.y / in_cluster.y;
        case Preset::clusterid_z:
          return block_index_.z / in_cluster.z;
        case Preset::nclusterid_x:
          return launch_.grid.x / in_cluster.x;
        case Preset::nclusterid_y:
          return launch_.grid.y / in_cluster.y;
        case Preset::nclusterid_z:
          return launch_.grid.z / in_cluster.z;
        case Preset::is_explicit_cluster:
          return launch_.explicit_cluster;
        case Preset::grid_workspace_high:
          return launch_.grid_workspace >> 32;
        case Preset::grid_workspace_low:
          return launch_.grid_workspace & 0xffffffff;
      }
      return 0;
    }();
    if (p.bytes == 255) {  // a predicate is one word
      const Mask word = p.what == Preset::is_explicit_cluster && value ? all_lanes : Mask(value);
      std::memcpy(warp.registers + p.offset, &word, 4);
      return;
    }
    if (p.bytes == 4 && is_of_block(p.what)) {
      std::fill_n(at<uint32_t>(warp.registers, p.offset), warp_size, uint32_t(value));
      return;
    }
    std::memcpy(warp.registers + p.offset + size_t{l} * p.bytes, &value, p.bytes);
  }
}

void Block::start(Extent index) {
  block_index_ = index;
  shared_.reset();
  barriers_.fill({});
  exited_.clear();
  mbarriers_.clear();
  warpgroups_.assign((warps_.size() + warpgroup_warps - 1) / warpgroup_warps, {});
  free_registers_ = 0;
  live_warps_ = uint32_t(warps_.size());
  for (Warp& warp : warps_) {
    for (const Preset& p : program_.presets)
      if (is_of_block(p.what)) preset(warp, p);
    warp.pc.fill(0);
    if (program_.callees.size() > 1) {
      for (auto& calls : warp.calls) calls.clear();
      for (auto& kept : warp.kept) kept.clear();
    }
    warp.stack.fill(program_.stack_begin);
    warp.live = warp.exist;
    warp.parked = 0;
    warp.state = Warp::ready;
    warp.spun = false;
    warp.had_turn = 0;
    warp.cluster_arrived = false;
    warp.cluster_waited = 0;
    warp.poll = {};
    warp.wgmma_under_way = 0;
    warp.accumulates.assign(program_.accumulators.empty() ? 0 : program_.register_bytes / 32, false);
    warp.registers_held = program_.registers;
    warp.bulk_groups.fill(0);
    warp.copies.clear();
    warp.copies_issued = warp.landed_at = warp.waited_at = 0;
    warp.groups.fill(0);
  }
}

void Block::warp_ended(const Warp& warp) {
  --live_warps_;
  clocks_.arrive(warp.actor, exited_);
  check_barriers();
  if (live_warps_ == 0) end_pending();
}

// --- barriers (PTX ISA 9.7.13.1) ---------------------------------------------------------------------------------------------

/// __syncthreads() in a branch whose other lanes have left the kernel. The barrier does not wait for them, but compute-sanitizer's
/// synccheck, too, wants all lanes of a warp or none.
void Block::check_exited(const Warp& warp, const Op& op) const {
  const Mask gone = warp.exist & ~warp.live;
  if (!gone || !finds(Check::exited, op)) return;
  report(warp, first(warp.live), op,
         formatted("{} without all lanes of the warp: {} {} exited", op.text, lanes_of(gone),
                   std::popcount(gone) == 1 ? "has" : "have"),
         Check::exited);
}

void Block::arrive(Warp& warp, const Op& op) {
  check_exited(warp, op);
  std::byte* r = warp.registers;
  const int l = first(warp.live);
  const uint32_t id = at<uint32_t>(r, op.o.a)[l];
  if (id >= barriers_.size())
    report(warp, l, op, formatted("there is no barrier {}, only 0 to 15", id), Fault::launch_failure);
  Barrier& barrier = barriers_[id];
  uint32_t expected = 0;
  if (op.o.b) {
    const uint32_t count = at<uint32_t>(r, op.o.b)[l];
    if (count == 0 || count % warp_size)
      report(warp, l, op, formatted("a barrier of {} threads: it must be a multiple of 32", count),
             Fault::launch_failure);
    expected = count / warp_size;
  }
  if (barrier.arrived && barrier.expected != expected)
    report(warp, l, op, formatted("barrier {} is waited at with different numbers of threads", id),
           Fault::launch_failure);
  if (barrier.arrived >> warp.index & 1)
    report(warp, l, op, formatted("the warp arrives at barrier {} a second time before it is complete", id),
           Fault::launch_failure);
  barrier.expected = expected;
  barrier.arrived |= 1U << warp.index;
  clocks_.arrive(warp.actor, barrier.clock);
  if (reduces(op.barrier)) {
    const Mask p = (*at<Mask>(r, op.o.c) ^ (op.o.flags & flag_not_c ? all_lanes : 0)) & warp.live;
    barrier.sum += std::popcount(p);
    barrier.votes += std::popcount(warp.live);
  }
  if (op.barrier != BarrierOp::arrive) {
    barrier.waiting |= 1U << warp.index;
    warp.state = Warp::waiting;
    warp.barrier = id;
  }
  check_barriers();
}

void Block::check_barriers() {
  uint32_t live = 0;
  for (const Warp& warp : warps_)
    if (warp.state != Warp::done) live |= 1U << warp.index;
  for (uint32_t id = 0; id < barriers_.size(); ++id) {
    const Barrier& b = barriers_[id];
    if (!b.arrived) continue;
    if (b.expected ? std::popcount(b.arrived) >= int(b.expected) : (live & ~b.arrived) == 0) complete(id);
  }
}

void Block::complete(uint32_t id) {
  const Barrier barrier = std::exchange(barriers_[id], {});
  for (Warp& warp : warps_) {
    if (!(barrier.waiting >> warp.index & 1)) continue;
    clocks_.leave(warp.actor, barrier.clock);
    if (!barrier.expected) clocks_.leave(warp.actor, exited_);  // it has waited for their end
    warp.state = Warp::ready;
    const Op& op = program_.ops[warp.waits_at];
    if (op.barrier == BarrierOp::popc) {
      for (int l = 0; l < warp_size; ++l)
        if (warp.live >> l & 1) at<uint32_t>(warp.registers, op.o.d)[l] = barrier.sum;
    } else if (reduces(op.barrier)) {
      const bool result = op.barrier == BarrierOp::and_ ? barrier.sum == barrier.votes : barrier.sum > 0;
      *at<Mask>(warp.registers, op.o.d) = result ? all_lanes : 0;
    }
  }
}

// --- reports -----------------------------------------------------------------------------------------------------------------

std::string Block::where(const Op& op) const {
  const SourceLine& line = program_.sources[op.source];
  return line.line ? formatted("{}:{}, PTX line {}", line.file, line.line, op.ptx_line)
                   : formatted("PTX line {}", op.ptx_line);
}

std::string Block::complete(const Warp& warp, int lane, const Op& op, const std::string& what) const {
  const uint32_t thread = warp.index * warp_size + uint32_t(lane);
  const Extent& size = launch_.block;
  return formatted("{}\n  at {}: {}\n  kernel {}, block ({}, {}, {}), thread ({}, {}, {}): warp {}, lane {}", what,
                   where(op), op.text, program_.kernel, block_index_.x, block_index_.y, block_index_.z, thread % size.x,
                   thread / size.x % size.y, thread / size.x / size.y, warp.index, lane);
}

void Block::report(const Warp& warp, int lane, const Op& op, const std::string& what, Fault fault) const {
  throw Error(complete(warp, lane, op, what), fault);
}

bool Block::finds(Check check, const Op& op) const {
  const Severity severity = launch_.checks[check];
  if (severity != Severity::warning) return severity == Severity::error;
  return cluster_.warnings_[{static_cast<uint32_t>(&op - program_.ops.data()), check}].times++ == 0;
}

void Block::report(const Warp& warp, int lane, const Op& op, const std::string& what, Check check) const {
  if (launch_.checks[check] == Severity::error) report(warp, lane, op, what, fault_of(check));
  Warning& warning = cluster_.warnings_[{static_cast<uint32_t>(&op - program_.ops.data()), check}];
  warning.unit = cluster_.index();
  warning.place = formatted("{}: {}", where(op), op.text);
  warning.text = complete(warp, lane, op, what);
}

uint64_t Block::state_of(const Warp& warp) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, of words
  const auto add = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(warp.registers);
  for (uint32_t i = 0; i < program_.register_bytes / 4; ++i) add(words[i]);
  for (int l = 0; l < warp_size; ++l) add(warp.live >> l & 1 ? warp.pc[l] : ~uint64_t{0});
  add(warp.parked);
  return hash;
}

std::string Block::waits_for(const Warp& warp) const {
  if (warp.state == Warp::done) return "has ended";
  if (warp.state == Warp::ready) return "spins: " + where(program_.ops[warp.pc[first(warp.live)]]);
  const Op& op = program_.ops[warp.waits_at];
  if (op.kind == Kind::cluster_wait) return "waits at the cluster's barrier: " + where(op);
  if (op.kind == Kind::wgmma_wait)
    return "waits for wgmma that other warps of its warpgroup have not issued: " + where(op);
  if (op.kind == Kind::take_registers)
    return formatted("waits for {} registers per thread, of which it has {} and {} more are free: {}", op.o.immediate,
                     warp.registers_held, free_registers_, where(op));
  if (warp.state == Warp::polling) return polls_for(warp);
  const Barrier& b = barriers_[warp.barrier];
  return formatted("waits at barrier {} ({} of {} warps have come): {}", warp.barrier, std::popcount(b.arrived),
                   b.expected ? std::to_string(b.expected) : std::string("all"), where(op));
}

}  // namespace sim
