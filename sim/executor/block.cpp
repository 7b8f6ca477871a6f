// How a warp runs from one point of synchronisation to the next: its lanes in lockstep, the ones furthest behind first, so
// that they meet again after a branch. And the barriers of a block.
#include "sim/executor/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "sim/executor/cluster.h"

namespace sim {
namespace {

constexpr uint32_t no_limit = 0xffffffff;
constexpr uint32_t end_of_thread = 0xffffffff;
constexpr uint64_t quantum = 1 << 20;  ///< operations after which a warp lets others run: it may be waiting for them

template <class T>
T* at(std::byte* registers, uint32_t offset) {
  return reinterpret_cast<T*>(registers + offset);
}

int first(Mask mask) { return std::countr_zero(mask); }

std::string lanes_of(Mask mask) {
  if (mask == all_lanes) return "all lanes";
  std::string text = std::popcount(mask) == 1 ? "lane" : "lanes";
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    int last = l;
    while (last + 1 < warp_size && (mask >> (last + 1) & 1)) ++last;
    text += last > l ? fmt::format(" {}-{}", l, last) : fmt::format(" {}", l);
    l = last;
  }
  return text;
}

}  // namespace

Block::Block(Cluster& cluster, uint32_t rank)
    : cluster_(cluster),
      program_(cluster.program),
      launch_(cluster.launch),
      memory_(cluster.memory),
      clocks_(cluster.clocks),
      counts_(cluster.counts_),
      patterns_(cluster.patterns_),
      ranges_(cluster.ranges_),
      rank_(rank),
      threads_(cluster.threads()),
      shared_(
          [&] {
            const uint32_t align = program_.dynamic_shared_align;
            const uint32_t fixed =
                launch_.dynamic_smem ? (program_.shared_bytes + align - 1) / align * align : program_.shared_bytes;
            return fixed + launch_.dynamic_smem;
          }(),
          clocks_) {
  warps_.resize(cluster.warps_per_block());
  const size_t file = (program_.register_bytes + 63) / 64 * 64;
  registers_ = std::make_unique<std::byte[]>(file * warps_.size() + 64);
  frames_.resize(size_t{program_.frame_bytes} * warp_size * warps_.size());
  const auto base = (reinterpret_cast<uintptr_t>(registers_.get()) + 63) / 64 * 64;
  for (uint32_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.block = this;
    warp.index = w;
    warp.actor = rank * uint32_t(warps_.size()) + w;
    warp.registers = reinterpret_cast<std::byte*>(base) + file * w;
    warp.frames = frames_.data() + size_t{program_.frame_bytes} * warp_size * w;
    const uint32_t left = threads_ - w * warp_size;
    warp.exist = left >= warp_size ? all_lanes : (Mask{1} << left) - 1;
    for (const Preset& p : program_.presets) preset(warp, p);
  }
}

void Block::preset(Warp& warp, const Preset& p) {
  const Extent &size = launch_.block, &in_cluster = launch_.cluster;
  uint64_t variable = 0;
  if (p.what == Preset::variable) {
    variable = memory_.variable(&cluster_.module, p.name);
    if (!variable) throw Error(fmt::format("kernel {}: variable {} was not defined", program_.kernel, p.name));
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
          return launch_.cooperative ? 0 : rank_;
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
      }
      return 0;
    }();
    if (p.bytes == 255) {  // a predicate is one word
      const Mask word = p.what == Preset::is_explicit_cluster && value ? all_lanes : Mask(value);
      std::memcpy(warp.registers + p.offset, &word, 4);
      return;
    }
    std::memcpy(warp.registers + p.offset + size_t{l} * p.bytes, &value, p.bytes);
  }
}

namespace {

/// Whether a preset differs from block to block.
bool is_of_block(Preset::What what) {
  return (what >= Preset::ctaid_x && what <= Preset::ctaid_z) || what == Preset::smid ||
         (what >= Preset::cluster_ctaid_x && what <= Preset::nclusterid_z);
}

}  // namespace

void Block::start(Extent index) {
  block_index_ = index;
  shared_.reset();
  barriers_.fill({});
  mbarriers_.clear();
  warpgroups_.assign((warps_.size() + warpgroup_warps - 1) / warpgroup_warps, {});
  free_registers_ = 0;
  live_warps_ = uint32_t(warps_.size());
  for (Warp& warp : warps_) {
    for (const Preset& p : program_.presets)
      if (is_of_block(p.what)) preset(warp, p);
    warp.pc.fill(0);
    for (auto& calls : warp.calls) calls.clear();
    warp.live = warp.exist;
    warp.parked = 0;
    warp.state = Warp::ready;
    warp.spun = false;
    warp.cluster_arrived = false;
    warp.poll = {};
    warp.registers_held = program_.registers;
    warp.bulk_groups.fill(0);
    warp.copies.clear();
    warp.groups.fill(0);
  }
}

void Block::warp_ended() {
  --live_warps_;
  check_barriers();
  if (live_warps_ == 0) check_pending();
}

// --- divergence ------------------------------------------------------------------------------------------------------------

/// Chooses the lanes that run next: of those inside the most calls, the ones with the smallest pc; after a long spin, which
/// may wait for other lanes of the warp, any. They run until they come to `limit`, where others wait. False where no lane
/// can run.
bool Block::regroup(Warp& warp, uint32_t& pc, Mask& active, uint32_t& limit) {
  const Mask able = warp.live & ~warp.parked;
  if (!able) return false;
  size_t depth = 0;
  pc = no_limit;
  limit = no_limit;
  if (warp.spun) {
    int lane = first(able);
    for (uint64_t skip = cluster_.random() % uint64_t(std::popcount(able)); skip; --skip)
      lane = first(able & ~((Mask{2} << lane) - 1));
    depth = warp.calls[lane].size();
    pc = warp.pc[lane];
    warp.spun = false;
  } else {
    for (int l = 0; l < warp_size; ++l)
      if (able >> l & 1) depth = std::max(depth, warp.calls[l].size());
    for (int l = 0; l < warp_size; ++l)
      if ((able >> l & 1) && warp.calls[l].size() == depth) pc = std::min(pc, warp.pc[l]);
  }
  active = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (!(warp.live >> l & 1) || warp.calls[l].size() != depth) continue;
    if (warp.pc[l] == pc && !(warp.parked >> l & 1))
      active |= Mask{1} << l;
    else if (warp.pc[l] > pc)
      limit = std::min(limit, warp.pc[l]);
  }
  return true;
}

void Block::run_warp(Warp& warp) {
  uint32_t pc = 0, limit = no_limit;
  Mask active = 0;
  std::byte* const r = warp.registers;
  const Op* const ops = program_.ops.data();
  const auto set_pc = [&](Mask mask, uint32_t to) {
    for (int l = 0; l < warp_size; ++l)
      if (mask >> l & 1) warp.pc[l] = to;
  };
  const auto finish = [&](Mask mask) { warp.live &= ~mask; };

  warp.state = Warp::ready;
  if (!regroup(warp, pc, active, limit)) throw Error("simulator: a ready warp without a lane that can run");
  uint64_t budget = quantum;
  for (;;) {
    const Op& op = ops[pc];
    Mask mask = active;
    if (op.guard) mask &= *at<Mask>(r, op.guard) ^ (op.guard_negated ? all_lanes : 0);
    OpCount& count = counts_[pc];
    bool moved = false;  // the lanes' pc and `active` are no longer in step
    switch (op.kind) {
      case Kind::lanes:
        op.function(r, op.o, mask);
        break;
      case Kind::load:
      case Kind::store:
      case Kind::atomic:
        if (mask) memory_operation(warp, op, pc, mask);
        break;
      case Kind::branch:
        if (mask == active) {
          ++count.warps;
          count.lanes += std::popcount(mask);
          if (op.target <= pc && --budget == 0) {
            set_pc(active, op.target);
            warp.spun = true;
            return;
          }
          pc = op.target;
          if (limit != no_limit) {
            set_pc(active, pc);
            regroup(warp, pc, active, limit);
          }
          continue;
        }
        if (mask) {
          set_pc(mask, op.target);
          set_pc(active & ~mask, pc + 1);
          moved = true;
        }
        break;
      case Kind::call:
        if (mask) {
          for (int l = 0; l < warp_size; ++l) {
            if (!(mask >> l & 1)) continue;
            std::byte* frame = warp.frames + size_t(l) * program_.frame_bytes;
            for (uint32_t i = 0; i < op.arguments; ++i)
              std::memcpy(frame + op.copies[i].to, frame + op.copies[i].from, op.copies[i].bytes);
            warp.calls[l].push_back(pc);
          }
          set_pc(mask, op.target);
          set_pc(active & ~mask, pc + 1);
          moved = true;
        }
        break;
      case Kind::ret:
      case Kind::exit:
        if (mask) {
          set_pc(active & ~mask, pc + 1);
          for (int l = 0; l < warp_size; ++l) {
            if (!(mask >> l & 1)) continue;
            if (op.kind == Kind::exit || warp.calls[l].empty()) {
              finish(Mask{1} << l);
              continue;
            }
            const uint32_t from = warp.calls[l].back();
            warp.calls[l].pop_back();
            std::byte* frame = warp.frames + size_t(l) * program_.frame_bytes;
            const Op& call = ops[from];
            for (size_t i = call.arguments; i < call.copies.size(); ++i)
              std::memcpy(frame + call.copies[i].to, frame + call.copies[i].from, call.copies[i].bytes);
            warp.pc[l] = from + 1;
          }
          moved = true;
        }
        break;
      case Kind::trap:
        if (mask) {
          if (op.text.starts_with("call of __assertfail"))
            report(warp, first(mask), op, "an assertion failed: " + argument_text(warp, first(mask), op, op.o.a),
                   Fault::assertion);
          if (op.text.starts_with("call of"))
            report(warp, first(mask), op, op.text + " is not supported", Fault::unsupported);
          report(warp, first(mask), op, "trap", Fault::trap);
        }
        break;
      case Kind::print:
        print(warp, op, mask);
        break;
      case Kind::pack:
        for (int l = 0; l < warp_size; ++l) {
          if (!(mask >> l & 1)) continue;
          std::byte packed[8];
          size_t offset = 0;
          for (const Element& e : op.elements) {
            std::memcpy(packed + offset, r + e.offset + size_t(l) * e.bytes, e.bytes);
            offset += e.bytes;
          }
          std::memcpy(r + op.o.d + l * offset, packed, offset);
        }
        break;
      case Kind::unpack:
        for (int l = 0; l < warp_size; ++l) {
          if (!(mask >> l & 1)) continue;
          std::byte packed[8];
          std::memcpy(packed, r + op.o.a + size_t(l) * op.bytes, op.bytes);
          size_t offset = 0;
          for (const Element& e : op.elements) {
            if (e.offset != discarded) std::memcpy(r + e.offset + size_t(l) * e.bytes, packed + offset, e.bytes);
            offset += e.bytes;
          }
        }
        break;
      case Kind::clock: {
        uint64_t now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        if (op.sub) now >>= 32;
        for (int l = 0; l < warp_size; ++l)
          if (mask >> l & 1) std::memcpy(r + op.o.d + size_t(l) * op.bytes, &now, op.bytes);
        break;
      }
      case Kind::nothing:
        break;
      case Kind::async_copy:
        if (mask) async_copy(warp, op, pc, mask);
        break;
      case Kind::async_commit:
        for (int l = 0; l < warp_size; ++l) warp.groups[l] += mask >> l & 1;
        break;
      case Kind::async_wait:
        if (mask) async_wait(warp, op, mask);
        break;
      case Kind::map_address:
        map_address(warp, op, mask);
        break;
      case Kind::bulk_copy:
        if (mask) bulk_copy(warp, op, pc, mask);
        break;
      case Kind::bulk_group:
        bulk_group(warp, op, mask);
        break;
      case Kind::fence_proxy:
        if (mask) fence_proxy(warp, op);
        break;
      case Kind::mbarrier:
        if (mask) {
          const bool incomplete = !mbarrier_operation(warp, op, pc, mask);
          if (!incomplete && cluster_.random() % 4) break;
          // Others go on: they must where a phase is incomplete, and may always.
          ++count.warps;
          count.lanes += std::popcount(mask);
          set_pc(active, pc + 1);
          if (incomplete) {
            warp.spun = true;
            warp.waits_at = pc;
            warp.state = Warp::polling;
          }
          return;
        }
        break;
      case Kind::yield:
        ++count.warps;
        count.lanes += std::popcount(mask);
        set_pc(active, pc + 1);
        warp.spun = true;
        return;
      case Kind::is_space: {
        Mask in = 0;
        for (int l = 0; l < warp_size; ++l) {
          const uint64_t a = at<uint64_t>(r, op.o.a)[l];
          const bool shared = in_shared_window(a), local = in_local_window(a);
          const bool reachable = shared && (op.cluster || &owner_of(warp, l, op, a) == this);
          if (op.space == Space::shared ? reachable : op.space == Space::local ? local : !shared && !local)
            in |= Mask{1} << l;
        }
        Mask& d = *at<Mask>(r, op.o.d);
        d = (d & ~mask) | (in & mask);
        break;
      }
      case Kind::active_mask:
        for (int l = 0; l < warp_size; ++l)
          if (mask >> l & 1) at<Mask>(r, op.o.d)[l] = mask;
        break;
      case Kind::shuffle:
      case Kind::vote:
      case Kind::match:
      case Kind::redux:
      case Kind::warp_barrier:
      case Kind::matrix_load:
      case Kind::matrix_store:
      case Kind::matrix_transpose:
      case Kind::matrix_multiply:
      case Kind::fragment_load:
      case Kind::fragment_store:
      case Kind::barrier:
      case Kind::cluster_barrier:
      case Kind::wgmma:
      case Kind::set_registers:
        if (mask) {
          set_pc(active, pc);
          set_pc(active & ~mask, pc + 1);
          if (synchronise(warp, pc, mask)) {
            if (op.kind >= Kind::barrier) {
              if (collective(warp, op, pc)) {
                ++count.warps;
                count.lanes += std::popcount(mask);
                set_pc(mask, pc + 1);
              }
              return;
            }
            if (op.kind >= Kind::matrix_load)
              matrix_operation(warp, op, pc, mask);
            else
              warp_operation(warp, op, mask);
            if (mask == active && limit == no_limit) break;
            set_pc(mask, pc + 1);
          }
          moved = true;
        }
        break;
    }
    if (mask) {
      ++count.warps;
      count.lanes += std::popcount(mask);
    }
    ++pc;
    if (!moved && pc < limit) continue;
    if (!moved) set_pc(active, pc);
    if (!warp.live) {
      warp.state = Warp::done;
      return;
    }
    if (!regroup(warp, pc, active, limit)) {
      // Everyone waits for someone: perhaps those who were missing have exited since.
      const Mask parked = warp.parked;
      bool released = false;
      for (int l = 0; l < warp_size && !released; ++l) {
        if (!(parked >> l & 1)) continue;
        Mask group = 0;
        for (int m = 0; m < warp_size; ++m)
          if ((parked >> m & 1) && warp.pc[m] == warp.pc[l]) group |= Mask{1} << m;
        Mask attempt = group;
        warp.parked &= ~group;
        if (synchronise(warp, warp.pc[l], attempt)) {
          released = true;
          if (ops[warp.pc[l]].kind == Kind::warp_barrier)  // has met lanes elsewhere, which have gone on
            set_pc(attempt, warp.pc[l] + 1);
        } else
          warp.parked |= group;
      }
      if (!released) {
        const int l = first(parked);
        std::string others;
        Mask named = 0;
        for (int m = 0; m < warp_size; ++m) {
          if (!(parked >> m & 1) || (named >> m & 1)) continue;
          Mask group = 0;
          for (int n = m; n < warp_size; ++n)
            if ((parked >> n & 1) && warp.pc[n] == warp.pc[m]) group |= Mask{1} << n;
          named |= group;
          others += fmt::format("\n  {} wait at {} ({})", lanes_of(group), program_.ops[warp.pc[m]].text,
                                where(program_.ops[warp.pc[m]]));
        }
        report(warp, l, ops[warp.pc[l]],
               fmt::format("divergent {}: it needs lanes that wait elsewhere, or that are not coming{}",
                           ops[warp.pc[l]].text, others),
               Fault::launch_failure);
      }
      regroup(warp, pc, active, limit);
    }
  }
}

// --- within a warp -----------------------------------------------------------------------------------------------------------

/// Whether all lanes that the operation at `pc` needs have come to it; `mask` becomes those that execute it now. Otherwise
/// the lanes of `mask` are parked there. `.aligned` and a block's barrier need all live lanes of the warp, `.sync` those
/// of its member mask (PTX ISA 9.7.13).
bool Block::synchronise(Warp& warp, uint32_t pc, Mask& mask) {
  const Op& op = program_.ops[pc];
  Mask here = mask;
  for (int l = 0; l < warp_size; ++l)
    if ((warp.parked >> l & 1) && warp.pc[l] == pc) here |= Mask{1} << l;
  Mask needed = warp.live;
  if (op.kind < Kind::matrix_load) {
    const Mask* members = at<Mask>(warp.registers, op.o.c);
    const Mask wanted = members[first(mask)];
    for (int l = 0; l < warp_size; ++l) {
      if (!(mask >> l & 1)) continue;
      if (!(members[l] >> l & 1))
        report(warp, l, op, fmt::format("{}: the lane is not in its own member mask {:#x}", op.text, members[l]),
               Fault::launch_failure);
    }
    Mask same = 0;
    for (int l = 0; l < warp_size; ++l)
      if ((here >> l & 1) && members[l] == wanted) same |= Mask{1} << l;
    needed = wanted & warp.live;
    if ((needed & ~same) == 0) {
      // Lanes of `mask` with another member mask are looked at again when nobody else can run.
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

void Block::warp_operation(Warp& warp, const Op& op, Mask mask) {
  std::byte* r = warp.registers;
  uint32_t* d = at<uint32_t>(r, op.o.d);
  const auto set_predicate = [&](uint32_t offset, Mask value) {
    Mask& p = *at<Mask>(r, offset);
    p = (p & ~mask) | (value & mask);
  };
  switch (op.kind) {
    case Kind::shuffle: {  // PTX ISA 9.7.9.6, the pseudo-code of shfl.sync
      const uint32_t *a = at<uint32_t>(r, op.o.a), *b = at<uint32_t>(r, op.o.b),
                     *c = at<uint32_t>(r, op.elements[0].offset);
      std::array<uint32_t, warp_size> result;
      Mask valid = 0;
      for (int l = 0; l < warp_size; ++l) {
        if (!(mask >> l & 1)) continue;
        const int bval = b[l] & 0x1f, cval = c[l] & 0x1f, segment = c[l] >> 8 & 0x1f;
        const int max_lane = (l & segment) | (cval & ~segment), min_lane = l & segment;
        int j = 0;
        bool in_range = false;
        switch (op.sub) {
          case 0:
            j = l - bval;
            in_range = j >= max_lane;
            break;
          case 1:
            j = l + bval;
            in_range = j <= max_lane;
            break;
          case 2:
            j = l ^ bval;
            in_range = j <= max_lane;
            break;
          default:
            j = min_lane | (bval & ~segment);
            in_range = j <= max_lane;
            break;
        }
        if (!in_range)
          j = l;
        else
          valid |= Mask{1} << l;
        if (!(mask >> j & 1))
          report(warp, l, op, fmt::format("{} reads from lane {}, which does not take part", op.text, j),
                 Fault::launch_failure);
        result[l] = a[j];
      }
      for (int l = 0; l < warp_size; ++l)
        if (mask >> l & 1) d[l] = result[l];
      if (op.o.extra) set_predicate(op.o.extra, valid);
      break;
    }
    case Kind::vote: {
      const Mask p = op.sub == 4 ? 0 : (*at<Mask>(r, op.o.a) ^ (op.o.flags & 4 ? all_lanes : 0)) & mask;
      if (op.sub == 4) {  // elect.sync
        for (int l = 0; l < warp_size; ++l)
          if (mask >> l & 1) d[l] = first(mask);
        if (op.o.extra) set_predicate(op.o.extra, Mask{1} << first(mask));
      } else if (op.sub == 3) {
        for (int l = 0; l < warp_size; ++l)
          if (mask >> l & 1) d[l] = p;
      } else {
        const bool result = op.sub == 0 ? p == mask : op.sub == 1 ? p != 0 : p == mask || p == 0;
        set_predicate(op.o.d, result ? all_lanes : 0);
      }
      break;
    }
    case Kind::match: {
      const auto value = [&](int l) { return op.bytes == 8 ? at<uint64_t>(r, op.o.a)[l] : at<uint32_t>(r, op.o.a)[l]; };
      std::array<Mask, warp_size> equal{};
      for (int l = 0; l < warp_size; ++l)
        for (int m = 0; m < warp_size; ++m)
          if ((mask >> l & 1) && (mask >> m & 1) && value(l) == value(m)) equal[l] |= Mask{1} << m;
      const bool all = equal[first(mask)] == mask;
      for (int l = 0; l < warp_size; ++l)
        if (mask >> l & 1) d[l] = op.sub < 2 ? equal[l] : all ? mask : 0;
      if (op.o.extra) set_predicate(op.o.extra, all ? all_lanes : 0);
      break;
    }
    case Kind::redux: {
      const uint32_t* a = at<uint32_t>(r, op.o.a);
      uint32_t result = a[first(mask)];
      for (int l = first(mask) + 1; l < warp_size; ++l) {
        if (!(mask >> l & 1)) continue;
        switch (op.sub) {
          case 0:
            result += a[l];
            break;
          case 1:
            result = std::min(result, a[l]);
            break;
          case 2:
            result = std::max(result, a[l]);
            break;
          case 3:
            result = uint32_t(std::min(int32_t(result), int32_t(a[l])));
            break;
          case 4:
            result = uint32_t(std::max(int32_t(result), int32_t(a[l])));
            break;
          case 5:
            result &= a[l];
            break;
          case 6:
            result |= a[l];
            break;
          default:
            result ^= a[l];
            break;
        }
      }
      for (int l = 0; l < warp_size; ++l)
        if (mask >> l & 1) d[l] = result;
      break;
    }
    default:
      break;  // bar.warp.sync: that they met is all
  }
}

/// What all live lanes of the warp do as one. False: the warp waits, and does it again when it goes on.
bool Block::collective(Warp& warp, const Op& op, uint32_t pc) {
  warp.waits_at = pc;
  switch (op.kind) {
    case Kind::cluster_barrier:
      if (op.sub == 0) {
        cluster_.arrive(warp, op);
        return true;
      }
      if (cluster_.wait(warp, op)) return true;
      break;
    case Kind::wgmma:
      if (wgmma(warp, op, pc)) return true;
      break;
    case Kind::set_registers:
      if (set_registers(warp, op)) return true;
      break;
    default:
      arrive(warp, op);
      return true;
  }
  warp.state = Warp::waiting;
  return false;
}

// --- barriers (PTX ISA 9.7.13.1) ---------------------------------------------------------------------------------------------

void Block::arrive(Warp& warp, const Op& op) {
  std::byte* r = warp.registers;
  const int l = first(warp.live);
  const uint32_t id = at<uint32_t>(r, op.o.a)[l];
  if (id >= barriers_.size())
    report(warp, l, op, fmt::format("there is no barrier {}, only 0 to 15", id), Fault::launch_failure);
  Barrier& barrier = barriers_[id];
  uint32_t expected = 0;
  if (op.o.b) {
    const uint32_t count = at<uint32_t>(r, op.o.b)[l];
    if (count == 0 || count % warp_size)
      report(warp, l, op, fmt::format("a barrier of {} threads: it must be a multiple of 32", count),
             Fault::launch_failure);
    expected = count / warp_size;
  }
  if (barrier.arrived && barrier.expected != expected)
    report(warp, l, op, fmt::format("barrier {} is waited at with different numbers of threads", id),
           Fault::launch_failure);
  if (barrier.arrived >> warp.index & 1)
    report(warp, l, op, fmt::format("the warp arrives at barrier {} a second time before it is complete", id),
           Fault::launch_failure);
  barrier.expected = expected;
  barrier.arrived |= 1U << warp.index;
  clocks_.arrive(warp.actor, barrier.known);
  if (op.sub >= 2) {
    const Mask p = (*at<Mask>(r, op.o.c) ^ (op.o.flags & 4 ? all_lanes : 0)) & warp.live;
    barrier.sum += std::popcount(p);
    barrier.votes += std::popcount(warp.live);
  }
  if (op.sub != 1) {
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
    clocks_.leave(warp.actor, barrier.known);
    warp.state = Warp::ready;
    const Op& op = program_.ops[warp.waits_at];
    if (op.sub == 2) {
      for (int l = 0; l < warp_size; ++l)
        if (warp.live >> l & 1) at<uint32_t>(warp.registers, op.o.d)[l] = barrier.sum;
    } else if (op.sub > 2) {
      const bool result = op.sub == 3 ? barrier.sum == barrier.votes : barrier.sum > 0;
      *at<Mask>(warp.registers, op.o.d) = result ? all_lanes : 0;
    }
  }
}

// --- reports -----------------------------------------------------------------------------------------------------------------

std::string Block::where(const Op& op) const {
  const SourceLine& line = program_.sources[op.source];
  return line.line ? fmt::format("{}:{}, PTX line {}", line.file, line.line, op.ptx_line)
                   : fmt::format("PTX line {}", op.ptx_line);
}

void Block::report(const Warp& warp, int lane, const Op& op, const std::string& what, Fault fault) const {
  const uint32_t thread = warp.index * warp_size + uint32_t(lane);
  const Extent& size = launch_.block;
  throw Error(fmt::format("{}\n  at {}: {}\n  kernel {}, block ({}, {}, {}), thread ({}, {}, {}): warp {}, lane {}",
                          what, where(op), op.text, program_.kernel, block_index_.x, block_index_.y, block_index_.z,
                          thread % size.x, thread / size.x % size.y, thread / size.x / size.y, warp.index, lane),
              fault);
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
  if (op.kind == Kind::cluster_barrier) return "waits at the cluster's barrier: " + where(op);
  if (op.kind == Kind::wgmma) return "waits for wgmma that other warps of its warpgroup have not issued: " + where(op);
  if (op.kind == Kind::set_registers)
    return fmt::format("waits for {} registers a thread, of which it has {} and {} more are free: {}", op.o.immediate,
                       warp.registers_held, free_registers_, where(op));
  if (warp.state == Warp::polling) return polls_for(warp);
  const Barrier& b = barriers_[warp.barrier];
  return fmt::format("waits at barrier {} ({} of {} warps have come): {}", warp.barrier, std::popcount(b.arrived),
                     b.expected ? std::to_string(b.expected) : std::string("all"), where(op));
}

}  // namespace sim
