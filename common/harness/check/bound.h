// How far a correct result may lie from the reference, derived from the arithmetic alone.
//
//   |got - ref| <= gamma(type, K) * S  +  u_out * |ref|  +  tiny,     S = |alpha| (|A| |B|)_ij + |beta| |C_ij|
//
// Summing K products in a format of unit roundoff u, each partial sum rounded once, leaves an error of at most
// K * u * S. Roundings are as good as independent, so the error really grows with sqrt(K): with lambda = 8 the bound
// lambda * sqrt(K) * u * S fails to hold with probability below 2 exp(-lambda^2 / 2) = 3e-14 per element
// (N. J. Higham, T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019,
// theorem 2.4). The smaller of the two counts, once for the kernel and once for the reference. At K = 4096 that is
// 6.2e-5, a quarter of what one forgotten average product changes. A reference computed in FP64 is off by its one rounding
// to FP32 alone.
//
// Tensor cores truncate each partial sum instead of rounding it, a bias that sqrt(K) does not cover: one unit of
// 2^-23 for every step of at least 8 products (M. Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ
// Computer Science 7:e330, 2021).
//
// A sum in FP16 is rounded, to nearest (the same article), by every instruction: once for at least 8 products. Those are n =
// K / 8 roundings of unit roundoff 2^-11, and the smaller of n and lambda * sqrt(n) of them counts, once: no reference has them.
// Below 2^-14, where FP16 runs out of exponent, a rounding changes up to 2^-25 instead.
#pragma once

#include <cmath>

#include "common/types.h"

namespace ladder {

struct Bound {
  double gamma;  ///< relative to S
  double u_out;  ///< relative to |ref|: the rounding of the result to its own type
  double tiny;   ///< absolute: where the result's type runs out of exponent
};

/// The arithmetic of the reference; its result is FP32 in both cases.
enum class ReferenceSum { fp32, fp64 };

/// The bound for a product over `k` terms, k >= 1, times `alpha`, which matters where FP16 runs out of exponent alone. `out`
/// decides only how the result is rounded.
inline Bound error_bound(Type type, Out out, int k, ReferenceSum reference = ReferenceSum::fp32, Sum sums = Sum::fp32,
                         double alpha = 1.0) {
  constexpr double u32 = 0x1p-24;
  constexpr double lambda = 8.0;
  constexpr double epilogue = 4.0;  // alpha *, beta *, +, and the conversion of C
  const double sum = std::fmin(k, lambda * std::sqrt(static_cast<double>(k)));
  const double roundings = reference == ReferenceSum::fp32 ? 2.0 * (sum + epilogue) : sum + epilogue + 1.0;
  Bound bound{roundings * u32, 0.0, 0x1p-126};
  const TypeFacts operand = facts(type);
  if (operand.tensor) bound.gamma += 2.0 * (k / 8.0 + 1.0) * 0x1p-23;
  bound.gamma += 2.0 * operand.truncation;  // of both operands
  if (out == Out::same) bound.u_out = operand.roundoff, bound.tiny = operand.tiny;
  if (sums == Sum::fp16) {
    const double n = std::ceil(k / 8.0);
    bound.gamma += std::fmin(n, lambda * std::sqrt(n)) * 0x1p-11;
    bound.tiny += n * 0x1p-25 * std::fabs(alpha);
  }
  return bound;
}

}  // namespace ladder
