// What a kernel file states about itself, in its last lines. This is the only header of the harness that a rung sees:
// nothing here pulls in Thrust, cuBLAS or the command line, so that a rung compiles in seconds.
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <string>
#include <vector>

#include "common/problem.h"

namespace ladder {

/// Block tile: rows of C, columns of C, and the slice of K held at a time.
struct TileShape {
  int m, n, k;
};

/// What the harness asks the runtime about: registers, shared memory and resident blocks follow from these.
struct Resources {
  const void* kernel;          ///< the __global__ function that `launch` launches
  int threads;                 ///< a block
  int dynamic_smem_bytes = 0;  ///< a block
};

/// One rung of the ladder.
struct Rung {
  const char* number;  ///< "06", or "06b" for a variant
  const char* name;    ///< "bank_conflict_free"; number_name is the stem that file, target, chapter and CSV share
  const char* idea;    ///< one line
  std::vector<Type> types;
  LayoutB layout_b;
  int min_sm;           ///< least compute capability, 80 for sm_80
  int row_align_bytes;  ///< every row of A, B and C must start at a multiple of this; 4 for FP32 means any
  TileShape tile;
  Resources (*resources)(const Problem&);
  void (*launch)(const Problem&);  ///< enqueues on Problem::stream; returns at once; throws CudaError

  std::string stem() const { return std::string(number) + "_" + name; }
};

/// Registers a rung before main() starts. Adding a rung is adding a file that ends in one of these.
struct Registration {
  explicit Registration(Rung rung);
};

/// All rungs of this program, sorted by number, a variant after its rung.
const std::vector<Rung>& rungs();

/// Least whole number of tiles of `tile` that cover `extent`; both positive.
constexpr __host__ __device__ int ceil_div(int extent, int tile) { return extent / tile + (extent % tile != 0); }

/// Throws CudaError naming the caller's file and line where `status` is not cudaSuccess. In every build type.
void cuda_check(cudaError_t status, std::source_location where = std::source_location::current());

}  // namespace ladder
