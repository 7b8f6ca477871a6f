// Roundings of sums in FP64, four at a time, with AVX2 and F16C.
#pragma once

#include <immintrin.h>

namespace sim {

/// A mask of 64-bit lanes as one of 32-bit lanes.
inline __m128i narrowed(__m256d mask) {
  const __m256i bits = _mm256_castpd_si256(mask);
  return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bits, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

/// To FP32 toward zero, as bits. NaN stays some NaN.
inline __m128i toward_zero(__m256d sum) {
  const __m256d sign = _mm256_set1_pd(-0.0);
  const __m128 nearest = _mm256_cvtpd_ps(sum);
  const __m256d beyond =
      _mm256_cmp_pd(_mm256_andnot_pd(sign, _mm256_cvtps_pd(nearest)), _mm256_andnot_pd(sign, sum), _CMP_GT_OQ);
  return _mm_add_epi32(_mm_castps_si128(nearest), narrowed(beyond));
}

/// The results of FP32 for these sums, where NaN is the canonical one.
inline __m128 canonical(__m256d sum, __m128i results) {
  const __m128 nan = _mm_castsi128_ps(narrowed(_mm256_cmp_pd(sum, sum, _CMP_UNORD_Q)));
  return _mm_blendv_ps(_mm_castsi128_ps(results), _mm_castsi128_ps(_mm_set1_epi32(0x7fffffff)), nan);
}

/// To FP16, to nearest even, once: by way of FP32 and "round to odd" (rounding.h). NaN is the canonical one.
inline __m128i to_halves(__m256d low, __m256d high) {
  const auto odd = [](__m256d sum) {
    const __m128i cut = toward_zero(sum);
    const __m256d inexact = _mm256_cmp_pd(_mm256_cvtps_pd(_mm_castsi128_ps(cut)), sum, _CMP_NEQ_OQ);
    return _mm_castsi128_ps(_mm_or_si128(cut, _mm_srli_epi32(narrowed(inexact), 31)));
  };
  const __m128i halves = _mm256_cvtps_ph(_mm256_set_m128(odd(high), odd(low)), _MM_FROUND_TO_NEAREST_INT);
  const __m128i nan = _mm_packs_epi32(narrowed(_mm256_cmp_pd(low, low, _CMP_UNORD_Q)),
                                      narrowed(_mm256_cmp_pd(high, high, _CMP_UNORD_Q)));
  return _mm_blendv_epi8(halves, _mm_set1_epi16(0x7fff), nan);
}

}  // namespace sim
