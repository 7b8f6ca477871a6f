// Launches one rung once, alpha 1 and beta 0, on matrices that are not read back: for what is counted, not for the result.
//   sim_launch 06_bank_conflict_free M N K
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "common/rung.h"

namespace ladder {
namespace {

void launch(const Rung& rung, int m, int n, int k) {
  Problem problem{.m = m, .n = n, .k = k, .type = rung.types.front(), .layout_b = rung.layout_b};
  const auto matrix = [](int rows, int columns) {
    const size_t bytes = static_cast<size_t>(rows) * columns * sizeof(float);
    void* data;
    cuda_check(cudaMalloc(&data, bytes));
    cuda_check(cudaMemset(data, 0, bytes));
    return data;
  };
  problem.a = matrix(m, k), problem.lda = k;
  problem.b = matrix(k, n), problem.ldb = rung.layout_b == LayoutB::row_major ? n : k;
  problem.c = matrix(m, n), problem.ldc = n;
  rung.launch(problem);
  cuda_check(cudaDeviceSynchronize());
}

}  // namespace
}  // namespace ladder

int main(int count, char** arguments) {
  using namespace ladder;
  if (count != 5) {
    std::fprintf(stderr, "usage: sim_launch RUNG M N K\n");
    return 2;
  }
  try {
    for (const Rung& rung : rungs())
      if (rung.stem() == arguments[1]) {
        launch(rung, std::atoi(arguments[2]), std::atoi(arguments[3]), std::atoi(arguments[4]));
        return 0;
      }
    std::fprintf(stderr, "sim_launch: there is no rung %s\n", arguments[1]);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sim_launch: %s\n", error.what());
    return 1;
  }
}
