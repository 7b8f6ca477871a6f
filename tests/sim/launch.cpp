// Launches one rung once, with alpha 1 and beta 0. Only the counts matter, so the result is not read back.
//   sim_launch RUNG M N K [TYPE [OUT]]      06_bank_conflict_free 256 256 256; without TYPE the rung's first one, without OUT
//                                           FP32 results, with OUT = same results of the operands' type
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "common/rung.h"
#include "common/types.h"

namespace ladder {
namespace {

Type type_of(const std::string& name) {
  for (const Type type : AllTypes::list)
    if (name == ladder::name(type)) return type;
  throw std::invalid_argument("there is no type " + name);
}

Out out_of(const std::string& name) {
  if (name == "f32") return Out::f32;
  if (name == "same") return Out::same;
  throw std::invalid_argument("there are no results of type " + name);
}

void launch(const Rung& rung, int m, int n, int k, Type type, Out out) {
  Problem problem{.m = m, .n = n, .k = k, .type = type, .out = out, .layout_b = rung.layout_b};
  const auto matrix = [](int rows, int columns) {
    const size_t bytes = static_cast<size_t>(rows) * columns * sizeof(float);
    void* data;
    cuda_check(cudaMalloc(&data, bytes));
    cuda_check(cudaMemset(data, 0, bytes));
    return data;
  };
  problem.a = matrix(m, k), problem.lda = k;
  problem.b = matrix(k, n), problem.ldb = rung.layout_b == MatrixLayout::row_major ? n : k;
  problem.c = matrix(m, n), problem.ldc = n;
  rung.launch(problem);
  cuda_check(cudaDeviceSynchronize());
}

}  // namespace
}  // namespace ladder

int main(int count, char** arguments) {
  using namespace ladder;
  if (count < 5 || count > 7) {
    std::fprintf(stderr, "usage: sim_launch RUNG M N K [TYPE [OUT]]\n");
    return 2;
  }
  try {
    for (const Rung& rung : rungs())
      if (rung.stem() == arguments[1]) {
        launch(rung, std::atoi(arguments[2]), std::atoi(arguments[3]), std::atoi(arguments[4]),
               count > 5 ? type_of(arguments[5]) : rung.types.front(), count > 6 ? out_of(arguments[6]) : Out::f32);
        return 0;
      }
    std::fprintf(stderr, "sim_launch: there is no rung %s\n", arguments[1]);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sim_launch: %s\n", error.what());
    return 1;
  }
}
