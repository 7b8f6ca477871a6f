#include "common/harness/check/check.h"

#include <cmath>
#include <random>
#include <stdexcept>

#include "common/harness/check/host_product.h"
#include "common/harness/group_rows.h"
#include "common/rung.h"
#include "common/text.h"

namespace ladder {
namespace {

constexpr int full_mode_samples = 256;
constexpr int sample_mode_samples = 4096;

std::string describe(size_t index, int n, double got, double reference, double allowed) {
  return formatted("row {}, column {}: got {:.9g}, reference {:.9g}, allowed distance {:.3g}", index / n, index % n,
                   got, reference, allowed);
}

}  // namespace

size_t Checker::bytes(const OperandSpec& spec, CheckMode mode) {
  if (mode != CheckMode::full) return 0;
  OperandSpec copies = spec;
  if (spec.type == Type::e4m3) copies.type = Type::f16;
  if (spec.scales != Scales::none) copies.type = Type::f32;
  return (1 + (copies.type != spec.type)) * Operands::bytes(copies, 1) +
         2 * sizeof(float) * static_cast<size_t>(spec.shape.m) * spec.shape.n;
}

Checker::Checker(Operands& operands, float alpha, float beta, CheckMode mode, const Blas* blas, cudaStream_t stream)
    : operands_(operands),
      problem_(operands.problem(0, alpha, beta, stream)),
      mode_(mode),
      reference_sum_(blas ? ReferenceSum::fp32 : ReferenceSum::fp64) {
  operands_.fill_c(0, beta == 0.0F, stream);
  if (mode == CheckMode::full && !blas) {
    make_reference();
    return;
  }
  samples_ = take_samples(mode == CheckMode::full ? full_mode_samples : sample_mode_samples);
  if (mode == CheckMode::full) make_reference(*blas);
}

Bound Checker::bound(Sum sums) const {
  // No sum of whole numbers reaches 2^14: with 8 times its root mean square, sqrt(K) * 20 / 3, that would take a K of 94,000.
  // Promoted ones end after 128 products. Scales multiply such an exact sum, so that only their own roundings, which FP32 has too, are left.
  const bool below = sums == Sum::promoted || (sums == Sum::fp22 && problem_.k < 90'000);
  if (below && operands_.spec().init == Init::integer) sums = Sum::fp32;
  return error_bound(problem_.type, problem_.out, problem_.k, reference_sum_, sums, problem_.alpha, problem_.scales);
}

/// The four corners and random elements.
Samples Checker::take_samples(int count) const {
  const size_t m = problem_.m, n = problem_.n;
  Samples samples;
  samples.index = {0, n - 1, (m - 1) * n, m * n - 1};
  std::mt19937_64 random(operands_.spec().seed);
  while (samples.index.size() < static_cast<size_t>(count)) samples.index.push_back(random() % (m * n));
  fp64_elements(problem_, samples);
  return samples;
}

/// On the CPU, in FP64.
void Checker::make_reference() {
  const HostProduct product = host_product(problem_);
  const auto upload = [](const std::vector<float>& values) {
    DeviceBuffer buffer(values.size() * sizeof(float));
    cuda_check(cudaMemcpy(buffer.as<float>(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    return buffer;
  };
  reference_ = upload(product.value);
  scale_ = upload(product.scale);
}

void Checker::make_reference(const Blas& blas) {
  const size_t elements = static_cast<size_t>(problem_.m) * problem_.n;
  reference_ = DeviceBuffer(elements * sizeof(float));
  scale_ = DeviceBuffer(elements * sizeof(float));
  if (problem_.beta != 0.0F) copy_c(problem_, reference_.as<float>(), scale_.as<float>());

  Problem p = problem_;
  p.out = Out::f32;
  p.c = reference_.as<float>();
  p.ldc = p.n;
  const OperandSpec& spec = operands_.spec();
  const size_t elements_a = static_cast<size_t>(spec.rows_a()) * p.lda,
               elements_b = static_cast<size_t>(spec.rows_b()) * p.ldb;
  DeviceBuffer a, b;
  if (p.scales != Scales::none) {
    a = scaled_a(p), b = scaled_b(p);
    p.a = a.as<void>(), p.b = b.as<void>(), p.type = Type::f32, p.scales = Scales::none;
  } else if (p.type == Type::e4m3) {  // of which cuBLAS computes no reference
    a = as_f16(p.a, elements_a, p.stream), b = as_f16(p.b, elements_b, p.stream);
    p.a = a.as<void>(), p.b = b.as<void>(), p.type = Type::f16;
  }
  for (const Problem& of_group : products(p)) blas.reference(of_group);

  const DeviceBuffer abs_a = absolute(p.a, elements_a, p.type, p.stream);
  const DeviceBuffer abs_b = absolute(p.b, elements_b, p.type, p.stream);
  p.a = abs_a.as<void>();
  p.b = abs_b.as<void>();
  p.alpha = std::fabs(p.alpha);
  p.beta = std::fabs(p.beta);
  p.c = scale_.as<float>();
  for (const Problem& of_group : products(p)) blas.reference(of_group);
  cuda_check(cudaStreamSynchronize(p.stream));

  Bound bound = this->bound(Sum::fp32);  // the reference is FP32, whatever the result is
  bound.u_out = 0.0;
  for (size_t i = 0; i < samples_.index.size(); ++i) {
    float got;
    cuda_check(cudaMemcpy(&got, reference_.as<float>() + samples_.index[i], sizeof got, cudaMemcpyDeviceToHost));
    if (judge(got, samples_.value[i], samples_.scale[i], bound).wrong)
      throw std::runtime_error("the reference (cuBLAS) disagrees with FP64 at " +
                               describe(samples_.index[i], problem_.n, got, samples_.value[i],
                                        bound.gamma * samples_.scale[i] + bound.tiny));
  }
}

CheckResult Checker::check(const std::function<void(const Problem&)>& launch, const Workspace& workspace, Sum sums) {
  operands_.fill_c(0, problem_.beta == 0.0F, problem_.stream);
  workspace.fill(problem_.stream);
  launch(workspace.lend(problem_));
  cuda_check(cudaStreamSynchronize(problem_.stream));
  const Bound bound = this->bound(sums);
  CheckResult result = mode_ == CheckMode::full ? judge_all(bound) : judge_samples(bound);
  result.bound = bound.gamma;
  const auto also = [&](const std::string& violation) {
    result.passed = false;
    result.message = violation + (result.message.empty() ? "" : "; ") + result.message;
  };
  if (const size_t changed = operands_.guard_violations(0, problem_.stream))
    also(formatted("wrote outside C: {} elements of its padding or guard bands changed", changed));
  if (const std::string violation = workspace.violation(problem_.stream); !violation.empty()) also(violation);
  return result;
}

CheckResult Checker::judge_all(const Bound& bound) const {
  const Tally found = tally_against(problem_, reference_.as<float>(), scale_.as<float>(), bound);
  CheckResult result{found.wrong == 0, found.max_error, 0.0, ""};
  if (result.passed) return result;
  float reference, scale;
  cuda_check(cudaMemcpy(&reference, reference_.as<float>() + found.first, sizeof reference, cudaMemcpyDeviceToHost));
  cuda_check(cudaMemcpy(&scale, scale_.as<float>() + found.first, sizeof scale, cudaMemcpyDeviceToHost));
  result.message =
      formatted("{} of {} elements wrong; first at {}", found.wrong, static_cast<size_t>(problem_.m) * problem_.n,
                describe(found.first, problem_.n, read_c(problem_, found.first), reference,
                         bound.gamma * scale + bound.u_out * std::fabs(reference) + bound.tiny));
  return result;
}

CheckResult Checker::judge_samples(const Bound& bound) const {
  const Tally infinite = tally_infinite(problem_);
  CheckResult result{infinite.wrong == 0, 0.0, 0.0, ""};
  if (!result.passed)
    result.message = formatted("{} elements are not finite; first at row {}, column {}", infinite.wrong,
                               infinite.first / problem_.n, infinite.first % problem_.n);
  int wrong = 0;
  for (size_t i = 0; i < samples_.index.size(); ++i) {
    const double got = read_c(problem_, samples_.index[i]);
    const Judgement j = judge(got, samples_.value[i], samples_.scale[i], bound);
    result.max_error = std::fmax(result.max_error, j.error);
    if (j.wrong && wrong++ == 0 && result.passed)
      result.message =
          describe(samples_.index[i], problem_.n, got, samples_.value[i],
                   bound.gamma * samples_.scale[i] + bound.u_out * std::fabs(samples_.value[i]) + bound.tiny);
  }
  if (wrong && result.passed)
    result.message =
        formatted("{} of {} sampled elements wrong; first at {}", wrong, samples_.index.size(), result.message);
  result.passed = result.passed && wrong == 0;
  return result;
}

}  // namespace ladder
