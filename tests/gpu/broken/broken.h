// Kernels with one fault each: what the check must find.
#pragma once

#include "common/problem.h"

namespace ladder::broken {

enum class Fault {
  none,              // the same kernel without a fault: what the check must let pass
  missing_barrier,   // a tile is read before all of it is there
  edge_unwritten,    // the last column is never stored
  one_nan,           // one element is NaN
  one_infinite,      // one element is infinite
  last_k_forgotten,  // K - 1 products instead of K
  reads_padding,     // one product too many, from the padding of A's rows
  reads_c,           // beta = 0 multiplies what is in C
  writes_padding,    // one element past the end of a row of C
  writes_before,     // one element before C
  swapped_result,    // two elements of C change places
  leaves_lock,       // one lock is not zero at the end
  writes_workspace,  // one float past the end of the workspace
};

/// A shared-memory kernel on FP32, B row-major, that contains `fault`.
void launch(Fault fault, const Problem& p);

/// FP16 products, 8 at a time, summed in FP16, as the tensor cores do; B column-major, C FP32. With a fault, all but the last 16
/// products: one k step of mma is forgotten.
void launch_fp16_sums(bool forgets_k_step, const Problem& p);

enum class EpilogueFault {
  none,
  bias_forgotten,
  bias_of_next_column,
  gelu_for_silu,
  gate_forgotten,
  scale_doubled,       // and elements halved: what they mean is right, but a bit is wasted
  scale_of_other_row,  // two rows change their scales
  scale_unwritten,     // that of the last row
  scale_padding,       // one past the last row
};

/// BF16 products with the problem's epilogue; B column-major, C as BF16 or quantised.
void launch_epilogue(EpilogueFault fault, const Problem& p);

enum class ScaleFault {
  none,
  forgets_a,       // all scales of A are taken for 1
  forgets_b,       // likewise of B
  first_of_a,      // the scale of A's first element is taken for all
  neighbour_of_b,  // a column takes the scale of the next one: with blocks, at the end of 128 columns alone
  group_of_b,      // a group takes the scales of the next group's B, the last those of the first
  group_of_a       // row i of a group takes the scales of row i of the first
};

/// E4M3 products, summed in FP32, times the problem's scales; B column-major, C FP32.
void launch_scaled(ScaleFault fault, const Problem& p);

}  // namespace ladder::broken
