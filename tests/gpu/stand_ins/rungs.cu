// One rung of each instruction and kind of architecture, for the program `stand_ins`: what the harness makes of facts that no rung of the
// ladder states yet. All of them are the same plain kernel.
#include "common/rung.h"
#include "common/types.h"

using namespace ladder;

namespace {

constexpr int threads = 128;

/// One thread per result; B is column-major.
template <class T, class TC>
__global__ void __launch_bounds__(threads) gemm(Problem p) {
  const size_t i = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x;
  const size_t row = i / p.n, col = i % p.n;
  if (row >= static_cast<size_t>(p.m)) return;
  const T *gA = static_cast<const T*>(p.a) + row * p.lda, *gB = static_cast<const T*>(p.b) + col * p.ldb;
  float acc = 0.0F;
  for (int k = 0; k < p.k; ++k) acc += to_float(gA[k]) * to_float(gB[k]);
  TC& c = static_cast<TC*>(p.c)[row * p.ldc + col];
  c = from_float<TC>(p.beta == 0.0F ? p.alpha * acc : p.alpha * acc + p.beta * to_float(c));
}

template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return visit(WholeByteTypes{}, p.type, p.out,
               [&]<Type type, class TC>() { return f(gemm<typename Operand<type>::Element, TC>); });
}

void launch(const Problem& p) {
  for_kernel(p, [&](auto kernel) {
    kernel<<<ceil_div(p.m * p.n, threads), threads, 0, p.stream>>>(p);
    cuda_check(cudaGetLastError());
  });
}

Resources resources(const Problem& p) {
  return for_kernel(p, [](auto kernel) { return Resources{(const void*)kernel, threads, 0, {1, threads, 1}}; });
}

std::string refuses(const Problem& p) {
  if (p.m % 64 != 0) return "takes whole tiles of 64 rows alone, got " + std::to_string(p.m);
  return p.beta == 0.0F ? "" : "does not read C, so beta must be 0";
}

Rung rung(const char* number, const char* name, const char* predecessor, Type type, const char* arch,
          MathInstruction instruction, std::string (*refuses)(const Problem&) = accepts_all) {
  return {.number = number,
          .name = name,
          .idea = "a stand-in",
          .predecessor = predecessor,
          .types = {type},
          .arch = arch,
          .instruction = instruction,
          .layout_b = MatrixLayout::col_major,
          .row_align_bytes = 2,
          .refuses = refuses,
          .resources = resources,
          .launch = launch};
}

const Registration ffma(rung("70", "ffma", "", Type::f32, "sm_70", MathInstruction::ffma));
const Registration mma_sync(rung("80", "mma_sync", "70", Type::bf16, "sm_80", MathInstruction::mma_sync));
const Registration wgmma(rung("90", "wgmma", "80", Type::bf16, "sm_90a", MathInstruction::wgmma));
const Registration long_name(rung("90b", "with_a_name_of_more_than_24_letters", "90", Type::f16, "sm_80",
                                  MathInstruction::mma_sync));
const Registration choosy(rung("91", "choosy", "90", Type::f32, "sm_70", MathInstruction::ffma, refuses));

}  // namespace
