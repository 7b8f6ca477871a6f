// What is checked when a bulk copy is issued, and how it lands.
#include "executor/bulk_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "executor/atomics.h"
#include "text.h"

namespace sim {
namespace {

using Found = SharedMemory::Found;

uint64_t address_of(const Warp& warp, const Address& a, int lane) {
  uint64_t base = 0;
  std::memcpy(&base, warp.registers + a.base + size_t(lane) * a.bytes, a.bytes);
  const uint64_t address = base + uint64_t(a.displacement);
  return a.bytes == 4 ? uint32_t(address) : address;
}

}  // namespace

/// An end in shared memory, of any block of the cluster where its state space says so.
BulkCopy::End BulkCopies::shared_end(const Warp& warp, int lane, const Op& op, uint64_t address, bool cluster) {
  if (in_shared_window(address)) address -= shared_window;
  Block& owner = cluster ? checker_.owner_of(warp, lane, op, address) : *warp.block;
  return {&owner, cluster || unit_.program.block_pairs ? shared_offset(address) : address};
}

/// st.async and red.async (PTX ISA 9.7.9.12 and 9.7.9.13).
void BulkCopies::issue_stores(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    BulkCopy copy;
    copy.op = &op;
    copy.pc = pc;
    copy.warp = &warp;
    copy.lane = l;
    copy.to = shared_end(warp, l, op, address_of(warp, op.addresses[0], l), true);
    copy.mbarrier = shared_end(warp, l, op, address_of(warp, op.addresses[1], l), true);
    copy.bytes = op.bytes * uint32_t(op.elements.size());
    copy.was_read = true;
    for (const Element& e : op.elements) {
      const std::byte* const from = warp.registers + e.offset + size_t(l) * e.bytes;
      copy.data.insert(copy.data.end(), from, from + op.bytes);
    }
    begin_store(std::move(copy));
  }
}

/// It writes through the generic proxy. A reduction is a strong access, which does not race with others like it.
void BulkCopies::begin_store(BulkCopy copy) {
  const Op& op = *copy.op;
  Warp& warp = *copy.warp;
  Block& owner = *copy.to.block;
  if (copy.to.address % copy.bytes)
    reports_.report(warp, copy.lane, op,
                    formatted("misaligned address {:#x}: {} bytes at once need a multiple of {}", copy.to.address,
                              copy.bytes, copy.bytes),
                    Fault::misaligned);
  if (copy.mbarrier.block != &owner)
    reports_.report(warp, copy.lane, op, "the mbarrier is not in the block whose shared memory is written",
                    Fault::launch_failure);
  checker_.check_reachable(warp, copy.lane, op, owner);
  SharedMemory& shared = owner.shared;
  if (copy.to.address >= shared.size() || copy.bytes > shared.size() - copy.to.address)
    reports_.report(warp, copy.lane, op,
                    formatted("{} bytes at {:#x} are outside of the block's {} bytes of shared memory", copy.bytes,
                              copy.to.address, shared.size()),
                    Fault::illegal_address);
  for (uint32_t w = uint32_t(copy.to.address / 4); w < (copy.to.address + copy.bytes) / 4; ++w) {
    const auto verdict = op.o.flags & flag_reduce ? shared.read(w, 0xf, warp.actor, copy.pc, true)
                                                  : shared.begin_async_write(w, warp.actor, copy.pc);
    if (verdict.found == Found::nothing) continue;
    checker_.report_shared(warp, copy.lane, op, w, "write", verdict);
    if (!(op.o.flags & flag_reduce)) shared.begin_async_write(w, warp.actor, copy.pc, true);
  }
  sync_.find_mbarrier(warp, copy.lane, op, owner, copy.mbarrier.address);
  pending_.push_back(std::move(copy));
}

/// PTX ISA 9.7.13, clusterlaunchcontrol.try_cancel: the launch of a cluster that has not started is cancelled, if there is one. Once it has failed it fails. It may
/// fail early: the cluster may be about to start.
void BulkCopies::cancel_launches(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    LaunchCancel result;
    const uint64_t units = launch_.cooperative ? 0 : launch_.grid.count() / launch_.cluster.count();
    if (!unit_.stride || unit_.to_cancel >= units || unit_.random() % 8 == 0) unit_.cancel_has_failed = true;
    if (!unit_.cancel_has_failed) {
      const Extent at = unit_.place(unit_.to_cancel, 0);
      result = {1, {at.x, at.y, at.z}};
      unit_.to_cancel += unit_.stride;
    }
    BulkCopy copy;
    copy.op = &op;
    copy.pc = pc;
    copy.warp = &warp;
    copy.lane = l;
    copy.bytes = sizeof result;
    copy.was_read = true;
    copy.to = shared_end(warp, l, op, address_of(warp, op.addresses[0], l), false);
    copy.mbarrier = shared_end(warp, l, op, address_of(warp, op.addresses[1], l), false);
    copy.from = copy.to;
    copy.data.resize(sizeof result);
    std::memcpy(copy.data.data(), &result, sizeof result);
    const bool all = op.o.flags & flag_multicast;
    for (uint32_t rank = 0; rank < (all ? launch_.blocks_per_cluster() : 1); ++rank) {
      if (all) copy.to.block = copy.from.block = copy.mbarrier.block = &unit_.in_cluster_of(*warp.block, rank);
      begin(copy);
    }
  }
}

/// Issues the copies of the lanes of `mask`.
void BulkCopies::issue(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  const bool tensor = op.o.flags & flag_tensor, to_shared = op.space == Space::shared;
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    BulkCopy copy;
    copy.op = &op;
    copy.pc = pc;
    copy.warp = &warp;
    copy.lane = l;
    const uint64_t to = address_of(warp, op.addresses[0], l), from = address_of(warp, op.addresses[1], l);
    copy.to = to_shared ? shared_end(warp, l, op, to, op.cluster) : BulkCopy::End{nullptr, to};
    copy.from = op.from_space == Space::shared ? shared_end(warp, l, op, from, false) : BulkCopy::End{nullptr, from};
    if (tensor) {
      copy.map = tensor_map(warp, l, op, to_shared ? from : to);
      for (size_t d = 0; d < op.elements.size(); ++d)
        copy.corner[d] = int32_t(value<uint32_t>(warp, op.elements[d].offset, l));
      if (op.elements.size() != copy.map.rank)
        reports_.report(
            warp, l, op,
            formatted("{} coordinates, but the tensor map is of rank {}", op.elements.size(), copy.map.rank),
            Fault::launch_failure);
      if (copy.map.padded_bits && !to_shared)
        reports_.report(warp, l, op, "a tensor copy of 4 or 6 bits in 8 to global memory is not supported",
                        Fault::unsupported);
      if (copy.map.in_pairs) {
        if (copy.corner[0] % 2)
          reports_.report(
              warp, l, op,
              formatted("a box that begins at element {} of its row: of 4 bits, between two bytes", copy.corner[0]),
              Fault::illegal_instruction);
        copy.corner[0] /= 2;
      }
      copy.bytes = copy.map.box_bytes();
    } else {
      copy.bytes = value<uint32_t>(warp, op.o.b, l);
    }
    copy.group = warp.bulk_groups[l];
    count(copy);
    if (!to_shared) {
      begin(std::move(copy));
      continue;
    }
    copy.mbarrier = shared_end(warp, l, op, address_of(warp, op.addresses[2], l), true);
    if (!(op.o.flags & flag_multicast)) {
      begin(std::move(copy));
      continue;
    }
    // To the same offsets in each of the blocks; the copies may land apart.
    const uint32_t ranks = reinterpret_cast<const uint16_t*>(warp.registers + op.o.c)[l];
    for (uint32_t rank = 0; rank < 16; ++rank) {
      if (!(ranks >> rank & 1)) continue;
      if (rank >= launch_.cluster.count())
        reports_.report(warp, l, op,
                        formatted("multicast to block {} in a cluster of {}", rank, launch_.cluster.count()),
                        Fault::illegal_address);
      BulkCopy one = copy;
      one.to.block = one.mbarrier.block = &unit_.in_cluster_of(*warp.block, rank);
      if (op.o.flags & flag_block_pair)  // of each pair, the block that is even or odd like the mbarrier's own
        one.mbarrier.block = &unit_.in_cluster_of(*warp.block, (rank & ~1U) | (copy.mbarrier.block->rank & 1));
      begin(std::move(one));
    }
  }
}

TensorMap BulkCopies::tensor_map(const Warp& warp, int lane, const Op& op, uint64_t address) {
  if (address % 64)
    reports_.report(warp, lane, op, formatted("misaligned tensor map at {:#x}: it needs a multiple of 64", address),
                    Fault::misaligned);
  const uint64_t param = reinterpret_cast<uint64_t>(unit_.param());
  const bool is_param = address >= param && address + 128 <= param + launch_.params.size();
  TensorMap map;
  if (is_param || memory_.contains(address, 128)) std::memcpy(&map, reinterpret_cast<void*>(address), sizeof map);
  if (map.magic != TensorMap::valid)
    reports_.report(warp, lane, op, formatted("no tensor map at {:#x}", address), Fault::illegal_address);
  // The driver's documentation: without interleaving, TMA knows no stride in this dimension.
  if (map.step[0] != 1)
    reports_.report(warp, lane, op, "a tensor map with an element stride in dimension 0 is not supported",
                    Fault::unsupported);
  return map;
}

/// Checks all that is known when the copy is issued, and makes it pending.
void BulkCopies::begin(BulkCopy copy) {
  const Op& op = *copy.op;
  Warp& warp = *copy.warp;
  const bool tensor = copy.map.rank;
  const auto fail = [&](const std::string& what, Fault fault) { reports_.report(warp, copy.lane, op, what, fault); };
  if (!tensor && (copy.bytes == 0 || copy.bytes % 16))
    fail(formatted("a bulk copy of {} bytes: only multiples of 16 can be", copy.bytes), Fault::misaligned);
  if (tensor && copy.corner[0] * int(copy.map.element_bytes) % 16)  // an H200 calls it an illegal instruction
    fail(formatted("a box that begins at element {} of its row, byte {}: only multiples of 16 bytes can be",
                   copy.corner[0], copy.corner[0] * int(copy.map.element_bytes)),
         Fault::illegal_instruction);
  for (const BulkCopy::End& end : {copy.from, copy.to}) {
    const uint64_t align = !tensor ? 16 : end.block ? 128 : 1;
    if (end.address % align)
      fail(formatted("misaligned address {:#x}: this bulk copy needs a multiple of {}", end.address, align),
           Fault::misaligned);
    if (!end.block) {
      if (!tensor && !memory_.contains(end.address, copy.bytes))
        fail(formatted("a bulk copy of {} bytes outside of every allocation: {}", copy.bytes,
                       memory_.describe(end.address)),
             Fault::illegal_address);
      continue;
    }
    checker_.check_reachable(warp, copy.lane, op, *end.block);
    SharedMemory& shared = end.block->shared;
    if (end.address >= shared.size() || copy.shared_bytes() > shared.size() - end.address)
      fail(formatted("{} bytes at {:#x} are outside of the block's {} bytes of shared memory", copy.shared_bytes(),
                     end.address, shared.size()),
           Fault::illegal_address);
  }
  if (copy.from.block && !copy.was_read)
    copy.for_each_word_read([&](uint32_t at, unsigned byte_mask) {
      SharedMemory& shared = copy.from.block->shared;
      if (const auto verdict = shared.begin_async_read(at, warp.actor, copy.pc, byte_mask);
          verdict.found != Found::nothing) {
        checker_.report_shared(warp, copy.lane, op, at, "read", verdict);
        shared.begin_async_read(at, warp.actor, copy.pc, byte_mask, true);
      }
      if (!shared.visible_to_async(at, warp.actor)) checker_.report_unfenced(warp, copy.lane, op, at);
    });
  if (copy.to.block) {
    copy.units.reserve(copy.bytes / 16);
    for (uint32_t at = 0; at < copy.bytes; at += 16) copy.units.push_back(copy.shared_address(copy.to, at));
    copy.to.block->shared.begin_async_writes(copy.units, warp.actor, copy.pc,
                                             [&](uint32_t word, const SharedMemory::Verdict& verdict) {
                                               checker_.report_shared(warp, copy.lane, op, word, "write", verdict);
                                             });
  }
  if (copy.mbarrier.block && copy.mbarrier.block != copy.to.block &&
      !((op.o.flags & flag_block_pair) && copy.mbarrier.block->rank / 2 == copy.to.block->rank / 2))
    fail(op.o.flags & flag_block_pair
             ? "the mbarrier is in another pair of blocks than the destination"
             : "the mbarrier is in another block than the destination, which needs .cta_group::2",
         Fault::launch_failure);
  if (copy.mbarrier.block) {
    const Mbarrier& m = sync_.find_mbarrier(warp, copy.lane, op, *copy.mbarrier.block, copy.mbarrier.address);
    if (!m.fenced && !clocks_.fenced(warp.actor, m.made_by, m.made_at) && reports_.finds(Check::proxy, op))
      reports_.report(
          warp, copy.lane, op,
          formatted("the mbarrier at {:#x} is not known to the asynchronous proxy: neither fence.mbarrier_init nor "
                    "fence.proxy.async after its initialisation",
                    copy.mbarrier.address),
          Check::proxy);
  }
  pending_.push_back(std::move(copy));
}

/// Requests, bytes and sectors of global memory. What lies outside of the tensor costs nothing.
void BulkCopies::count(const BulkCopy& copy) {
  if (copy.from.block && copy.to.block) return;
  OpCount& counted = counts_[copy.pc];
  ++counted.global_requests;
  const auto add = [&](uint64_t address, uint64_t bytes) {
    if (!bytes) return;
    counted.global_bytes += bytes;
    counted.sectors += (address + bytes - 1) / 32 - address / 32 + 1;
  };
  if (!copy.map.rank) return add(copy.from.block ? copy.to.address : copy.from.address, copy.bytes);
  for (uint32_t row = 0; row < copy.map.rows(); ++row) {
    const TensorRow found = copy.tensor_row(row);
    add(found.address, found.bytes);
  }
}

// --- landing -----------------------------------------------------------------------------------------------------------------

void BulkCopies::check_tensor_row(const BulkCopy& copy, const TensorRow& row) {
  if (!memory_.contains(row.address, row.bytes))
    reports_.report(
        *copy.warp, copy.lane, *copy.op,
        formatted("the tensor map's tensor reaches outside of every allocation: {}", memory_.describe(row.address)),
        Fault::illegal_address);
  checker_.check_contents(*copy.warp, copy.lane, *copy.op, row.address, row.bytes, !copy.from.block, !copy.to.block);
}

/// Takes the bytes from the source, in the order of shared memory, without the swizzle.
void BulkCopies::read_source(BulkCopy& copy) {
  if (copy.was_read) return;
  copy.was_read = true;
  copy.data.assign(copy.bytes, std::byte{0});
  if (copy.from.block) {
    SharedMemory& shared = copy.from.block->shared;
    for (uint32_t at = 0; at < copy.bytes; at += 16)
      std::memcpy(&copy.data[at], shared.data() + copy.shared_address(copy.from, at), 16);
    copy.for_each_word_read([&](uint32_t word, unsigned byte_mask) {
      shared.end_async_read(word, copy.warp->actor, copy.pc, clocks_.now(copy.warp->actor), byte_mask);
    });
    return;
  }
  if (!copy.map.rank) {
    checker_.check_contents(*copy.warp, copy.lane, *copy.op, copy.from.address, copy.bytes, true, false);
    std::memcpy(copy.data.data(), reinterpret_cast<const void*>(copy.from.address), copy.bytes);
    return;
  }
  const uint32_t row_bytes = copy.map.row_bytes();
  for (uint32_t r = 0; r < copy.map.rows(); ++r) {
    const TensorRow row = copy.tensor_row(r);
    if (!row.bytes) continue;
    check_tensor_row(copy, row);
    std::byte* const to = &copy.data[size_t{r} * row_bytes + row.skipped];
    const auto* const from = reinterpret_cast<const std::byte*>(row.address);
    if (const uint32_t group = 2 * copy.map.padded_bits)  // bytes of 16 elements
      for (uint32_t i = 0; i < row.bytes / group; ++i) std::memcpy(to + 16 * i, from + group * i, group);
    else
      std::memcpy(to, from, row.bytes);
  }
}

/// Writes the bytes to the destination, and completes them on the mbarrier.
void BulkCopies::write_destination(BulkCopy& copy) {
  if (!copy.to.block) {
    const auto put = [&](uint64_t address, const std::byte* from, uint32_t bytes) {
      if (!(copy.op->o.flags & flag_reduce)) {
        std::memcpy(reinterpret_cast<void*>(address), from, bytes);
        return;
      }
      const uint32_t each = copy.map.rank ? copy.map.element_bytes : copy.op->o.d_bytes;
      Op element;
      element.type = copy.map.rank ? copy.map.type : copy.op->type;
      element.bytes = uint8_t(each);
      element.reduction = copy.op->reduction;
      for (uint32_t i = 0; i < bytes; i += each)
        update_atomically(element, reinterpret_cast<std::byte*>(address) + i, from + i);
    };
    if (!copy.map.rank) {
      checker_.check_contents(*copy.warp, copy.lane, *copy.op, copy.to.address, copy.bytes, false, true);
      return put(copy.to.address, copy.data.data(), copy.bytes);
    }
    for (uint32_t r = 0; r < copy.map.rows(); ++r) {
      const TensorRow row = copy.tensor_row(r);
      if (!row.bytes) continue;
      check_tensor_row(copy, row);
      put(row.address, &copy.data[size_t{r} * copy.map.row_bytes() + row.skipped], row.bytes);
    }
    return;
  }
  Block& owner = *copy.to.block;
  const auto found = copy.mbarrier.block->mbarriers.find(uint32_t(copy.mbarrier.address));
  if (found == copy.mbarrier.block->mbarriers.end())
    reports_.report(*copy.warp, copy.lane, *copy.op, "the mbarrier was invalidated before the copy was complete",
                    Fault::launch_failure);
  Mbarrier& m = found->second;
  const uint32_t actor = owner.copy_actor;
  const bool is_store = copy.op->kind == Kind::async_store, reduces = is_store && (copy.op->o.flags & flag_reduce);
  const uint32_t time = clocks_.event(actor, m.arriving, !is_store);
  std::byte* const to = owner.shared.data();
  if (is_store) {  // of one to four words
    if (reduces)
      update_atomically(*copy.op, to + copy.to.address, copy.data.data());
    else
      std::memcpy(to + copy.to.address, copy.data.data(), copy.bytes);
    owner.shared.end_async_writes(uint32_t(copy.to.address / 4), int(copy.bytes / 4), actor, copy.pc, time, reduces);
  } else {
    for (size_t i = 0; i < copy.units.size(); ++i) std::memcpy(to + copy.units[i], &copy.data[16 * i], 16);
    if (!owner.copied_swizzle.empty())
      for (const uint32_t unit : copy.units)
        owner.copied_swizzle[unit / 16] =
            copy.map.rank ? uint8_t(copy.map.swizzle + (copy.map.swizzles_pairs ? 2 : 1)) : 0;
    owner.shared.end_async_writes(copy.units, actor, copy.pc, time);
  }
  m.tx_count -= copy.map.rank ? copy.map.tensor_bytes(copy.bytes) : copy.bytes;
  m.advance();
}

/// One copy that the mbarrier of `block` at `address` waits for lands, chosen at random. False where there is none.
bool BulkCopies::land_for(const Block& block, uint32_t address) {
  return land_one(
             [&](const BulkCopy& copy) { return copy.mbarrier.block == &block && copy.mbarrier.address == address; }) ||
         async_copies_.arrive_for(block, address);
}

bool BulkCopies::land_any() {
  if (land_one([](const BulkCopy& copy) { return copy.mbarrier.block != nullptr; })) return true;
  return async_copies_.arrive_any();
}

template <class Which>
bool BulkCopies::land_one(const Which& which) {
  const auto count = std::count_if(pending_.begin(), pending_.end(), which);
  if (!count) return false;
  auto skip = unit_.random() % uint64_t(count);
  auto copy = std::find_if(pending_.begin(), pending_.end(), which);
  for (; skip; --skip) copy = std::find_if(copy + 1, pending_.end(), which);
  read_source(*copy);
  write_destination(*copy);
  pending_.erase(copy);
  ++unit_.progress;
  return true;
}

/// cp.async.bulk.wait_group, of each thread (PTX ISA 9.7.9.27.3). With .read, only the sources have been read.
void BulkCopies::wait(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const auto awaited = [&](const BulkCopy& copy) {
      return !copy.mbarrier.block && copy.warp == &warp && copy.lane == l &&
             copy.group + op.o.immediate < warp.bulk_groups[l];
    };
    for (BulkCopy& copy : pending_) {
      if (!awaited(copy)) continue;
      read_source(copy);
      if (op.kind == Kind::bulk_wait) write_destination(copy);
    }
    if (op.kind == Kind::bulk_wait) std::erase_if(pending_, awaited);
  }
}

/// A block's shared memory ends with the block: nothing may still be copied from it or to it. What a copy still reads is read
/// now, if the kernel goes on.
void BulkCopies::block_ends(const Block& block) {
  for (BulkCopy& copy : pending_) {
    if (copy.from.block == &block && !copy.was_read) {
      if (reports_.finds(Check::ended, *copy.op))
        reports_.report(
            *copy.warp, copy.lane, *copy.op,
            "the block ends while this bulk copy may still read its shared memory: nobody has waited for it",
            Check::ended);
      read_source(copy);
    }
    if (copy.to.block == &block)
      reports_.report(
          *copy.warp, copy.lane, *copy.op,
          formatted("the block ends while this {} into its shared memory is under way: nobody has waited for it",
                    copy.op->kind == Kind::async_store ? "asynchronous store" : "bulk copy"),
          Fault::launch_failure);
  }
}

/// At the kernel's end, the copies to global memory that are still pending land.
void BulkCopies::finish() {
  for (BulkCopy& copy : pending_) write_destination(copy);
  pending_.clear();
}

}  // namespace sim
