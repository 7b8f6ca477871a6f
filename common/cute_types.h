// What 19 and 20 take from CUTLASS, one table: the element types that CuTe knows, and the mma atom of each type of operands. Where
// CUTLASS's headers are not on the include path, the macro LADDER_HAS_CUTE is 0 and the two rungs refuse every problem.
#pragma once

#include "common/rung.h"
#include "common/types.h"

#if __has_include(<cute/tensor.hpp>)
#define LADDER_HAS_CUTE 1

#include <cute/tensor.hpp>

namespace ladder {

/// A row: the Element as CuTe has it, the mma atom, and the type of its sums.
template <Type type>
struct CuteOperand;

template <>
struct CuteOperand<Type::bf16> {
  using Element = cute::bfloat16_t;
  using Sum = float;
  using Mma = cute::SM80_16x8x16_F32BF16BF16F32_TN;
};

template <>
struct CuteOperand<Type::f16> {
  using Element = cute::half_t;
  using Sum = cute::half_t;
  using Mma = cute::SM80_16x8x16_F16F16F16F16_TN;
};

using CuteTypes = Types<Type::bf16, Type::f16>;

/// Calls `f.operator()<type, TC>()` with the problem's operand type and CuTe's name for the element type of its result.
template <class F>
auto for_cute_types(const Problem& p, F&& f) {
  return visit(CuteTypes{}, p.type, [&]<Type type>() {
    return p.out == Out::f32 ? f.template operator()<type, float>()
                             : f.template operator()<type, typename CuteOperand<type>::Element>();
  });
}

/// Rung::refuses of the two rungs: they take every problem.
constexpr auto refuses_without_cute = accepts_all;

}  // namespace ladder

#else
#define LADDER_HAS_CUTE 0

namespace ladder {

/// What the two rungs register without CUTLASS: they are listed, and refuse every problem.
inline std::string refuses_without_cute(const Problem&) {
  return "needs CUTLASS's headers, which this build did not find: rm -rf .deps/cutlass and run again with a network, "
         "or "
         "LADDER_CUTLASS=DIR cmake --preset default with DIR/include/cute/tensor.hpp";
}
inline Resources resources_without_cute(const Problem&) { return {nullptr, 32, 0, {1, 1, 1}}; }
inline void launch_without_cute(const Problem&) {}

}  // namespace ladder
#endif
