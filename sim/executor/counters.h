// What a kernel did, by source line and in total. The counts depend on the program and its input alone.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "executor/program.h"

namespace sim {

/// tcgen05.mma's, as MmaKind has them.
constexpr std::array mma_kind_names = {"f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"};
constexpr size_t mma_kinds = mma_kind_names.size();

struct Counts {
  std::array<uint64_t, classes> instructions{};        ///< warp instructions of each class
  std::array<uint64_t, classes> lanes{};               ///< thread instructions of each class
  std::array<uint64_t, 4> flops{};                     ///< FP32, FP64, FP16 and BF16, tensor cores; an FMA is two
  uint64_t global_loads = 0, global_load_sectors = 0;  ///< requests (warp instructions) and 32-byte sectors of each
  uint64_t global_stores = 0, global_store_sectors = 0;
  uint64_t global_load_bytes = 0, global_store_bytes = 0;  ///< that the lanes asked for
  uint64_t shared_loads = 0, shared_stores = 0;            ///< warp instructions
  uint64_t shared_load_wavefronts = 0, shared_store_wavefronts = 0;
  uint64_t shared_load_ideal = 0, shared_store_ideal = 0;  ///< the fewest wavefronts for as many bytes
  uint64_t shared_load_bytes = 0, shared_store_bytes = 0;
  uint64_t barriers = 0;                  ///< warps that arrived at a block's barrier
  std::array<uint64_t, mma_kinds> mma{};  ///< tcgen05.mma of each kind
  uint64_t mma_shared_bytes = 0;          ///< of A and B that they read there; of a pair, in both blocks
  uint64_t tensor_copy_bytes = 0;         ///< of shared memory that tcgen05.cp reads
  uint64_t tensor_load_bytes = 0,
           tensor_store_bytes = 0;  ///< that tcgen05.ld and tcgen05.st move to registers and from them

  uint64_t wavefronts() const { return shared_load_wavefronts + shared_store_wavefronts; }
  uint64_t ideal_wavefronts() const { return shared_load_ideal + shared_store_ideal; }
  uint64_t warp_instructions() const {
    uint64_t sum = 0;
    for (const uint64_t n : instructions) sum += n;
    return sum;
  }

  Counts& operator+=(const Counts& other);
};

struct Counters {
  Counts total;
  std::map<std::pair<std::string, uint32_t>, Counts> lines;  ///< by file and line
  uint64_t launches = 0, blocks = 0;

  Counters& operator+=(const Counters& other);
};

}  // namespace sim
