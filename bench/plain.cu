// main() for one rung without CMake and without a library:
//   nvcc -std=c++20 -O3 -arch=native -I. kernels/06_bank_conflict_free.cu bench/plain.cu -o 06
//   ./06 4096 4096 4096
// Operands are small whole numbers, so that FP32 sums are exact in every type and in any order: results are compared with ==.
// How the ladder measures is another matter: docs/methodology.md.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <vector>

#include "common/device_limits.cpp"
#include "common/rung.cpp"
#include "common/types.h"

using namespace ladder;

void ladder::cuda_check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                           cudaGetErrorString(status));
}

namespace {

constexpr int LAUNCHES = 10, SAMPLES = 1000;

/// -2 ... 2, by place in the matrix.
int value(int row, int col) { return (row * 7 + col * 13 + row * col) % 5 - 2; }

/// rows x ld elements on the device, of which cols in each row hold values; never freed.
template <class Element>
Element* filled(int rows, int cols, int ld) {
  std::vector<Element> host(static_cast<size_t>(rows) * ld);
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < cols; ++col)
      host[static_cast<size_t>(row) * ld + col] = from_float<Element>(value(row, col));
  Element* device = nullptr;
  cuda_check(cudaMalloc(&device, host.size() * sizeof(Element)));
  cuda_check(cudaMemcpy(device, host.data(), host.size() * sizeof(Element), cudaMemcpyDefault));
  return device;
}

float milliseconds(const Rung& rung, const Problem& p) {
  cudaEvent_t start, stop;
  cuda_check(cudaEventCreate(&start));
  cuda_check(cudaEventCreate(&stop));
  std::vector<float> times(LAUNCHES);
  for (float& time : times) {
    cuda_check(cudaEventRecord(start));
    rung.launch(p);
    cuda_check(cudaEventRecord(stop));
    cuda_check(cudaEventSynchronize(stop));
    cuda_check(cudaEventElapsedTime(&time, start, stop));
  }
  std::sort(times.begin(), times.end());
  return times[LAUNCHES / 2];
}

int wrong_samples(const Problem& p) {
  std::vector<float> got(static_cast<size_t>(p.m) * p.ldc);
  cuda_check(cudaMemcpy(got.data(), p.c, got.size() * sizeof(float), cudaMemcpyDefault));
  int wrong = 0;
  for (int sample = 0; sample < SAMPLES; ++sample) {
    const int row = std::rand() % p.m, col = std::rand() % p.n;
    long long sum = 0;
    for (int k = 0; k < p.k; ++k)
      sum += value(row, k) * (p.layout_b == MatrixLayout::row_major ? value(k, col) : value(col, k));
    wrong += got[static_cast<size_t>(row) * p.ldc + col] != static_cast<float>(sum);
  }
  return wrong;
}

int run(int m, int n, int k) {
  const Rung& rung = rungs().at(0);
  Problem p{.m = m, .n = n, .k = k, .type = rung.types.at(0), .layout_b = rung.layout_b};
  const auto aligned = [&](int extent, int bytes) {  // elements from row to row
    const int elements = std::max(1, rung.row_align_bytes / bytes);
    return ceil_div(extent, elements) * elements;
  };
  visit(WholeByteTypes{}, p.type, [&]<Type type>() {
    using Element = typename Operand<type>::Element;
    const bool rows_of_k = p.layout_b == MatrixLayout::row_major;
    p.lda = aligned(k, sizeof(Element));
    p.ldb = aligned(rows_of_k ? n : k, sizeof(Element));
    p.a = filled<Element>(m, k, p.lda);
    using ElementB = typename Operand<of_b(type)>::Element;
    p.b = rows_of_k ? filled<ElementB>(k, n, p.ldb) : filled<ElementB>(n, k, p.ldb);
  });
  p.ldc = aligned(n, sizeof(float));
  cuda_check(cudaMalloc(&p.c, static_cast<size_t>(m) * p.ldc * sizeof(float)));

  std::string reason = why_not_on(rung.arch, device_limits().sm);
  if (reason.empty()) reason = rung.refuses(p);
  if (!reason.empty()) {
    std::printf("%s: waived: %s\n", rung.stem().c_str(), reason.c_str());
    return 77;
  }
  const Resources resources = rung.resources(p);
  cuda_check(cudaMalloc(&p.workspace, resources.workspace_bytes));
  cuda_check(cudaMalloc(&p.locks, resources.locks * sizeof(unsigned)));
  cuda_check(cudaMemset(p.locks, 0, resources.locks * sizeof(unsigned)));
  const float ms = milliseconds(rung, p);
  const int wrong = wrong_samples(p);
  std::printf("%s %s %dx%dx%d: %.4g ms, %.4g TFLOP/s, %d of %d sampled results wrong\n", rung.stem().c_str(),
              name(p.type).c_str(), m, n, k, ms, 2e-9 * m * n * k / ms, wrong, SAMPLES);
  return wrong > 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto size = [&](int i) { return argc == 4 ? std::atoi(argv[i]) : 0; };
  if (size(1) > 0 && size(2) > 0 && size(3) > 0) return run(size(1), size(2), size(3));
  std::fprintf(stderr, "usage: %s M N K\n", argv[0]);
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
