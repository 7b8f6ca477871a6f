// Tensor cores of the fifth generation (tcgen05): sm_100a, PTX ISA 8.6, "TensorCore 5th Generation Family Instructions". One thread
// multiplies a tile of A by a tile of B, both in shared memory, into tensor memory: 128 lanes of 512 columns of 32 bits per SM. An address
// there has the lane in bits 16 to 31 and the column in bits 0 to 15. All is asynchronous: products are there when the mbarrier of a
// tcgen05_commit() has completed its phase, loaded registers after tcgen05_wait_ld().
#pragma once

#include <cstdint>

namespace ladder {

/// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], columns;
/// One warp, converged: `columns` of tensor memory, all lanes; a power of 2 from 32 to 512. The address of the first goes to `smem`. Waits
/// until other blocks of the SM have freed as many.
__device__ __forceinline__ void tcgen05_alloc(uint32_t smem, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem), "r"(columns)
               : "memory");
}

/// tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
/// One warp, converged: this block allocates no more, so another one of the SM may.
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

/// tcgen05.dealloc.cta_group::1.sync.aligned.b32 address, columns;
/// One warp, converged: frees what tcgen05_alloc() gave. Before the block ends, and when nobody uses it any more.
__device__ __forceinline__ void tcgen05_dealloc(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

/// tcgen05.mma.cta_group::1.kind::f16 [d], a, b, instruction, accumulate;
/// One thread: D (128 x N, FP32) = A (128 x 16) * B (16 x N), or += where `accumulate`; FP16 or BF16, as the instruction descriptor says. A
/// and B by descriptors of tiles in shared memory, D at the tensor-memory address `d`. tcgen05.mma of one thread run in its order.
__device__ __forceinline__ void tcgen05_mma_f16(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// tcgen05.mma.cta_group::1.kind::tf32 [d], a, b, instruction, accumulate;
/// The same for TF32: A (128 x 8), B (8 x N).
__device__ __forceinline__ void tcgen05_mma_tf32(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                 bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [barrier];
/// One thread: an arrival at `barrier` when all tcgen05.mma that this thread has issued are complete. They have then read their tiles of A
/// and B, and D is in tensor memory.
__device__ __forceinline__ void tcgen05_commit(uint32_t barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}

/// tcgen05.fence::before_thread_sync; and tcgen05.fence::after_thread_sync;
/// One thread: orders its earlier tcgen05 instructions before the arrival or barrier that follows; and its later ones after the wait or
/// barrier that came before.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// tcgen05.ld.sync.aligned.32x32b.x8.b32 {x[0], …, x[7]}, [address];
/// One warp, converged: 32 lanes of tensor memory and 8 columns. Thread t of the warp gets lane t of them. Warp w of a block reaches lanes
/// 32 (w mod 4) to 32 (w mod 4) + 31 alone: `address` has the first of them.
__device__ __forceinline__ void tcgen05_ld_32x32b_x8(float (&x)[8], uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]), "=f"(x[4]), "=f"(x[5]), "=f"(x[6]), "=f"(x[7])
               : "r"(address));
}

/// tcgen05.ld.sync.aligned.32x32b.x32.b32 {x[0], …, x[31]}, [address];
/// The same for 32 columns.
__device__ __forceinline__ void tcgen05_ld_32x32b_x32(float* x, uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]), "=f"(x[4]), "=f"(x[5]), "=f"(x[6]), "=f"(x[7]), "=f"(x[8]),
        "=f"(x[9]), "=f"(x[10]), "=f"(x[11]), "=f"(x[12]), "=f"(x[13]), "=f"(x[14]), "=f"(x[15]), "=f"(x[16]),
        "=f"(x[17]), "=f"(x[18]), "=f"(x[19]), "=f"(x[20]), "=f"(x[21]), "=f"(x[22]), "=f"(x[23]), "=f"(x[24]),
        "=f"(x[25]), "=f"(x[26]), "=f"(x[27]), "=f"(x[28]), "=f"(x[29]), "=f"(x[30]), "=f"(x[31])
      : "r"(address));
}

/// tcgen05.wait::ld.sync.aligned;
/// One warp, converged: waits for its tcgen05.ld, which have loaded `x`. The compiler does not use x before.
template <int COUNT>
__device__ __forceinline__ void tcgen05_wait_ld(float (&x)[COUNT]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (float& each : x) asm volatile("" : "+f"(each));
}

// Of two blocks: a cluster's blocks of ranks 2 i and 2 i + 1 are a pair, of which each has half of A, of B and of D. Where a kernel has one
// of these, all of its tcgen05 instructions that name a cta_group have this one.

/// tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [smem], columns;
/// A warp of each block of the pair, converged: `columns` in both.
__device__ __forceinline__ void tcgen05_alloc_cta_group_2(uint32_t smem, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem), "r"(columns)
               : "memory");
}

/// tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit_cta_group_2() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}

/// tcgen05.dealloc.cta_group::2.sync.aligned.b32 address, columns;
/// A warp of each block of the pair, converged.
__device__ __forceinline__ void tcgen05_dealloc_cta_group_2(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

/// tcgen05.mma.cta_group::2.kind::f16 [d], a, b, instruction, accumulate;
/// One thread of the block with the even rank: D (256 x N) = A (256 x 16) * B (16 x N), or +=. Each block has, at the same offsets of its
/// shared memory, 128 rows of A and half of B's columns, and in its tensor memory 128 rows of D.
__device__ __forceinline__ void tcgen05_mma_f16_cta_group_2(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                            bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// tcgen05.mma.cta_group::2.kind::tf32 [d], a, b, instruction, accumulate;
/// The same for TF32: A (256 x 8), B (8 x N).
__device__ __forceinline__ void tcgen05_mma_tf32_cta_group_2(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                             bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::2.kind::tf32 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [barrier], blocks;
/// As tcgen05_commit(), with an arrival in each block of the cluster whose bit is set in `blocks`, at the offset of `barrier`.
__device__ __forceinline__ void tcgen05_commit_multicast_cta_group_2(uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
          barrier),
      "h"(blocks)
      : "memory");
}

}  // namespace ladder
