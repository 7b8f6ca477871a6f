// bin/host_time [--calls N]: what a call of the library costs the host, beside cuBLAS, as CSV. Few small products per round: the time is
// that of the calls, not of the GPU, which works on while they are enqueued.
#include <cublas_v2.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "common/harness/error.h"
#include "common/harness/operands.h"
#include "common/rung.h"
#include "common/text.h"
#include "include/gemm_ladder.h"

using namespace ladder;

namespace {

void library_check(gemm_ladder_status_t status, gemm_ladder_handle_t handle) {
  if (status != GEMM_LADDER_OK) throw std::runtime_error(gemm_ladder_last_error(handle));
}

/// Median over 21 rounds of the microseconds per call. Few calls per round, so that none waits for room in the stream's queue.
double microseconds(int calls, const std::function<void()>& call) {
  std::vector<double> rounds;
  for (int round = 0; round < 21; ++round) {
    cuda_check(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    rounds.push_back(took.count() / calls);
  }
  cuda_check(cudaDeviceSynchronize());
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "What a call costs the host: gemm_ladder_gemm() and cublasGemmEx() at 128 x 128 x 128, in microseconds.");
  int calls = 200;
  app.add_option("--calls", calls, "Per round")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    gemm_ladder_handle_t handle;
    if (const auto status = gemm_ladder_create(&handle); status != GEMM_LADDER_OK)
      throw std::runtime_error(gemm_ladder_status_string(status));
    cublasHandle_t cublas;
    cublas_check(cublasCreate(&cublas));
    cudaStream_t stream;
    cuda_check(cudaStreamCreate(&stream));
    library_check(gemm_ladder_set_stream(handle, stream), handle);
    cublas_check(cublasSetStream(cublas, stream));
    const int size = 128;
    const DeviceBuffer a(size * size * 4), b(size * size * 4), c(size * size * 4);
    const float one = 1, zero = 0;
    print(stdout, "type,layout,library_us,cublas_us,ratio\n");
    struct Kind {
      const char* name;
      gemm_ladder_type_t type;
      cudaDataType_t cuda;
      cublasComputeType_t compute;
    };
    for (const Kind& kind : {Kind{"f32", GEMM_LADDER_F32, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
                             Kind{"tf32", GEMM_LADDER_TF32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                             Kind{"bf16", GEMM_LADDER_BF16, CUDA_R_16BF, CUBLAS_COMPUTE_32F}})
      for (const bool transposed : {false, true}) {
        const auto op = transposed ? GEMM_LADDER_T : GEMM_LADDER_N;
        const auto library = [&] {
          library_check(
              gemm_ladder_gemm(handle, GEMM_LADDER_ROW_MAJOR, kind.type, GEMM_LADDER_RESULT_SAME, GEMM_LADDER_N, op,
                               size, size, size, 1, a.as<void>(), size, b.as<void>(), size, 0, c.as<void>(), size),
              handle);
        };
        const auto reference = [&] {
          cublas_check(cublasGemmEx(cublas, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one,
                                    b.as<void>(), kind.cuda, size, a.as<void>(), kind.cuda, size, &zero, c.as<void>(),
                                    kind.cuda, size, kind.compute, CUBLAS_GEMM_DEFAULT));
        };
        library(), reference();
        const double ours = microseconds(calls, library), theirs = microseconds(calls, reference);
        print(stdout, "{},{},{:.2f},{:.2f},{:.2f}\n", kind.name, transposed ? "nt" : "nn", ours, theirs, ours / theirs);
      }
    cublasDestroy(cublas);
    library_check(gemm_ladder_destroy(handle), handle);
  } catch (const std::exception& error) {
    print(stderr, "host_time: {}\n", error.what());
    return exit_wrong;
  }
  return exit_ok;
}
