// CUTLASS's GEMMs of version 2: one block per tile of C, cp.async, mma.sync or FMAs.
#pragma once

#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_universal.h>

#include "common/harness/cutlass/gemm.h"

namespace ladder {

/// Class: cutlass::arch::OpClassTensorOp or OpClassSimt. Tile, WarpTile, Mma: results by results by k, in elements. SWIZZLE: tiles
/// of C per group of neighbouring blocks. The result has the operands' type where `out` is Out::same.
template <Type type, Out out, class Class, class Tile, class WarpTile, class Mma, int STAGES, int SWIZZLE>
struct Sm80Form {
  static constexpr Type TYPE = type;
  static constexpr Out OUT = out;
  static constexpr bool SIMT = std::is_same_v<Class, cutlass::arch::OpClassSimt>;
  static constexpr MatrixLayout LAYOUT_B = SIMT ? MatrixLayout::row_major : MatrixLayout::col_major;
  static constexpr const char* ARCH = "sm_80";

  using T = typename CutlassElement<type>::T;
  using TC = CutlassResult<type, out>;
  using Row = cutlass::layout::RowMajor;
  using Column = cutlass::layout::ColumnMajor;
  static constexpr int ALIGNMENT = SIMT ? 1 : 16 / sizeof(T), ALIGNMENT_C = SIMT ? 1 : 16 / sizeof(TC);
  using Epilogue = cutlass::epilogue::thread::LinearCombination<TC, ALIGNMENT_C, float, float>;
  using Gemm = cutlass::gemm::device::GemmUniversal<
      T, Row, T, std::conditional_t<SIMT, Row, Column>, TC, Row, float, Class, cutlass::arch::Sm80, Tile, WarpTile, Mma,
      Epilogue, cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<SWIZZLE>, STAGES, ALIGNMENT, ALIGNMENT>;

  static bool takes(Scales scales) { return scales == Scales::none; }

  static typename Gemm::Arguments arguments(const Problem& p) {
    return {cutlass::gemm::GemmUniversalMode::kGemm,
            {p.m, p.n, p.k},
            1,
            {p.alpha, p.beta},
            p.a,
            p.b,
            p.c,
            p.c,
            0,
            0,
            0,
            0,
            p.lda,
            p.ldb,
            p.ldc,
            p.ldc};
  }
};

}  // namespace ladder
