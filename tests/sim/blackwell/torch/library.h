// Stands in for PyTorch where learn-cuda's kernels include it: they want no more of it than this.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

#define TORCH_CHECK(condition, ...)                               \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("check failed in %s:%d\n", __FILE__, __LINE__); \
      std::exit(2);                                               \
    }                                                             \
  } while (0)
