// Matrix descriptors: how wgmma is told where a tile lies in shared memory. 22 writes the function out; the rungs after it take it
// from here.
#pragma once

#include <cstdint>

#include "common/layout.h"

namespace ladder {

/// A tile in shared memory, for wgmma: rows of 128 bytes along k, swizzled, at a multiple of 1024.
///   bits  0-13  address / 16
///        16-29  leading dimension byte offset / 16: unused where a row is as long as the swizzle
///        32-45  stride dimension byte offset / 16: from 8 rows to the next 8
///        62-63  swizzle mode: 1 is that of 128 bytes
constexpr LADDER_HOST_DEVICE uint64_t descriptor(uint32_t tile) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

}  // namespace ladder
