// E4M3 with scales of a matrix in FP32, BF16 or FP16, for a rung that multiplies it.
#pragma once

#include <cstdint>

#include "common/problem.h"

namespace ladder {

/// Numbers that share a scale.
enum class Block {
  all,      ///< scale[0]
  row,      ///< scale[row]
  row_128,  ///< 128 neighbours in a row: as those of A with Scales::blocks (common/scales.h), column as k
  square,   ///< 128 x 128: as those of B, whose columns are the rows here
};

/// A matrix by rows and what becomes of it. Leading dimensions in elements.
struct Quantisation {
  Type type;  ///< of x: f32 or tf32, bf16, f16
  Block block;
  int rows, columns;
  const void* x;
  int64_t ld;
  uint8_t* to;  ///< E4M3
  int64_t ld_to;
  float* scale;

  /// Of `scale`; 1 where it is a vector.
  int64_t ld_scale() const;
  /// How many floats `scale` has, those after the last row or column included, which are not written.
  int64_t scales() const;
};

/// As common/quantise.h has it. Fastest where rows begin at multiples of 16 bytes and are multiples of 16 bytes long. Nothing is done for a
/// matrix without elements. Enqueues; throws CudaError.
void quantise(const Quantisation& q, cudaStream_t stream);

}  // namespace ladder
