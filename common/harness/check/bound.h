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
//
// FP22 (1 bit of sign, 8 of exponent, 13 of mantissa) is what Ada's and Hopper's instructions for FP8 add in: they align the 32 products
// and the sum so far to the largest of these 33 terms and cut each off 13 bits below that one's power of two (J. Zhang et al.,
// "SageAttention2", ICML 2025; measured on an H200: 1 + 2^-13 is kept, 1 + 2^-14 lost). So a term loses less than 2^-13 of the largest,
// toward zero. Their sum is cut off likewise, which matters only where it has passed the next power of two. Signs are as good as independent: of products whose root mean square is s, a sum of t is about s * sqrt(t), and
// the losses up to it are a random walk of t steps, which are uniform, so of root mean square 2^-13 / sqrt(3) of the largest term:
//
//   loss = 2^-13 / sqrt(3) * s * sqrt(1 + 2 + ... + K) = 2^-13 / sqrt(6) * s * K        (33 terms per 32 products: 1.02 times that)
//
// S is K times the mean of |product|, which is s / 1.571 for normal operands and more for the others. So loss / S = 2^-13 * 0.65, whatever
// K is. Sum and walk are two random numbers, and the loss is their product: both are large together, x and y times their root mean square,
// with a probability of exp(-(x^2 + y^2) / 2), and lambda^2 = x^2 + y^2 leaves x * y = lambda^2 / 2 at most. Hence 32 * 0.65 = 21 times
// 2^-13, 2.6e-3. At K = 4096 that is ten average products, which this arithmetic may lose. Whole numbers lose nothing while no sum
// reaches 2^14, so for them the bound of FP32 holds, which sees one.
// All of this holds for E5M2 times E4M3, too: products are as exact, of 7 bits and not 8, and so the sums alone are cut off.
//
// Promoted sums: FP22 over a block of 128 products, which is multiplied by its scale and added to the others in FP32. A block loses what is
// said above, relative to its own S_b, and a later block does not make it more. Let w_b = S_b / S, which add up to 1; the loss is 0.65 *
// 2^-13 * S * sum of w_b x_b y_b, with 2 n independent normal numbers x_b, y_b. A sum of such products passes lambda |w|_2 + lambda^2 / 2
// |w|_max with a probability of exp(-lambda^2 / 2) at most (Bernstein: the logarithm of the mean of exp(t w x y) is -ln(1 - t^2 w^2) / 2, and
// that is below t^2 w^2 / (2 - 2 t w)), and it never is larger than that of one block with w = 1, lambda^2 / 2. Scales of the harness differ
// by r = 4 at most, those of A times those of B. So among n blocks w_max <= r / (r + n - 1), and |w|_2 <= (1 + r) / (2 sqrt(r n)), where the
// mean of the squares is largest relative to the square of the mean:
//
//   loss <= 2^-13 * 0.65 * min(32, 8 * 1.25 / sqrt(n) + 32 * 4 / (n + 3)) * S,       n = K / 128
//
// At K = 4096 that is a sixth of the loss of one sum. The FP32 part, two roundings for each block, is less than the term for FP32 sums; no
// tensor core truncates it.
//
// Scales are two roundings more: their product, and its product with a sum. The reference multiplies the operands by them, which is
// exact (Operands).
#pragma once

#include <cmath>

#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"

namespace ladder {

struct Bound {
  double gamma;  ///< relative to S
  double u_out;  ///< relative to |ref|: the rounding of the result to its own type
  double tiny;   ///< absolute: where the result's type runs out of exponent
};

/// With blocks, how many times another one a product of two of the harness's scales (Operands) is at most.
inline constexpr double block_scales_spread = 4.0;

/// The arithmetic of the reference; its result is FP32 in both cases.
enum class ReferenceSum { fp32, fp64 };

/// In what a rung adds products on a GPU of compute capability `sm`. sm_90 and the GPUs of sm_100 have no mma.sync for FP8: the compiler
/// makes FP16 of the operands, whose products are added in FP32. So are those of tcgen05.mma. With a scale for each 128 along k, sums end there.
inline Sum sum_on(const Rung& rung, Type type, int sm, Scales scales = Scales::none) {
  const Sum sum = rung.sum(type);
  const bool by_fp16 = rung.instruction == MathInstruction::mma_sync && sm >= 90 && sm < 120;
  if (sum != Sum::fp32 || !facts(type).fp22 || by_fp16 || rung.instruction == MathInstruction::tcgen05) return sum;
  return scales == Scales::blocks ? Sum::promoted : Sum::fp22;
}

/// The bound for a product over `k` terms, k >= 1, times `alpha`, which matters where FP16 runs out of exponent alone. `out`
/// decides only how the result is rounded, `scales` how often.
inline Bound error_bound(Type type, Out out, int k, ReferenceSum reference = ReferenceSum::fp32, Sum sums = Sum::fp32,
                         double alpha = 1.0, Scales scales = Scales::none) {
  constexpr double u32 = 0x1p-24;
  constexpr double lambda = 8.0;
  const double epilogue = scales == Scales::none ? 4.0 : 6.0;  // alpha *, beta *, +, the conversion of C; scales
  const double sum = std::fmin(k, lambda * std::sqrt(static_cast<double>(k)));
  const double roundings = reference == ReferenceSum::fp32 ? 2.0 * (sum + epilogue) : sum + epilogue + 1.0;
  Bound bound{roundings * u32, 0.0, 0x1p-126};
  const TypeFacts operand = facts(type);
  if (operand.tensor && sums != Sum::promoted) bound.gamma += 2.0 * (k / 8.0 + 1.0) * 0x1p-23;
  bound.gamma += 2.0 * operand.truncation;  // of both operands
  if (out == Out::same) bound.u_out = operand.roundoff, bound.tiny = operand.tiny;
  if (sums == Sum::fp16) {
    const double n = std::ceil(k / 8.0);
    bound.gamma += std::fmin(n, lambda * std::sqrt(n)) * 0x1p-11;
    bound.tiny += n * 0x1p-25 * std::fabs(alpha);
  }
  constexpr double one_sum = lambda * lambda / 2.0, r = block_scales_spread;
  const double n = k / static_cast<double>(SCALE_BLOCK);
  const double blocks = lambda * (1.0 + r) / (2.0 * std::sqrt(r * n)) + one_sum * r / (r + n - 1.0);
  if (sums == Sum::fp22) bound.gamma += one_sum * 0.65 * 0x1p-13;
  if (sums == Sum::promoted) bound.gamma += (n > 1.0 ? std::fmin(one_sum, blocks) : one_sum) * 0.65 * 0x1p-13;
  return bound;
}

}  // namespace ladder
