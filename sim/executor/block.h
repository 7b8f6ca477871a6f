// The state of a block: its warps, its shared memory, its barriers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/launch.h"
#include "executor/mbarrier.h"
#include "executor/shared_memory.h"
#include "executor/tensor_memory.h"
#include "executor/warp.h"
#include "executor/wgmma.h"

namespace sim {

/// Of a block (PTX ISA 9.7.13.1).
struct Barrier {
  uint32_t arrived = 0;   ///< warps, one bit each
  uint32_t expected = 0;  ///< warps; 0: all that live
  uint32_t waiting = 0;   ///< of the arrived, those that wait
  VectorClock clock;
  uint32_t sum = 0;  ///< of bar.red: how many predicates are true, and of how many
  uint32_t votes = 0;
};

struct Block {
  /// The block with this number among those that run interleaved.
  Block(const Program& program, const LaunchParams& launch, const Clocks& clocks, uint32_t number);

  /// Makes it block `index` of the grid.
  void start(const Program& program, Extent index);

  bool ended() const { return live_warps == 0; }

  const uint32_t number;
  const uint32_t rank;          ///< in its cluster
  const uint32_t copy_actor;    ///< of the clocks: stands for asynchronous copies into this block
  const uint32_t tensor_actor;  ///< for what tcgen05 does asynchronously; only where the program has it
  Extent index;
  std::vector<Warp> warps;
  uint32_t live_warps = 0;
  SharedMemory shared;
  std::array<Barrier, 16> barriers;
  VectorClock exited;  ///< of the warps that have exited
  Mbarriers mbarriers;
  std::vector<Warpgroup> warpgroups;
  TensorMemory tensor;
  uint32_t pair_allocations = 0;  ///< tcgen05.alloc with cta_group::2 that its warps have come to
  bool may_allocate = true;       ///< tensor memory: no warp has given up the right
  std::vector<uint8_t>
      copied_swizzle;  ///< of each 16 bytes of shared memory: 1 + the span (129: of 32-byte atoms) of the tensor copy that wrote them; 0: none
  uint32_t free_registers = 0;  ///< given up by setmaxnreg.dec: of one thread of a warp

 private:
  std::unique_ptr<std::byte[]> registers_;
  std::vector<std::byte> frames_;
};

}  // namespace sim
