// The simulator counts the wavefronts that the model of common/banks.h has.
#include <random>

#include "common/banks.h"
#include "common/harness/simulator.h"
#include "common/rung.h"
#include "tests/gpu/gpu_test.h"

namespace {

constexpr int words = 5120, threads = 32;

/// One warp fills its shared memory, 32 words at a time, and makes one load of this width.
template <class Loaded>
__global__ void one_load(const int* first_word, Loaded* loaded) {
  __shared__ alignas(16) float tile[words];
  for (int i = int(threadIdx.x); i < words; i += threads) tile[i] = 0;
  __syncwarp();
  loaded[threadIdx.x] = *reinterpret_cast<const Loaded*>(tile + first_word[threadIdx.x]);
}

void launch(const ladder::WarpAccess& access, const int* first_word, float* loaded) {
  if (access.width == 1) one_load<<<1, threads>>>(first_word, loaded);
  if (access.width == 2) one_load<<<1, threads>>>(first_word, reinterpret_cast<float2*>(loaded));
  if (access.width == 4) one_load<<<1, threads>>>(first_word, reinterpret_cast<float4*>(loaded));
}

ladder::WarpAccess random_access(std::mt19937& random) {
  ladder::WarpAccess access{1 << random() % 3, {}};
  const int pattern = int(random() % 4), stride = int(random() % 40);
  for (int l = 0; l < 32; ++l)
    access.word[l] = access.width * (pattern == 0   ? int(random() % 128)
                                     : pattern == 1 ? l * stride
                                     : pattern == 2 ? l / 2 * stride
                                                    : (l & ~2) * stride);
  return access;
}

TEST(Banks, TheSimulatorCountsTheWavefrontsOfTheModel) {
  if (!ladder::on_simulator()) GTEST_SKIP() << "this is about the simulator";
  int* first_word;
  float* loaded;
  ladder::cuda_check(cudaMalloc(&first_word, sizeof(ladder::WarpAccess::word)));
  ladder::cuda_check(cudaMalloc(&loaded, threads * sizeof(float4)));
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const ladder::WarpAccess access = random_access(random);
    ladder::cuda_check(cudaMemcpy(first_word, access.word, sizeof access.word, cudaMemcpyHostToDevice));
    const CudaSimCounts counts = ladder::count_launches([&] { launch(access, first_word, loaded); });
    ladder::cuda_check(cudaGetLastError());
    ASSERT_EQ(counts.shared_wavefronts, words / 32 + ladder::wavefronts(access).count);
  }
  ladder::cuda_check(cudaFree(loaded));
  ladder::cuda_check(cudaFree(first_word));
}

}  // namespace
