#include "common/harness/blas_grouped.h"

#include <algorithm>
#include <stdexcept>

#include "common/harness/error.h"
#include "common/harness/timing/fastest.h"
#include "common/rung.h"
#include "common/scales.h"

namespace ladder {

bool BlasGrouped::has(const OperandSpec& spec) {
  if (Blas::has(spec.type)) return true;
  const std::vector<int> first_row = spec.first_rows();
  return spec.scales == Scales::blocks && spec.shape.n % 16 == 0 && spec.shape.k % 16 == 0 &&
         std::all_of(first_row.begin(), first_row.end(), [](int row) { return row % 4 == 0; });
}

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
  if (p.type == Type::e4m3)
    prepare_lt(alpha, beta, stream);
  else
    has_default_ = grouped(p) == CUBLAS_STATUS_SUCCESS;
  if (known) {
    fastest_ = *known;
    return;
  }
  std::vector<GroupedWay> ways = {GroupedWay::loop, GroupedWay::streams};
  if (p.type != Type::e4m3 && p.m % p.groups == 0 && operands.spec().group_rows == GroupRows::equal)
    ways.push_back(GroupedWay::batch);
  fastest_ = ways[ladder::fastest(
                      ways.size(), [&](size_t i) { run(p, ways[i]); }, stream)
                      .value()];
}

/// A cuBLASLt for each number of rows on each stream, as its workspace is one product's; and the scales of A as it takes them.
void BlasGrouped::prepare_lt(float alpha, float beta, cudaStream_t stream) {
  const size_t k_blocks = ceil_div(operands_.spec().shape.k, SCALE_BLOCK), floats = k_blocks * operands_.spec().shape.m;
  scales_a_ = DeviceBuffer(operands_.sets() * floats * sizeof(float));
  for (int set = 0; set < operands_.sets(); ++set) {
    const Problem p = operands_.problem(set, alpha, beta, stream);
    for (const Problem& q : products(p, first_row_)) {
      const size_t row = q.m * sizeof(float);
      cuda_check(cudaMemcpy2D(scales_a_.as<float>() + set * floats + k_blocks * (q.scale_a - p.scale_a), row, q.scale_a,
                              scale_ld_a(p.m) * sizeof(float), row, k_blocks, cudaMemcpyDeviceToDevice));
      for (int i = 0; set == 0 && i < STREAMS; ++i) {
        if (lt_[i].contains(q.m)) continue;
        OperandSpec spec = operands_.spec();
        spec.shape.m = q.m, spec.groups = 0;
        const LtChoice* const known = i == 0 ? nullptr : &lt_[0].at(q.m)->choice();
        Problem packed = q;
        packed.scale_a = scales_a_.as<float>() + k_blocks * (q.scale_a - p.scale_a);
        lt_[i][q.m] = std::make_unique<BlasLt>(packed, spec, known);
        if (!lt_[i][q.m]->available()) throw std::runtime_error("cuBLASLt has no algorithm for " + spec.shape.str());
      }
    }
  }
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
  const int set = set_of(p);
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

int BlasGrouped::set_of(const Problem& p) const {
  int set = 0;
  while (operands_.problem(set, p.alpha, p.beta, p.stream).c != p.c) ++set;
  return set;
}

/// One product of those of `all`, on its own stream.
void BlasGrouped::multiply(const Problem& group, const Problem& all, int i) const {
  Problem q = group;
  if (q.type == Type::e4m3) {
    const size_t k_blocks = ceil_div(q.k, SCALE_BLOCK), before = static_cast<size_t>(set_of(all)) * all.m;
    q.scale_a = scales_a_.as<float>() + k_blocks * (before + (group.scale_a - all.scale_a));
    lt_[i].at(q.m)->gemm(q);
    return;
  }
  cublas_check(cublasSetStream(handle_[i], q.stream));
  cublas_check(cublasGemmEx(handle_[i], blas_operation(q.layout_b), blas_operation(q.layout_a), q.n, q.m, q.k, &q.alpha,
                            q.b, blas_type(q.type), q.ldb, q.a, blas_type(q.type), q.lda, &q.beta, q.c,
                            blas_result_type(q.type, q.out), q.ldc, blas_compute_type(q.type), CUBLAS_GEMM_DEFAULT));
}

void BlasGrouped::run(const Problem& p, GroupedWay way) const {
  const std::vector<Problem> all = products(p, first_row_);
  switch (way) {
    case GroupedWay::loop:
      for (const Problem& q : all) multiply(q, p, 0);
      return;
    case GroupedWay::streams:
      cuda_check(cudaEventRecord(fork_, p.stream));
      for (int i = 0; i < STREAMS; ++i) cuda_check(cudaStreamWaitEvent(stream_[i], fork_));
      for (size_t i = 0; i < all.size(); ++i) {
        Problem q = all[i];
        q.stream = stream_[i % STREAMS];
        multiply(q, p, static_cast<int>(i % STREAMS));
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
