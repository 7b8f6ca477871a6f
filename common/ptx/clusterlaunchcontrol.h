// Work by cluster launch control: sm_100, PTX ISA 8.6, "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol". A
// grid has a cluster per work tile. A running cluster cancels the launch of one that has not started, and does its work.
#pragma once

#include <cstdint>

namespace ladder {

/// clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [result], [barrier];
/// One thread of a cluster: asks for the launch of another cluster to be cancelled. The answer, 16 bytes, lands at the offset of `result`
/// (a multiple of 16) in each block of this cluster and counts on its mbarrier at the offset of `barrier`. After an answer that nothing was
/// cancelled, asking again is undefined.
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel_multicast(uint32_t result, uint32_t barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
      "[%0], [%1];" ::"r"(result),
      "r"(barrier)
      : "memory");
}

/// ld.shared.b128 answer, [result];
/// clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 canceled, answer;
/// clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, answer;
/// Whether a launch was cancelled; then `x` is blockIdx.x of the first block of that cluster. `result` has landed.
__device__ __forceinline__ bool clusterlaunchcontrol_query_cancel(uint32_t result, int& x) {
  uint32_t canceled;
  asm volatile(
      "{\n"
      ".reg .b128 answer;\n"
      ".reg .pred canceled;\n"
      "ld.shared.b128 answer, [%2];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 canceled, answer;\n"
      "selp.u32 %0, 1, 0, canceled;\n"
      "@canceled clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer;\n"
      "}"
      : "=r"(canceled), "+r"(x)
      : "r"(result)
      : "memory");
  return canceled != 0;
}

}  // namespace ladder
