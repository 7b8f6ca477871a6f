// CUTLASS's GEMMs of FP8. Without scales, and with one per tensor, sums are FP22; with scales of blocks they are promoted after each block.
#include "common/harness/cutlass/sm90.h"
#include "common/scales.h"

namespace ladder {
namespace {

namespace fusion = cutlass::epilogue::fusion;

/// D = (alpha * scale of A * scale of B) * A * B + beta * C.
struct Scaled : Unscaled {
  template <int SCALARS>
  using Scalar = fusion::Sm90ScalarBroadcast<float, cute::Stride<cute::_0, cute::_0, cute::_0>, SCALARS>;
  template <template <class> class Operation, class Result>
  using Compute = fusion::Sm90Compute<Operation, Result, float, cutlass::FloatRoundStyle::round_to_nearest>;
  template <class TC>
  using Fusion = fusion::Sm90EVT<Compute<cutlass::homogeneous_multiply_add, TC>, Scalar<1>, fusion::Sm90SrcFetch<TC>,
                                 fusion::Sm90EVT<Compute<cutlass::multiplies, float>, Scalar<3>, fusion::Sm90AccFetch>>;
  static bool takes(Scales scales) { return scales == Scales::none || scales == Scales::tensor; }
  template <class Arguments>
  static void set(Arguments& arguments, const Problem& p) {
    const bool scaled = p.scales == Scales::tensor;
    arguments.epilogue.thread = {
        {{p.beta}, {}, {}},
        {},
        {{{p.alpha, 1.0F, 1.0F}, {nullptr, scaled ? p.scale_a : nullptr, scaled ? p.scale_b : nullptr}, {}}, {}, {}},
        {}};
  }
};

struct ScaledCooperative : Scaled {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8FastAccum;
  using Epilogue = Cooperative::Epilogue;
  static constexpr int M = 128, N = 256;
  static constexpr const char* NAME = "cooperative";
};
struct ScaledPingpong : Scaled {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum;
  using Epilogue = Pingpong::Epilogue;
  static constexpr int M = 64, N = 256;
  static constexpr const char* NAME = "pingpong";
};

/// The scales of scales.h, of which CUTLASS has no leading dimension: their padding counts as rows of A, and as blocks along k.
struct ScaledBlocks : Scaled {
  using Scaling = cutlass::detail::Sm90BlockwiseScaleConfig<1, SCALE_BLOCK, SCALE_BLOCK, cute::GMMA::Major::MN,
                                                            cute::GMMA::Major::K>;
  using LayoutA = cute::tuple<cutlass::layout::RowMajor, Scaling::LayoutSFA>;
  using LayoutB = cute::tuple<cutlass::layout::ColumnMajor, Scaling::LayoutSFB>;
  static bool takes(Scales scales) { return scales == Scales::blocks; }
  template <class Arguments>
  static void set(Arguments& arguments, const Problem& p) {
    Scaled::set(arguments, p);
    const auto padded = cute::make_shape(scale_ld_a(p.m), p.n, scale_ld_b(p.k) * SCALE_BLOCK, 1);
    arguments.mainloop.ptr_SFA = p.scale_a, arguments.mainloop.layout_SFA = Scaling::tile_atom_to_shape_SFA(padded);
    arguments.mainloop.ptr_SFB = p.scale_b, arguments.mainloop.layout_SFB = Scaling::tile_atom_to_shape_SFB(padded);
  }
};

struct BlocksCooperative : ScaledBlocks {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8BlockScaledAccum;
  using Epilogue = Cooperative::Epilogue;
  static constexpr int M = 128, N = 128;
  static constexpr const char* NAME = "cooperative, scales of blocks,";
};
struct BlocksPingpong : ScaledBlocks {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpongFP8BlockScaledAccum;
  using Epilogue = Pingpong::Epilogue;
  static constexpr int M = 64, N = 128;
  static constexpr const char* NAME = "pingpong, scales of blocks,";
};

}  // namespace

std::vector<CutlassKernel> cutlass_wgmma_e4m3() {
  return cutlass_wgmma<Type::e4m3, ScaledCooperative, ScaledPingpong, BlocksCooperative, BlocksPingpong>();
}

}  // namespace ladder
