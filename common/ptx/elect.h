// One lane for a warp: sm_90, PTX ISA 8.0, "Parallel Synchronization and Communication Instructions: elect.sync", and how a warp
// knows its number. The compiler then knows that a branch is taken by one lane of one warp, and keeps what it needs in uniform
// registers; of `threadIdx.x == 0` it only knows that lanes may differ.
#pragma once

namespace ladder {

/// elect.sync _|elected, 0xffffffff;
/// Whether this lane is the elected one of its warp, always the same. All lanes must be here.
__device__ __forceinline__ bool elect_sync() {
  int elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, elected;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

/// shfl.sync.idx: the number of this warp in its block, which is the same for all lanes in the compiler's eyes, too. All lanes must
/// be here.
__device__ __forceinline__ int warp_index_sync() { return __shfl_sync(0xffffffff, threadIdx.x / 32, 0); }

}  // namespace ladder
