// A CutlassKernel from one of CUTLASS's device-level GEMMs, of version 2 or 3 of its interface.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/numeric_types.h>

#include <stdexcept>
#include <type_traits>

#include "common/harness/cutlass/kernels.h"
#include "common/types.h"

namespace ladder {

/// An operand's element as CUTLASS has it, and a result's with Out::same.
template <Type type>
struct CutlassElement {
  using T = typename Operand<type>::Element;
  using Result = float;
};
template <>
struct CutlassElement<Type::tf32> {
  using T = cutlass::tfloat32_t;
  using Result = float;
};
template <>
struct CutlassElement<Type::bf16> {
  using T = cutlass::bfloat16_t;
  using Result = T;
};
template <>
struct CutlassElement<Type::f16> {
  using T = cutlass::half_t;
  using Result = T;
};
template <>
struct CutlassElement<Type::e4m3> {
  using T = cutlass::float_e4m3_t;
  using Result = cutlass::bfloat16_t;
};
template <Type type, Out out>
using CutlassResult = std::conditional_t<out == Out::same, typename CutlassElement<type>::Result, float>;

/// Form: what a file of kernels defines.
///   Gemm       CUTLASS's class
///   TYPE, OUT  of the problem
///   LAYOUT_B
///   ARCH
///   takes      these scales of A and B
///   arguments  of a Problem, as Gemm::Arguments
template <class Form>
CutlassKernel cutlass_kernel(const std::string& name) {
  using Gemm = typename Form::Gemm;
  CutlassKernel kernel;
  kernel.name = name;
  kernel.arch = Form::ARCH;
  kernel.smem_bytes = sizeof(typename Gemm::GemmKernel::SharedStorage);
  kernel.takes = [](const Problem& p) {
    return p.type == Form::TYPE && p.out == Form::OUT && Form::takes(p.scales) &&
           p.layout_a == MatrixLayout::row_major && p.layout_b == Form::LAYOUT_B &&
           Gemm::can_implement(Form::arguments(p)) == cutlass::Status::kSuccess;
  };
  kernel.workspace_bytes = [](const Problem& p) -> size_t { return Gemm::get_workspace_size(Form::arguments(p)); };
  kernel.run = [](const Problem& p, void* workspace) {
    Gemm gemm;
    cutlass::Status status = gemm.initialize(Form::arguments(p), workspace, p.stream);
    if (status == cutlass::Status::kSuccess) status = gemm.run(p.stream);
    if (status != cutlass::Status::kSuccess)
      throw std::runtime_error(std::string("CUTLASS: ") + cutlassGetStatusString(status));
  };
  return kernel;
}

}  // namespace ladder
