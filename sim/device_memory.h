// Global memory of the simulated GPU, and where shared and local memory lie among generic addresses.
//
// A global address is the host address of the same byte, so a kernel's pointer can be dereferenced as it is, once it is
// known to lie inside an allocation. There are unused bytes on either side of every allocation. An index that is off by
// one hits these bytes and no other variable of the program, and is reported.
//
// Read-only while a kernel runs (the CUDA calls that change it wait for the kernel), so blocks on several threads may
// look things up without a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "contents.h"

namespace sim {

/// Generic addresses of shared and local memory: far outside what a process of x86-64 can map, so that no host pointer
/// is mistaken for one (PTX ISA, "Generic Addressing"). `cvta` adds the base, `cvta.to` takes it off.
constexpr uint64_t shared_window = 0x7000'0000'0000'0000;
constexpr uint64_t local_window = 0x7100'0000'0000'0000;
constexpr uint64_t window_bytes = 0x0100'0000'0000'0000;

/// The address of function `index` of a module, as a pointer to it holds: not null, another one for each, and no memory.
constexpr uint64_t function_addresses = 0x7200'0000'0000'0000;
constexpr uint64_t function_address(uint32_t index) { return function_addresses + 16 * (uint64_t{index} + 1); }

constexpr bool in_shared_window(uint64_t address) { return address - shared_window < window_bytes; }
constexpr bool in_local_window(uint64_t address) { return address - local_window < window_bytes; }

enum class MemoryKind { device, pinned_host, registered_host, managed, variable, constant };

struct Allocation {
  uint64_t base = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  std::string name;                         ///< of a variable; else ""
  std::shared_ptr<Contents> contents = {};  ///< of cudaMalloc's memory; null: all bytes count as written

  bool contains(uint64_t address, size_t size) const {
    return address >= base && size <= bytes && address - base <= bytes - size;
  }
};

class DeviceMemory {
 public:
  static constexpr size_t alignment = 256;     ///< what cudaMalloc promises, and more than any access needs
  static constexpr size_t guard_bytes = 1024;  ///< on either side of each allocation

  explicit DeviceMemory(size_t capacity = SIZE_MAX) : capacity_(capacity) {}

  /// The address, or 0 where there is not enough memory. The bytes have no particular value, as on a GPU.
  uint64_t allocate(size_t bytes, MemoryKind kind = MemoryKind::device, const std::string& name = "",
                    size_t align = alignment);

  /// Makes memory of the host reachable (cudaHostRegister); free() forgets it. False where some of it already is.
  bool adopt(uint64_t address, size_t bytes);

  /// False where `address` is not the first byte of an allocation of this kind. The address is not given out again for as long
  /// as may be, so that a kernel that uses it later is reported.
  bool free(uint64_t address, MemoryKind kind = MemoryKind::device);

  /// Memory of a graph keeps its address from one launch to the next: it is allocated once, not there at first, comes with
  /// unpark() and goes with free().
  uint64_t allocate_parked(size_t bytes);
  /// False where it is there already.
  bool unpark(uint64_t address);

  /// Frees everything but managed variables, which the host knows by their address.
  void clear();

  /// The allocation that holds this byte, or null. Valid until it is freed.
  const Allocation* find(uint64_t address) const;

  /// True where all bytes lie in one allocation.
  bool contains(uint64_t address, size_t bytes) const {
    const Allocation* allocation = find(address);
    return allocation && allocation->contains(address, bytes);
  }

  /// The host has written these bytes, or has copied them from memory of the device.
  void wrote(uint64_t address, size_t bytes);
  void copied(uint64_t to, uint64_t from, size_t bytes);

  /// A kernel starts; the mark of what it writes (contents.h).
  void begin_launch();
  uint8_t launch() const { return launch_; }

  /// Where `address` lies, for a report: "0x… is 4 bytes past the end of the allocation of 400 bytes at 0x…".
  std::string describe(uint64_t address) const;

  /// The variables of a loaded PTX module (`.global` and `.const`), by the module's address and the PTX name.
  void define_variable(const void* module, const std::string& name, uint64_t address) {
    variables_[{module, name}] = address;
  }
  /// 0 where the module has no such variable.
  uint64_t variable(const void* module, const std::string& name) const;

  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }

 private:
  struct Block {
    Allocation allocation;
    std::unique_ptr<std::byte[]> bytes;  ///< null: the host's
    bool keeps_address = false;
  };

  struct Freed {
    uint64_t base;
    size_t bytes;
    std::unique_ptr<std::byte[]> memory;
  };
  void keep_freed(Freed freed);
  const Freed* find_freed(uint64_t address) const;

  size_t capacity_;
  size_t used_ = 0;
  std::deque<Freed> freed_;  ///< the last ones
  size_t freed_small_ = 0;   ///< bytes of those whose pages stay in memory
  uint8_t launch_ = Contents::first_launch;
  std::map<uint64_t, Block> blocks_;  ///< by base
  std::map<uint64_t, Block> parked_;
  std::map<std::pair<const void*, std::string>, uint64_t> variables_;
};

}  // namespace sim
