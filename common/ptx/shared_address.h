// Addresses in the shared state space, as instructions that name `.shared` take them.
#pragma once

#include <cstdint>

namespace ladder {

/// Byte address of `p`, which points into shared memory, within the block's shared memory (PTX ISA, cvta).
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

}  // namespace ladder
