#include "common/harness/check/check.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "common/harness/check/host_product.h"
#include "common/harness/check/through_epilogue.h"
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
  if (!Blas::has(spec.type)) copies.type = Type::f16;
  if (spec.scales != Scales::none) copies.type = Type::f32;
  return (1 + (copies.type != spec.type)) * Operands::bytes(copies, 1) +
         (2 + 2 * spec.epilogue.gate) * sizeof(float) * static_cast<size_t>(spec.shape.m) * spec.shape.n;
}

Checker::Checker(Operands& operands, float alpha, float beta, CheckMode mode, const Blas* blas, cudaStream_t stream)
    : operands_(operands),
      problem_(operands.problem(0, alpha, beta, stream)),
      mode_(mode),
      reference_sum_(blas ? ReferenceSum::fp32 : ReferenceSum::fp64) {
  operands_.fill_c(0, beta == 0.0F, stream);
  if (mode == CheckMode::full)
    make_reference(blas);
  else
    samples_ = finished_samples(sample_mode_samples);
}

Bound Checker::bound(Sum sums) const {
  // No sum of whole numbers reaches 2^14: with 8 times its root mean square, sqrt(K) * 20 / 3, that would take a K of 94,000.
  // Promoted ones end after 128 products. Scales multiply such an exact sum, so that only their own roundings, which FP32 has too, are left.
  const bool below = sums == Sum::promoted || (sums == Sum::fp22 && problem_.k < 90'000);
  if (below && operands_.spec().init == Init::integer) sums = Sum::fp32;
  Bound bound =
      error_bound(problem_.type, problem_.out, problem_.k, reference_sum_, sums, problem_.alpha, problem_.scales);
  if (problem_.epilogue == Epilogue{}) return bound;
  bound.gamma += 16 * 0x1p-24;  // exp2 and the reciprocal, each off by 2^-22 or so; factors
  if (problem_.epilogue.quantise) {
    // An element, a multiple of its scale here, is rounded to 3 bits of mantissa, below 2^-6 to multiples of 2^-9; and the error that it had
    // with it.
    bound = {1.125 * bound.gamma, 0x1p-4, 0x1p-10};
  }
  return bound;
}

/// The product before the epilogue, with this B; where there is no epilogue, all of the problem.
Problem Checker::product_of(const void* b) const {
  Problem p = problem_;
  p.b = b;
  if (p.epilogue != Epilogue{}) p.beta = 0.0F;
  return p;
}

/// The four corners and random elements of a product.
Samples Checker::take_samples(int count, const Problem& p) const {
  const size_t m = problem_.m, n = problem_.n;
  Samples samples;
  samples.index = {0, n - 1, (m - 1) * n, m * n - 1};
  std::mt19937_64 random(operands_.spec().seed);
  while (samples.index.size() < static_cast<size_t>(count)) samples.index.push_back(random() % (m * n));
  fp64_elements(p, samples);
  return samples;
}

/// Elements of the result.
Samples Checker::finished_samples(int count) const {
  Samples samples = take_samples(count, product_of(problem_.b));
  if (problem_.epilogue == Epilogue{}) return samples;
  const size_t elements = samples.index.size();
  const Samples gate = problem_.epilogue.gate ? take_samples(count, product_of(problem_.b_gate)) : samples;
  for (size_t i = 0; i < elements; ++i) {
    const double residual = problem_.beta == 0.0F ? 0.0 : problem_.beta * read_c(problem_, samples.index[i]);
    const double bias = problem_.epilogue.bias ? read_bias(problem_, samples.index[i] % problem_.n) : 0.0;
    const Valued d = through_epilogue(problem_.epilogue, {samples.value[i], samples.scale[i]}, bias,
                                      {gate.value[i], gate.scale[i]}, residual, bound(Sum::fp32).gamma);
    samples.value[i] = d.value, samples.scale[i] = d.scale;
  }
  return samples;
}

void Checker::make_reference(const Blas* blas) {
  const auto of = [&](const void* b) { return blas ? product(product_of(b), *blas) : product(product_of(b)); };
  reference_ = of(problem_.b);
  if (problem_.epilogue == Epilogue{}) return;
  const Product gate =
      problem_.epilogue.gate ? of(problem_.b_gate) : Product{.value = DeviceBuffer(), .scale = DeviceBuffer()};
  finish(problem_, reference_.value.as<float>(), reference_.scale.as<float>(), gate.value.as<float>(),
         gate.scale.as<float>(), bound(Sum::fp32).gamma);
  if (problem_.epilogue.quantise)
    scales_ = quantise_reference(problem_, reference_.value.as<float>(), reference_.scale.as<float>());
  cuda_check(cudaStreamSynchronize(problem_.stream));
}

/// On the CPU, in FP64.
Checker::Product Checker::product(const Problem& p) const {
  const HostProduct product = host_product(p);
  const auto upload = [](const std::vector<float>& values) {
    DeviceBuffer buffer(values.size() * sizeof(float));
    cuda_check(cudaMemcpy(buffer.as<float>(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    return buffer;
  };
  return {upload(product.value), upload(product.scale)};
}

/// By cuBLAS, and compared with FP64.
Checker::Product Checker::product(const Problem& problem, const Blas& blas) const {
  const Samples samples = take_samples(full_mode_samples, problem);
  const size_t elements = static_cast<size_t>(problem.m) * problem.n;
  Product product{DeviceBuffer(elements * sizeof(float)), DeviceBuffer(elements * sizeof(float))};
  if (problem.beta != 0.0F) copy_c(problem, product.value.as<float>(), product.scale.as<float>());

  Problem p = problem;
  p.out = Out::f32;
  p.c = product.value.as<float>();
  p.ldc = p.n;
  const OperandSpec& spec = operands_.spec();
  const size_t elements_a = static_cast<size_t>(spec.rows_a()) * p.lda,
               elements_b = static_cast<size_t>(spec.rows_b()) * p.ldb;
  DeviceBuffer a, b;
  if (p.scales != Scales::none) {
    a = scaled_a(p), b = scaled_b(p);
    p.a = a.as<void>(), p.b = b.as<void>(), p.type = Type::f32, p.scales = Scales::none;
  } else if (!Blas::has(p.type)) {
    a = as_f16(p.a, elements_a, p.type, p.stream), b = as_f16(p.b, elements_b, of_b(p.type), p.stream);
    p.a = a.as<void>(), p.b = b.as<void>(), p.type = Type::f16;
  }
  for (const Problem& of_group : products(p)) blas.reference(of_group);

  const DeviceBuffer abs_a = absolute(p.a, elements_a, p.type, p.stream);
  const DeviceBuffer abs_b = absolute(p.b, elements_b, p.type, p.stream);
  p.a = abs_a.as<void>();
  p.b = abs_b.as<void>();
  p.alpha = std::fabs(p.alpha);
  p.beta = std::fabs(p.beta);
  p.c = product.scale.as<float>();
  for (const Problem& of_group : products(p)) blas.reference(of_group);
  cuda_check(cudaStreamSynchronize(p.stream));

  Bound bound = this->bound(Sum::fp32);  // the reference is FP32, whatever the result is
  bound.u_out = 0.0;
  if (problem.epilogue.quantise) bound.tiny = 0.0;
  for (size_t i = 0; i < samples.index.size(); ++i) {
    float got;
    cuda_check(cudaMemcpy(&got, product.value.as<float>() + samples.index[i], sizeof got, cudaMemcpyDeviceToHost));
    if (judge(got, samples.value[i], samples.scale[i], bound).wrong)
      throw std::runtime_error(
          "the reference (cuBLAS) disagrees with FP64 at " +
          describe(samples.index[i], problem.n, got, samples.value[i], bound.gamma * samples.scale[i] + bound.tiny));
  }
  return product;
}

CheckResult Checker::check(const std::function<void(const Problem&)>& launch, const Workspace& workspace, Sum sums) {
  operands_.fill_c(0, problem_.beta == 0.0F, problem_.stream);
  workspace.fill(problem_.stream);
  launch(workspace.lend(problem_));
  cuda_check(cudaStreamSynchronize(problem_.stream));
  const Bound bound = this->bound(sums);
  CheckResult result = mode_ != CheckMode::full     ? judge_samples(bound)
                       : problem_.epilogue.quantise ? judge_quantised(bound)
                                                    : judge_all(problem_, bound);
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

/// The scales first: a wrong one makes 128 elements wrong.
CheckResult Checker::judge_quantised(const Bound& bound) const {
  const int blocks = ceil_div(problem_.n, 128), ld = problem_.scale_c_ld();
  std::vector<float> got(static_cast<size_t>(blocks) * ld);
  cuda_check(cudaMemcpy(got.data(), problem_.scale_c, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int block = 0; block < blocks; ++block)
    for (int row = 0; row < problem_.m; ++row) {
      const size_t at = static_cast<size_t>(block) * problem_.m + row;
      const float scale = got[static_cast<size_t>(block) * ld + row];
      const double allowed = bound.gamma * scales_.scale[at];
      if (!(std::fabs(scale - static_cast<double>(scales_.right[at])) <= allowed))
        return {
            false, INFINITY, 0.0,
            formatted("the scale of row {}, columns {} to {} is {:.9g}, reference {:.9g}, allowed distance {:.3g}", row,
                      block * 128, std::min(block * 128 + 128, problem_.n) - 1, scale, scales_.right[at], allowed)};
    }
  const DeviceBuffer values = dequantised(problem_, scales_);
  Problem p = problem_;
  p.out = Out::f32, p.c = values.as<void>(), p.ldc = p.n;
  return judge_all(p, bound);
}

CheckResult Checker::judge_all(const Problem& p, const Bound& bound) const {
  const Tally found = tally_against(p, reference_.value.as<float>(), reference_.scale.as<float>(), bound);
  CheckResult result{found.wrong == 0, found.max_error, 0.0, ""};
  if (result.passed) return result;
  float reference, scale;
  cuda_check(
      cudaMemcpy(&reference, reference_.value.as<float>() + found.first, sizeof reference, cudaMemcpyDeviceToHost));
  cuda_check(cudaMemcpy(&scale, reference_.scale.as<float>() + found.first, sizeof scale, cudaMemcpyDeviceToHost));
  result.message =
      formatted("{} of {} elements wrong; first at {}", found.wrong, static_cast<size_t>(problem_.m) * problem_.n,
                describe(found.first, p.n, read_c(p, found.first), reference,
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
