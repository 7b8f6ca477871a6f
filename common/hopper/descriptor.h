// Matrix descriptors: how wgmma is told where a tile lies in shared memory. 22 writes the function out; the rungs after it take it
// from here.
#pragma once

#include <cstdint>

#include "common/layout.h"

namespace ladder {

/// A tile in shared memory, for wgmma: rows of 128 bytes, swizzled, at a multiple of 1024. The rows lie along k; or, from 39 on, across it,
/// with 64 rows of 128 bytes in a box. `leading`, in bytes: from box to box along m or n.
///   bits  0-13  address / 16
///        16-29  leading dimension byte offset / 16: unused where rows lie along k
///        32-45  stride dimension byte offset / 16: from 8 rows to the next 8
///        62-63  swizzle mode: 1 is that of 128 bytes
constexpr LADDER_HOST_DEVICE uint64_t descriptor(uint32_t tile, uint32_t leading = 16) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

}  // namespace ladder
