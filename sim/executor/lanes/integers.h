// Integer arithmetic that more than one section uses. It wraps around.
#pragma once

#include "executor/lanes/table.h"

namespace sim {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

constexpr auto add = []<class T>(T a, T b) { return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b)); };
constexpr auto sub = []<class T>(T a, T b) { return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b)); };
constexpr auto mul_lo = []<class T>(T a, T b) { return static_cast<T>(u64(a) * u64(b)); };
constexpr auto mul_hi = []<class T>(T a, T b) { return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T))); };

}  // namespace sim
