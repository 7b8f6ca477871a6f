// How the addresses of an access lie to one another.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

#include "executor/warp.h"

namespace sim {

/// How the addresses of an access lie to one another, and what follows from that. In a loop it is the same time after time, so
/// it is kept from one access of an operation to the next.
struct Pattern {
  enum class Form : uint8_t { general, uniform, consecutive };  ///< of all 32 lanes: at one place, side by side

  alignas(32) std::array<int64_t, warp_size> relative{};  ///< each lane's address, from that of the first active one
  Mask mask = 0;                                          ///< the active lanes; 0: no access yet
  Form form = Form::general;
  bool regular = false;       ///< of all 32 lanes, at equal distances
  int64_t low = 0, high = 0;  ///< the least and the greatest of `relative`
  uint64_t bits = 0;          ///< all of `relative` ORed

  std::array<uint8_t, 32> sectors{};  ///< by the place of the first lane's address in its sector; 0: not counted yet

  // Of shared memory.
  uint8_t place = 0;                        ///< of the first lane's address in its word, for which the rest is known
  int wavefronts = 0, ideal = 0;            ///< 0: not counted yet
  int words = 0;                            ///< distinct words ...
  std::array<int32_t, 4 * warp_size> word;  ///< ... from the first lane's
  std::array<uint8_t, 4 * warp_size> bytes;
  std::array<Mask, 4 * warp_size> lanes;  ///< that touch the word; 0 where they touch different bytes of it

  /// `low` is at most -far where addresses are so far apart that their differences say nothing: then `within` is false.
  static constexpr int64_t far = int64_t{1} << 60;

  /// Whether all lanes' accesses lie in `size` bytes, of which the first lane's is at byte `first`.
  bool within(uint64_t first, uint32_t bytes, uint64_t size) const {
    return first < size && int64_t(first) + low >= 0 && int64_t(first) + high + int64_t(bytes) <= int64_t(size);
  }

  /// Whether they lie as they did last time.
  bool is_of(Mask lanes_now, const Addresses& address) const;
  /// The same of all 32 lanes, whose addresses are these, or all as far from these.
  bool is_from(const uint64_t* address) const;
  void learn(Mask lanes_now, const Addresses& address, uint32_t bytes_per_lane);

  /// The distinct aligned 32 bytes of global memory that the lanes touch, the first of which is at `origin`.
  uint8_t sectors_at(uint64_t origin) {
    uint8_t& known = sectors[origin % 32];
    if (known == 0) known = count_sectors(int64_t(origin % 32));
    return known;
  }

 private:
  uint8_t count_sectors(int64_t first) const;
};

inline bool Pattern::is_of(Mask lanes_now, const Addresses& address) const {
  const uint64_t origin = address[first(lanes_now)];
  uint64_t differs = mask ^ lanes_now;
  if (lanes_now == all_lanes) {
    for (int l = 0; l < warp_size; ++l) differs |= uint64_t(relative[l]) ^ (address[l] - origin);
  } else {
    for (int l = 0; l < warp_size; ++l)
      differs |= uint64_t(relative[l]) ^ (lanes_now >> l & 1 ? address[l] - origin : 0);
  }
  return !differs;
}

inline bool Pattern::is_from(const uint64_t* address) const {
  const auto four = [](const auto* values) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values)); };
  const __m256i origin = _mm256_set1_epi64x(int64_t(address[0]));
  __m256i differs = _mm256_setzero_si256();
  if (regular) {
    const __m256i step = _mm256_set1_epi64x(relative[4]);
    __m256i expected = _mm256_add_epi64(origin, four(relative.data()));
#pragma GCC unroll 8
    for (int l = 0; l < warp_size; l += 4, expected = _mm256_add_epi64(expected, step))
      differs = _mm256_or_si256(differs, _mm256_xor_si256(four(address + l), expected));
  } else {
#pragma GCC unroll 8
    for (int l = 0; l < warp_size; l += 4) {
      const __m256i distance = _mm256_sub_epi64(four(address + l), origin);
      differs = _mm256_or_si256(differs, _mm256_xor_si256(distance, four(relative.data() + l)));
    }
  }
  return _mm256_testz_si256(differs, differs);
}

}  // namespace sim
