// Kernels that use what the simulator does not know: a launch of them is refused with an error that does not stick. All others of
// the same file run. (An H200 runs them all, so this program does not pass there.)
#include <cuda_runtime.h>

#include <cstring>

#include "check.h"

__global__ void unknown_instruction(int* out) {
  asm volatile("vmin.s32.s32.s32 %0, %1, %1;" : "=r"(out[0]) : "r"(out[1]));
}

__global__ void unknown_register(int* out) { asm volatile("mov.u32 %0, %%pm0;" : "=r"(out[0])); }

/// A register of two elements.
__global__ void unknown_syntax(int* out) {
  asm volatile("{ .reg .v2 .b32 v; mov.v2.b32 v, {%1, %1}; mov.b32 %0, v.x; }" : "=r"(out[0]) : "r"(out[1]));
}

__device__ __noinline__ int counted(int x) {
  int count;
  asm volatile("mov.u32 %0, %%pm1;" : "=r"(count));
  return x + count;
}
__global__ void unknown_in_a_function(int* out) { out[0] = counted(1); }

__global__ void fetch(cudaTextureObject_t texture, int* out) { out[0] = tex1Dfetch<int>(texture, 0); }

__global__ void right(int* out) { out[threadIdx.x] = static_cast<int>(threadIdx.x); }

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 32 * sizeof(int)));
  const auto refused = [&](const char* what, cudaError_t launched) {
    if (launched == cudaErrorNotSupported) return;
    std::printf("%s: %s\n", what, cudaGetErrorName(launched));
    std::exit(1);
  };
  const auto all = [&] {
    unknown_instruction<<<1, 1>>>(out);
    refused("unknown_instruction", cudaGetLastError());
    unknown_register<<<1, 1>>>(out);
    refused("unknown_register", cudaGetLastError());
    unknown_syntax<<<1, 1>>>(out);
    refused("unknown_syntax", cudaGetLastError());
    unknown_in_a_function<<<1, 1>>>(out);
    refused("unknown_in_a_function", cudaGetLastError());
    fetch<<<1, 1>>>(0, out);
    refused("fetch", cudaGetLastError());
  };
  const auto run = [&] {
    CHECK(cudaMemset(out, 0xff, 32 * sizeof(int)));
    right<<<1, 32>>>(out);
    CHECK(cudaGetLastError());
    int got[32];
    CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) expect_equal(i, got[i], i);
  };
  all();
  run();
  all();
  CHECK(cudaDeviceSynchronize());
  run();
  return passed();
}
