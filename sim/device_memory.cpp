#include "device_memory.h"

#include <sys/mman.h>

#include <new>

#include "text.h"

namespace sim {

uint64_t DeviceMemory::allocate(size_t bytes, MemoryKind kind, const std::string& name, size_t align) {
  if (bytes > capacity_ - used_) return 0;
  // The bytes are not initialised here, so pages that no kernel uses cost nothing.
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes + 2 * guard_bytes + align]);
  if (!memory) return 0;
  const uint64_t first = reinterpret_cast<uint64_t>(memory.get()) + guard_bytes;
  const uint64_t base = (first + align - 1) / align * align;
  const bool by_host = kind != MemoryKind::device || !name.empty();  // which may write it without a call
  blocks_[base] = {{base, bytes, kind, name, by_host ? nullptr : std::make_shared<Contents>(bytes)}, std::move(memory)};
  used_ += bytes;
  return base;
}

bool DeviceMemory::adopt(uint64_t address, size_t bytes) {
  const auto next = blocks_.lower_bound(address);
  if (next != blocks_.end() && next->first - address < bytes) return false;
  if (find(address)) return false;
  blocks_[address] = {{address, bytes, MemoryKind::registered_host, ""}, nullptr};
  return true;
}

uint64_t DeviceMemory::allocate_parked(size_t bytes) {
  const uint64_t address = allocate(bytes);
  if (!address) return 0;
  blocks_.at(address).keeps_address = true;
  free(address);
  return address;
}

bool DeviceMemory::unpark(uint64_t address) {
  auto block = parked_.extract(address);
  if (block.empty()) return false;
  used_ += block.mapped().allocation.bytes;
  blocks_.insert(std::move(block));
  return true;
}

bool DeviceMemory::free(uint64_t address, MemoryKind kind) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || block->second.allocation.kind != kind) return false;
  if (block->second.bytes) used_ -= block->second.allocation.bytes;
  if (block->second.keeps_address)
    parked_[address] = std::move(block->second);
  else if (block->second.bytes)
    keep_freed({address, block->second.allocation.bytes, std::move(block->second.bytes)});
  blocks_.erase(block);
  return true;
}

/// Its address stays taken; the pages of a large one go back to the system.
void DeviceMemory::keep_freed(Freed freed) {
  constexpr size_t large = size_t{1} << 20, most_small = size_t{64} << 20, most = 4096, page = 4096;
  if (freed.bytes >= large) {
    const uint64_t begin = (freed.base + page - 1) / page * page, end = (freed.base + freed.bytes) / page * page;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  } else {
    freed_small_ += freed.bytes;
  }
  freed_.push_back(std::move(freed));
  while (freed_.size() > most || freed_small_ > most_small) {
    if (freed_.front().bytes < large) freed_small_ -= freed_.front().bytes;
    freed_.pop_front();
  }
}

const DeviceMemory::Freed* DeviceMemory::find_freed(uint64_t address) const {
  for (auto freed = freed_.rbegin(); freed != freed_.rend(); ++freed)
    if (address - freed->base < freed->bytes) return &*freed;
  return nullptr;
}

void DeviceMemory::wrote(uint64_t address, size_t bytes) {
  const Allocation* const to = find(address);
  if (to && to->contents) to->contents->host_wrote(address - to->base, bytes);
}

void DeviceMemory::copied(uint64_t to, uint64_t from, size_t bytes) {
  const Allocation *const target = find(to), *const source = find(from);
  if (!target || !target->contents) return;
  if (!source || !source->contents || source->contents->complete()) return wrote(to, bytes);
  for (size_t i = 0; i < bytes;) {  // run by run of what has been written
    const size_t run = source->contents->find_unwritten(from - source->base + i, bytes - i);
    if (run) target->contents->host_wrote(to - target->base + i, run);
    i += run + 1;
  }
}

void DeviceMemory::begin_launch() {
  const bool marks_come_round = ++launch_ == 0;
  if (marks_come_round) launch_ = Contents::first_launch;
  for (const auto& [base, block] : blocks_) {
    Contents* const contents = block.allocation.contents.get();
    if (!contents) continue;
    contents->look_for_gaps();
    if (marks_come_round) contents->forget_launches();
  }
}

void DeviceMemory::clear() {
  std::erase_if(blocks_, [](const auto& block) {
    const Allocation& allocation = block.second.allocation;
    return allocation.kind != MemoryKind::managed || allocation.name.empty();
  });
  used_ = 0;
  for (const auto& [base, block] : blocks_)
    if (block.bytes) used_ += block.allocation.bytes;
  parked_.clear();
  variables_.clear();
}

const Allocation* DeviceMemory::find(uint64_t address) const {
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return nullptr;
  const Allocation& allocation = std::prev(block)->second.allocation;
  return allocation.contains(address, 1) ? &allocation : nullptr;
}

std::string DeviceMemory::describe(uint64_t address) const {
  const auto text = [&](const Allocation& allocation) {
    return formatted("{} of {} bytes at {:#x}",
                     allocation.name.empty() ? "the allocation" : "variable '" + allocation.name + "'",
                     allocation.bytes, allocation.base);
  };
  if (address < 4096) return formatted("{:#x} is a null pointer, or an offset from one", address);
  if (const Allocation* allocation = find(address))
    return formatted("{:#x} is byte {} of {}", address, address - allocation->base, text(*allocation));
  if (const Freed* freed = find_freed(address))
    return formatted("{:#x} is byte {} of an allocation of {} bytes at {:#x}, which has been freed", address,
                     address - freed->base, freed->bytes, freed->base);
  const auto next = blocks_.upper_bound(address);
  const Allocation* before = next == blocks_.begin() ? nullptr : &std::prev(next)->second.allocation;
  const Allocation* behind = next == blocks_.end() ? nullptr : &next->second.allocation;
  const uint64_t past = before ? address - (before->base + before->bytes) : UINT64_MAX;
  const uint64_t ahead = behind ? behind->base - address : UINT64_MAX;
  constexpr uint64_t far = 1 << 20;  // then its neighbours say nothing
  if (past > far && ahead > far) return formatted("{:#x} is nowhere near an allocation of the device", address);
  if (past <= ahead) return formatted("{:#x} is {} bytes past the end of {}", address, past, text(*before));
  return formatted("{:#x} is {} bytes before {}", address, ahead, text(*behind));
}

uint64_t DeviceMemory::variable(const void* module, const std::string& name) const {
  const auto found = variables_.find({module, name});
  return found == variables_.end() ? 0 : found->second;
}

}  // namespace sim
