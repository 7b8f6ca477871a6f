// The parts of the check that run on the GPU: FP64 products of single elements, and looks at all elements of C.
#pragma once

#include <cstddef>
#include <vector>

#include "common/harness/check/bound.h"
#include "common/harness/operands.h"
#include "common/problem.h"

namespace ladder {

/// How one element is judged; the check's only rule, here and in its tests.
/// `reference` is the right value in higher precision, `scale` is S of bound.h, never negative.
struct Judgement {
  bool wrong;
  double error;  ///< |got - reference| beyond the rounding of the result, relative to scale; infinite for NaN
};
#ifdef __CUDACC__
__host__ __device__
#endif
    inline Judgement
    judge(double got, double reference, double scale, const Bound& bound) {
  const double distance = got > reference ? got - reference : reference - got;
  const double magnitude = reference < 0 ? -reference : reference;
  const bool finite = got - got == 0.0 && reference - reference == 0.0;  // false for NaN and infinity
  const double excess = distance - bound.u_out * magnitude - bound.tiny;
  const bool right = finite && excess <= bound.gamma * scale;
  const double error = !finite       ? __builtin_huge_val()
                       : excess <= 0 ? 0.0
                       : scale > 0   ? excess / scale
                                     : __builtin_huge_val();
  return {!right, error};
}

/// Elements of D, by row * n + column, with their FP64 value and their scale S.
struct Samples {
  std::vector<size_t> index;
  std::vector<double> value, scale;
};

/// Fills value and scale from A, B and the C that is there now. Synchronises the stream.
void fp64_elements(const Problem& p, Samples& samples);

/// What a look at all elements of C finds.
struct Tally {
  unsigned long long wrong = 0;
  unsigned long long first = ~0ULL;  ///< row * n + column of the first wrong element
  double max_error = 0.0;            ///< largest Judgement::error
};

/// Judges every element of C. `reference` and `scale` are m x n, ld = n.
Tally tally_against(const Problem& p, const float* reference, const float* scale, const Bound& bound);

/// Takes products to results: values and scales S are m x n, ld = n. gamma: of the products. `gate_value` and `gate_scale` are null
/// without a gate. Reads the C that is there now.
void finish(const Problem& p, float* value, float* scale, const float* gate_value, const float* gate_scale,
            double gamma);

/// A quantised reference: what the scales of C should be, [block][row], and how far off relative to gamma; `value` and `scale` become
/// multiples of it.
struct ScalesOfC {
  std::vector<float> right, scale;
};
ScalesOfC quantise_reference(const Problem& p, float* value, float* scale);

/// A quantised C in FP32, m x n, ld = n: its elements times their scales, as multiples of the right ones.
DeviceBuffer dequantised(const Problem& p, const ScalesOfC& scales);

/// Counts elements of C that are NaN or infinite.
Tally tally_infinite(const Problem& p);

/// A copy of `elements` operands with their signs cleared.
DeviceBuffer absolute(const void* data, size_t elements, Type type, cudaStream_t stream);

/// A copy of `elements` FP8 operands in FP16, which has every value of theirs.
DeviceBuffer as_f16(const void* data, size_t elements, Type type, cudaStream_t stream);

/// A, and B, times its scales in FP32, stored as it is. In groups B is col_major.
DeviceBuffer scaled_a(const Problem& p);
DeviceBuffer scaled_b(const Problem& p);

/// C in FP32 without padding, and its absolute values.
void copy_c(const Problem& p, float* values, float* magnitudes);

/// One element of C, by row * n + column.
float read_c(const Problem& p, size_t index);

/// The bias of one column.
float read_bias(const Problem& p, size_t column);

}  // namespace ladder
