// Asynchronous stores into the shared memory of another block of the cluster: sm_90, PTX ISA 8.1, "Data Movement and Conversion
// Instructions: st.async".
#pragma once

#include <cstdint>

namespace ladder {

/// st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [address], {x[0], x[1], x[2], x[3]}, [barrier];
/// 16 bytes to `address`, a multiple of 16, in the block of the cluster in which `barrier` lies, too; both are mapa() addresses. The
/// mbarrier counts them, as it counts bytes of TMA. Returns at once.
__device__ __forceinline__ void st_async4(uint32_t address, const float (&x)[4], uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
      "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(barrier)
      : "memory");
}

}  // namespace ladder
