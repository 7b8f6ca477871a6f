#include "executor/wgmma.h"

namespace sim {

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start(uint32_t(bits & 0x3fff) << 4),
      leading(uint32_t(bits >> 16 & 0x3fff) << 4),
      stride(uint32_t(bits >> 32 & 0x3fff) << 4),
      base_offset(uint32_t(bits >> 49 & 7)) {
  constexpr uint32_t spans[] = {0, 128, 64, 32};
  swizzle = spans[bits >> 62];
}

}  // namespace sim
