// Groups (problem.h): how the rows of A and C are distributed over them, and the product of each.
#pragma once

#include <cstdint>
#include <vector>

#include "common/problem.h"

namespace ladder {

/// How many rows each group has. All distributions hold the same rows in total.
enum class GroupRows {
  equal,   ///< as many as the others, or one more
  random,  ///< up to about twice the mean, each number as likely; a group drawn below a sixteenth of that has none
  one,     ///< all of them in the middle group
};

/// Problem::first_row: groups + 1 numbers from 0 to m. `seed` matters to random ones alone.
std::vector<int> first_rows(int m, int groups, GroupRows rows, uint64_t seed);

/// The product of each group that has rows, as a problem without groups; p itself where it has none. `first_row`: p's, on the host. Block
/// scales of A still have the leading dimension of p: scale_ld_a(p.m).
std::vector<Problem> products(const Problem& p, const std::vector<int>& first_row);

/// The same; copies Problem::first_row from the device.
std::vector<Problem> products(const Problem& p);

}  // namespace ladder
