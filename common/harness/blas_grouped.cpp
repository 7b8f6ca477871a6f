#include "common/harness/blas_grouped.h"

#include <algorithm>

#include "common/harness/blas.h"
#include "common/harness/error.h"
#include "common/harness/timing/fastest.h"
#include "common/rung.h"

namespace ladder {

BlasGrouped::BlasGrouped(const Operands& operands, float alpha, float beta, cudaStream_t stream,
                         const GroupedWay* known)
    : operands_(operands), first_row_(operands.spec().first_rows()) {
  for (int i = 0; i < STREAMS; ++i) {
    cublas_check(cublasCreate(&handle_[i]));
    cuda_check(cudaStreamCreateWithFlags(&stream_[i], cudaStreamNonBlocking));
    cuda_check(cudaEventCreateWithFlags(&join_[i], cudaEventDisableTiming));
  }
  cuda_check(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));

  std::vector<const void*> pointers;
  for (int set = 0; set < operands.sets(); ++set) {
    const std::vector<Problem> all = products(operands.problem(set, alpha, beta, stream), first_row_);
    for (const Problem& q : all) pointers.push_back(q.b);
    for (const Problem& q : all) pointers.push_back(q.a);
    for (const Problem& q : all) pointers.push_back(q.c);
  }
  pointers_ = DeviceBuffer(pointers.size() * sizeof(void*));
  cuda_check(cudaMemcpy(pointers_.as<void>(), pointers.data(), pointers_.bytes(), cudaMemcpyHostToDevice));

  const Problem p = operands.problem(0, alpha, beta, stream);
  has_default_ = grouped(p) == CUBLAS_STATUS_SUCCESS;
  if (known) {
    fastest_ = *known;
    return;
  }
  std::vector<GroupedWay> ways = {GroupedWay::loop, GroupedWay::streams};
  if (p.m % p.groups == 0 && operands.spec().group_rows == GroupRows::equal) ways.push_back(GroupedWay::batch);
  fastest_ = ways[ladder::fastest(
                      ways.size(), [&](size_t i) { run(p, ways[i]); }, stream)
                      .value()];
}

BlasGrouped::~BlasGrouped() {
  for (int i = 0; i < STREAMS; ++i) {
    cublasDestroy(handle_[i]);
    cudaStreamDestroy(stream_[i]);
    cudaEventDestroy(join_[i]);
  }
  cudaEventDestroy(fork_);
}

void BlasGrouped::gemm_by_default(const Problem& p) const { cublas_check(grouped(p)); }

cublasStatus_t BlasGrouped::grouped(const Problem& p) const {
#if CUBLAS_VERSION < 120500  // there is none
  return CUBLAS_STATUS_NOT_SUPPORTED;
#else
  int set = 0;
  while (operands_.problem(set, p.alpha, p.beta, p.stream).c != p.c) ++set;
  const std::vector<Problem> all = products(p, first_row_);
  const int count = static_cast<int>(all.size());
  std::vector<int> rows;
  for (const Problem& q : all) rows.push_back(q.m);
  const std::vector<cublasOperation_t> operation_a(count, blas_operation(p.layout_a)),
      operation_b(count, blas_operation(p.layout_b));
  const std::vector<int> n(count, p.n), k(count, p.k), lda(count, p.lda), ldb(count, p.ldb), ldc(count, p.ldc),
      one(count, 1);
  const std::vector<float> alpha(count, p.alpha), beta(count, p.beta);
  const void* const* const b = pointers_.as<const void*>() + static_cast<size_t>(set) * 3 * count;
  cublas_check(cublasSetStream(handle_[0], p.stream));
  return cublasGemmGroupedBatchedEx(handle_[0], operation_b.data(), operation_a.data(), n.data(), rows.data(), k.data(),
                                    alpha.data(), b, blas_type(p.type), ldb.data(), b + count, blas_type(p.type),
                                    lda.data(), beta.data(), const_cast<void* const*>(b + 2 * count),
                                    blas_result_type(p.type, p.out), ldc.data(), count, one.data(),
                                    blas_compute_type(p.type));
#endif
}

void BlasGrouped::run(const Problem& p, GroupedWay way) const {
  const std::vector<Problem> all = products(p, first_row_);
  const auto multiply = [&](const Problem& q, int i) {
    cublas_check(cublasSetStream(handle_[i], q.stream));
    cublas_check(cublasGemmEx(handle_[i], blas_operation(q.layout_b), blas_operation(q.layout_a), q.n, q.m, q.k,
                              &q.alpha, q.b, blas_type(q.type), q.ldb, q.a, blas_type(q.type), q.lda, &q.beta, q.c,
                              blas_result_type(q.type, q.out), q.ldc, blas_compute_type(q.type), CUBLAS_GEMM_DEFAULT));
  };
  switch (way) {
    case GroupedWay::loop:
      for (const Problem& q : all) multiply(q, 0);
      return;
    case GroupedWay::streams:
      cuda_check(cudaEventRecord(fork_, p.stream));
      for (int i = 0; i < STREAMS; ++i) cuda_check(cudaStreamWaitEvent(stream_[i], fork_));
      for (size_t i = 0; i < all.size(); ++i) {
        Problem q = all[i];
        q.stream = stream_[i % STREAMS];
        multiply(q, static_cast<int>(i % STREAMS));
      }
      for (int i = 0; i < STREAMS; ++i) {
        cuda_check(cudaEventRecord(join_[i], stream_[i]));
        cuda_check(cudaStreamWaitEvent(p.stream, join_[i]));
      }
      return;
    case GroupedWay::batch: {
      const Problem& q = all.front();
      const long long rows = q.m, rows_b = p.layout_b == MatrixLayout::row_major ? p.k : p.n;
      cublas_check(cublasSetStream(handle_[0], p.stream));
      cublas_check(cublasGemmStridedBatchedEx(
          handle_[0], blas_operation(p.layout_b), blas_operation(p.layout_a), p.n, q.m, p.k, &p.alpha, p.b,
          blas_type(p.type), p.ldb, rows_b * p.ldb, p.a, blas_type(p.type), p.lda,
          rows * (p.layout_a == MatrixLayout::row_major ? p.lda : 1), &p.beta, p.c, blas_result_type(p.type, p.out),
          p.ldc, rows * p.ldc, p.groups, blas_compute_type(p.type), CUBLAS_GEMM_DEFAULT));
    }
  }
}

}  // namespace ladder
