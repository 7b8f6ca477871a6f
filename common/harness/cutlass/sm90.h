// CUTLASS's GEMMs of version 3, from its collective builder: TMA, wgmma, specialised warps, clusters, persistent blocks.
#pragma once

#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "common/harness/cutlass/gemm.h"

namespace ladder {

/// D = alpha * A * B + beta * C.
struct Unscaled {
  using LayoutA = cutlass::layout::RowMajor;
  using LayoutB = cutlass::layout::ColumnMajor;
  template <class TC>
  using Fusion = cutlass::epilogue::fusion::LinearCombination<TC, float>;
  static bool takes(Scales scales) { return scales == Scales::none; }
  template <class Arguments>
  static void set(Arguments& arguments, const Problem& p) {
    arguments.epilogue.thread.alpha = p.alpha;
    arguments.epilogue.thread.beta = p.beta;
  }
};

/// What a schedule of CUTLASS's is made of, and the tile that suits it; K tiles of 128 bytes.
struct Cooperative : Unscaled {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
  static constexpr int M = 128, N = 256;
  static constexpr const char* NAME = "cooperative";
};
struct Pingpong : Unscaled {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
  static constexpr int M = 128, N = 128;
  static constexpr const char* NAME = "pingpong";
};

template <Type type, Out out, class Schedule, int SWIZZLE>
struct Sm90Form {
  static constexpr Type TYPE = type;
  static constexpr Out OUT = out;
  static constexpr MatrixLayout LAYOUT_B = MatrixLayout::col_major;
  static constexpr const char* ARCH = "sm_90a";
  static constexpr int K = 128 / Operand<type>::BYTES;

  using T = typename CutlassElement<type>::T;
  using TC = CutlassResult<type, out>;
  using Row = cutlass::layout::RowMajor;
  using Tile = cute::Shape<cute::Int<Schedule::M>, cute::Int<Schedule::N>, cute::Int<K>>;
  using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;
  static constexpr int ALIGNMENT = 16 / sizeof(T), ALIGNMENT_C = 16 / sizeof(TC);

  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, TC, Row, ALIGNMENT_C, TC, Row, ALIGNMENT_C,
      typename Schedule::Epilogue, typename Schedule::template Fusion<TC>>::CollectiveOp;
  static constexpr int EPILOGUE_BYTES = static_cast<int>(sizeof(typename Epilogue::SharedStorage));
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, T, typename Schedule::LayoutA, ALIGNMENT, T,
      typename Schedule::LayoutB, ALIGNMENT, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<EPILOGUE_BYTES>, typename Schedule::Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static bool takes(Scales scales) { return Schedule::takes(scales); }

  static typename Gemm::Arguments arguments(const Problem& p) {
    static const int sms = [] {
      int device = 0;
      cudaGetDevice(&device);
      return cutlass::KernelHardwareInfo::query_device_multiprocessor_count(device);
    }();
    typename Gemm::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {p.m, p.n, p.k, 1};
    arguments.mainloop.ptr_A = static_cast<const T*>(p.a);
    arguments.mainloop.dA = {p.lda, cute::_1{}, 0};
    arguments.mainloop.ptr_B = static_cast<const T*>(p.b);
    arguments.mainloop.dB = {p.ldb, cute::_1{}, 0};
    Schedule::set(arguments, p);
    arguments.epilogue.ptr_C = arguments.epilogue.ptr_D = static_cast<TC*>(p.c);
    arguments.epilogue.dC = arguments.epilogue.dD = {p.ldc, cute::_1{}, 0};
    arguments.hw_info.sm_count = sms;
    arguments.scheduler.max_swizzle_size = SWIZZLE;
    return arguments;
  }

  static CutlassKernel kernel() {
    return cutlass_kernel<Sm90Form>(std::string("sm90 ") + Schedule::NAME + " " + std::to_string(Schedule::M) + "x" +
                                    std::to_string(Schedule::N) + "x" + std::to_string(K) + ", cluster 2x1, swizzle " +
                                    std::to_string(SWIZZLE));
  }
};

/// Both orders of tiles, for results in FP32 and in the type of the operands.
template <Type type, class... Schedules>
std::vector<CutlassKernel> cutlass_wgmma() {
  std::vector<CutlassKernel> kernels;
  const auto add = [&]<Out out, class Schedule>() {
    kernels.push_back(Sm90Form<type, out, Schedule, 1>::kernel());
    kernels.push_back(Sm90Form<type, out, Schedule, 8>::kernel());
  };
  (add.template operator()<Out::f32, Schedules>(), ...);
  (add.template operator()<Out::same, Schedules>(), ...);
  return kernels;
}

}  // namespace ladder
