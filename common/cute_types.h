// What 19 and 20 take from CUTLASS, one table: the element types that CuTe knows, and the mma atom of each type of operands. Where
// CUTLASS's headers are not on the include path, the macro LADDER_HAS_CUTE is 0 and the two rungs refuse every problem.
#pragma once

#include "common/operand_types.h"
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

/// Eight rows of 128 bytes, 64 elements of 16 bits each, as 20 swizzles them. bench/cute_maps.cpp draws it; 20 writes it out.
using Swizzled128 = decltype(cute::composition(
    cute::Swizzle<3, 3, 3>{}, cute::Layout<cute::Shape<cute::_8, cute::_64>, cute::Stride<cute::_64, cute::_1>>{}));

/// WARPS_M x WARPS_N warps with an atom each, twice along n, so that ldmatrix has 16 columns of B. Likewise.
template <Type type, int WARPS_M, int WARPS_N>
using CuteMma =
    decltype(cute::make_tiled_mma(cute::MMA_Atom<typename CuteOperand<type>::Mma>{},
                                  cute::Layout<cute::Shape<cute::Int<WARPS_M>, cute::Int<WARPS_N>, cute::_1>>{},
                                  cute::Tile<cute::Int<WARPS_M * 16>, cute::Int<WARPS_N * 16>, cute::_16>{}));

/// The TiledCopy of 20 for a tile of 64 elements along k: 256 threads copy 32 rows of 8 chunks of 16 bytes at once. Likewise.
template <class T>
using CuteCopy =
    decltype(cute::make_tiled_copy(cute::Copy_Atom<cute::SM80_CP_ASYNC_CACHEGLOBAL<cute::uint128_t>, T>{},
                                   cute::Layout<cute::Shape<cute::_32, cute::_8>, cute::Stride<cute::_8, cute::_1>>{},
                                   cute::Layout<cute::Shape<cute::_1, cute::_8>>{}));

/// Rung::refuses of the two rungs.
constexpr auto refuses_cute = refuses_mma_sync;

using CuteTypes = Types<Type::bf16, Type::f16>;

/// Calls `f.operator()<type, TC>()` with the problem's operand type and CuTe's name for the element type of its result.
template <class F>
auto for_cute_types(const Problem& p, F&& f) {
  return visit(CuteTypes{}, p.type, [&]<Type type>() {
    return p.out == Out::f32 ? f.template operator()<type, float>()
                             : f.template operator()<type, typename CuteOperand<type>::Element>();
  });
}

}  // namespace ladder

#else
#define LADDER_HAS_CUTE 0

namespace ladder {

/// What the two rungs register without CUTLASS: they are listed, and refuse every problem.
inline std::string refuses_cute(const Problem&) {
  return "needs CUTLASS's headers, which this build did not find: rm -rf .deps/cutlass and run again with a network, "
         "or "
         "LADDER_CUTLASS=DIR cmake --preset default with DIR/include/cute/tensor.hpp";
}
inline Resources resources_without_cute(const Problem&) { return {nullptr, 32, 0, {1, 1, 1}}; }
inline void launch_without_cute(const Problem&) {}

}  // namespace ladder
#endif
