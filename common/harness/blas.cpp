#include "common/harness/blas.h"

#include <stdexcept>
#include <vector>

#include "common/harness/error.h"
#include "common/harness/timing/fastest.h"
#include "common/rung.h"

namespace ladder {
namespace {

constexpr size_t workspace_bytes = 64 << 20;

}  // namespace

cudaDataType_t blas_type(Type type) { return facts(type).cuda; }

cudaDataType_t blas_result_type(Type type, Out out) { return out == Out::f32 ? CUDA_R_32F : facts(type).cuda_result; }

cublasComputeType_t blas_compute_type(Type type) {
  switch (facts(type).arithmetic) {
    case Arithmetic::fp32:
      return CUBLAS_COMPUTE_32F;
    case Arithmetic::fp32_only:
      return CUBLAS_COMPUTE_32F_PEDANTIC;
    case Arithmetic::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
  }
  throw std::logic_error("no such arithmetic");
}

/// Of A and B: pairs that cuBLASLt has on Hopper, mx and nv, which it has from sm_100 on. Its heuristics may abort the process when asked for others.
struct ScaleModes {
  cublasLtMatmulMatrixScale_t a, b;
};
ScaleModes scale_modes(Scales scales) {
  switch (scales) {
    case Scales::none:
    case Scales::tensor:
      return {CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F};
    case Scales::rows:
      return {CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F};
    case Scales::blocks:
      return {CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};
    case Scales::mx:
      return {CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0};
    case Scales::nv:
      return {CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3};
  }
  throw std::logic_error("no such scales");
}

/// Does it have such a product at all? Asked before its heuristics are.
bool lt_has(const Problem& p) {
  if (p.scales == Scales::mx) return p.type == Type::e4m3 && device_limits().sm >= 100 && p.k % 32 == 0;
  if (p.type == Type::e2m1) return p.scales == Scales::nv && device_limits().sm >= 100 && p.k % 32 == 0;
  if (p.type == Type::e5m2) return p.scales == Scales::none || p.scales == Scales::tensor;
  return p.scales == Scales::none || (p.type == Type::e4m3 && (p.scales != Scales::blocks || p.m % 4 == 0));
}

/// Of cuBLAS, to which rows are columns.
cublasOperation_t blas_operation(MatrixLayout layout) {
  return layout == MatrixLayout::row_major ? CUBLAS_OP_N : CUBLAS_OP_T;
}

Blas::Blas() { cublas_check(cublasCreate(&handle_)); }
Blas::~Blas() { cublasDestroy(handle_); }

void Blas::gemm(const Problem& p) const { run(p, blas_compute_type(p.type)); }
void Blas::reference(const Problem& p) const { run(p, CUBLAS_COMPUTE_32F_PEDANTIC); }

void Blas::run(const Problem& p, cublasComputeType_t compute) const {
  cublas_check(cublasSetStream(handle_, p.stream));
  cublas_check(cublasGemmEx(handle_, blas_operation(p.layout_b), blas_operation(p.layout_a), p.n, p.m, p.k, &p.alpha,
                            p.b, facts(p.type).cuda, p.ldb, p.a, facts(p.type).cuda, p.lda, &p.beta, p.c,
                            blas_result_type(p.type, p.out), p.ldc, compute, CUBLAS_GEMM_DEFAULT));
}

bool BlasLt::fuses(const Problem& p) {
  const Epilogue& asked = p.epilogue;
  return (asked.bias || asked.activation == Activation::gelu) && asked.activation != Activation::silu && !asked.gate &&
         !asked.quantise && (p.beta == 0.0F || asked.activation == Activation::none);
}

BlasLt::BlasLt(const Problem& p, const OperandSpec& spec, const LtChoice* known) : workspace_(workspace_bytes) {
  cublas_check(cublasLtCreate(&handle_));
  cublas_check(cublasLtMatmulDescCreate(&matmul_, blas_compute_type(p.type), CUDA_R_32F));
  const cublasOperation_t transpose_a = blas_operation(p.layout_a), transpose_b = blas_operation(p.layout_b);
  cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_b, sizeof transpose_b));
  cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_TRANSB, &transpose_a, sizeof transpose_a));
  if (!Blas::has(p.type)) {
    const int8_t fast = p.scales != Scales::blocks;
    cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
  }
  if (fuses(p)) {  // a bias for each row of D'
    const cublasLtEpilogue_t epilogue = p.epilogue.activation == Activation::none ? CUBLASLT_EPILOGUE_BIAS
                                        : p.epilogue.bias                         ? CUBLASLT_EPILOGUE_GELU_BIAS
                                                                                  : CUBLASLT_EPILOGUE_GELU;
    cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (p.epilogue.bias)
      cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias, sizeof p.bias));
  }
  // B is the first operand, as in Blas::run.
  const ScaleModes modes = scale_modes(p.scales);
  cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &modes.b, sizeof modes.b));
  cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &modes.a, sizeof modes.a));
  set_scales(p);
  // Column-major views.
  cublas_check(cublasLtMatrixLayoutCreate(&b_, facts(of_b(p.type)).cuda, spec.columns_b(), spec.rows_b(), p.ldb));
  cublas_check(cublasLtMatrixLayoutCreate(&a_, facts(p.type).cuda, spec.columns_a(), spec.rows_a(), p.lda));
  cublas_check(cublasLtMatrixLayoutCreate(&c_, blas_result_type(p.type, p.out), p.n, p.m, p.ldc));

  choice_ = known ? *known : lt_has(p) ? fastest(p) : LtChoice();
}

/// Those of this set of operands: the descriptor, which cublasLtMatmul reads before it returns, points to them.
void BlasLt::set_scales(const Problem& p) const {
  if (p.scales == Scales::none) return;
  cublas_check(
      cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p.scale_b, sizeof p.scale_b));
  cublas_check(
      cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p.scale_a, sizeof p.scale_a));
}

LtChoice BlasLt::fastest(const Problem& p) const {
  cublasLtMatmulPreference_t preference;
  cublas_check(cublasLtMatmulPreferenceCreate(&preference));
  cublas_check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes));
  std::vector<cublasLtMatmulHeuristicResult_t> offers(64);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, matmul_, b_, a_, c_, c_, preference,
                                                               static_cast<int>(offers.size()), offers.data(), &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS) found = 0;  // no algorithm for this shape: not available()

  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (offers[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(offers[i].algo);
  const auto best = ladder::fastest(
      algorithms.size(), [&](size_t i) { run(p, algorithms[i]); }, p.stream);
  return best ? LtChoice({algorithms.front(), algorithms[*best]}) : LtChoice();
}

BlasLt::~BlasLt() {
  cublasLtMatrixLayoutDestroy(a_);
  cublasLtMatrixLayoutDestroy(b_);
  cublasLtMatrixLayoutDestroy(c_);
  cublasLtMatmulDescDestroy(matmul_);
  cublasLtDestroy(handle_);
}

void BlasLt::run(const Problem& p, const cublasLtMatmulAlgo_t& algorithm) const {
  set_scales(p);
  cublas_check(cublasLtMatmul(handle_, matmul_, &p.alpha, p.b, b_, p.a, a_, &p.beta, p.c, c_, p.c, c_, &algorithm,
                              workspace_.as<void>(), workspace_bytes, p.stream));
}

}  // namespace ladder
