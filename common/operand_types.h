// What the rungs on tensor cores do with operands and results, so that one
// kernel text serves every type: TF32, BF16 and FP16 differ in the bytes of an
// element and in the instruction that multiplies, and in nothing else.
// Everything else counts bytes: 16 per copy, 32 along k per mma. The types
// themselves are in common/types.h.
#pragma once

#include <limits>
#include <string>

#include "common/rung.h"
#include "common/types.h"

namespace ladder {

/// Calls `f.operator()<type, C>()` with the problem's operand type and the
/// element type of its result, and returns what it returns. Throws
/// std::invalid_argument where the type is none of the rungs on mma.sync.
template <class F>
auto for_types(const Problem& p, F&& f) {
  return visit(MmaSyncTypes{}, p.type, p.out, f);
}

/// Rung::refuses of a rung on mma.sync for a set of types: those that the tensor cores
/// of an older GPU do not multiply, and rows whose bytes along k an int cannot count.
template <class Set>
std::string refuses_mma_sync_of(const Problem& p) {
  return visit(Set{}, p.type, [&]<Type type>() -> std::string {
    const std::string name = Operand<type>::NAME;
    const int sm = device_limits().sm, most_k = std::numeric_limits<int>::max() / Operand<type>::BYTES - 128;
    if (sm < Operand<type>::SM)
      return name + " needs sm_" + std::to_string(Operand<type>::SM) + ", this is sm_" + std::to_string(sm);
    if (p.k > most_k)
      return "counts bytes along k in an int: in " + name + " K may be at most " + std::to_string(most_k);
    return "";
  });
}
inline std::string refuses_mma_sync(const Problem& p) { return refuses_mma_sync_of<MmaSyncTypes>(p); }

/// 16 bytes of neighbouring elements of C: one load or store.
template <class TC>
union Vector {
  static constexpr int SIZE = 16 / sizeof(TC);
  uint4 bits;
  TC element[SIZE];
};

/// Two neighbouring elements of C with one instruction; `p` is a multiple of
/// their size.
inline __device__ void store2(float* p, const float (&x)[2]) { *reinterpret_cast<float2*>(p) = {x[0], x[1]}; }
inline __device__ void store2(__nv_bfloat16* p, const float (&x)[2]) {
  *reinterpret_cast<__nv_bfloat162*>(p) = __floats2bfloat162_rn(x[0], x[1]);
}
inline __device__ void store2(__half* p, const float (&x)[2]) {
  *reinterpret_cast<__half2*>(p) = __floats2half2_rn(x[0], x[1]);
}

}  // namespace ladder
