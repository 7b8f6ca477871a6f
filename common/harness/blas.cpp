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

BlasLt::BlasLt(const Operands& operands, float alpha, float beta, cudaStream_t stream, const LtChoice* known)
    : workspace_(workspace_bytes) {
  const Problem p = operands.problem(0, alpha, beta, stream);
  cublas_check(cublasLtCreate(&handle_));
  cublas_check(cublasLtMatmulDescCreate(&matmul_, blas_compute_type(p.type), CUDA_R_32F));
  const cublasOperation_t transpose_a = blas_operation(p.layout_a), transpose_b = blas_operation(p.layout_b);
  cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_b, sizeof transpose_b));
  cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_TRANSB, &transpose_a, sizeof transpose_a));
  if (p.type == Type::e4m3) {
    const int8_t fast = 1;
    cublas_check(cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
  }
  // Column-major views; B is the first operand, as in Blas::run.
  const OperandSpec& spec = operands.spec();
  cublas_check(cublasLtMatrixLayoutCreate(&b_, facts(p.type).cuda, spec.columns_b(), spec.rows_b(), p.ldb));
  cublas_check(cublasLtMatrixLayoutCreate(&a_, facts(p.type).cuda, spec.columns_a(), spec.rows_a(), p.lda));
  cublas_check(cublasLtMatrixLayoutCreate(&c_, blas_result_type(p.type, p.out), p.n, p.m, p.ldc));

  choice_ = known ? *known : fastest(p);
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
  cublas_check(cublasLtMatmul(handle_, matmul_, &p.alpha, p.b, b_, p.a, a_, &p.beta, p.c, c_, p.c, c_, &algorithm,
                              workspace_.as<void>(), workspace_bytes, p.stream));
}

}  // namespace ladder
