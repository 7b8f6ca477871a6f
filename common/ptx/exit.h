// The end of a thread: sm_10, PTX ISA 1.0, "Control Flow Instructions: exit".
#pragma once

#include <cstdint>

namespace ladder {

/// setp.lt.s32 p, x, 0; @p exit;
/// Where `x` is never negative, this keeps instructions in order: ptxas moves no FMA past an exit, but of several with the same `x` it
/// removes all but the first.
__device__ __forceinline__ void exit_if_negative(int32_t x) {
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 0; @p exit; }" ::"r"(x) : "memory");
}

}  // namespace ladder
