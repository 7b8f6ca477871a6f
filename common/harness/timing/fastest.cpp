#include "common/harness/timing/fastest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/rung.h"

namespace ladder {
namespace {

/// Median of `runs` runs after one that is not counted.
float median_ms(const std::function<void()>& run, int runs, cudaStream_t stream) {
  cudaEvent_t start, stop;
  cuda_check(cudaEventCreate(&start));
  cuda_check(cudaEventCreate(&stop));
  std::vector<float> ms(runs);
  run();
  for (float& time : ms) {
    cuda_check(cudaEventRecord(start, stream));
    run();
    cuda_check(cudaEventRecord(stop, stream));
    cuda_check(cudaEventSynchronize(stop));
    cuda_check(cudaEventElapsedTime(&time, start, stop));
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::nth_element(ms.begin(), ms.begin() + runs / 2, ms.end());
  return ms[runs / 2];
}

}  // namespace

std::optional<size_t> fastest(size_t count, const std::function<void(size_t)>& run, cudaStream_t stream) {
  std::vector<std::pair<float, size_t>> timed;
  const auto time = [&](size_t i, int runs) { return median_ms([&] { run(i); }, runs, stream); };
  for (size_t i = 0; i < count; ++i) timed.emplace_back(time(i, 1), i);
  std::sort(timed.begin(), timed.end());
  if (timed.size() > 4) timed.resize(4);
  for (auto& [ms, i] : timed) ms = time(i, 7);
  std::sort(timed.begin(), timed.end());
  return timed.empty() ? std::nullopt : std::optional(timed.front().second);
}

}  // namespace ladder
