// bin/fp8_sums [--sim]: what long sums of FP8 by wgmma cost in accuracy, as CSV. Runs on a GPU, or on the simulator where there is none; a
// test compares the two. Chapter 41 draws bench/recorded's copy of what it prints.
//
//   sums     straight: wgmma m64n8k32 of E4M3 adds all of K to one accumulator; promoted: each 128 of K are summed from zero and added to FP32
//            registers
//   data     normal: standard normal; positive: their magnitudes
//   k        length of the sums; there are 16 tiles of 64 x 8 of them
//   rms      root mean square of the errors, relative to that of the exact results
//   bias     mean error, relative to the mean sum of |a b|
//   largest  largest error of a result, relative to its sum of |a b|, as the harness's check has it
//   device   GPU or simulator
// Errors are against exact sums of the operands as E4M3 has them: FP64 holds those of up to 2^17 products.
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/fp8_operands.h"
#include "common/harness/device.h"
#include "common/harness/error.h"
#include "common/harness/operands.h"
#include "common/harness/simulator.h"
#include "common/hopper/descriptor.h"
#include "common/layout.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/mma.h"
#include "common/ptx/shared_address.h"
#include "common/ptx/wgmma.h"
#include "common/rung.h"

namespace ladder {
namespace {

constexpr int M = 64, N = 8, K = 16384, TILES = 16;
constexpr int BK = 128, SHOWN = 8;  // k tile; K = 128, 256, ... 16384 are shown
constexpr int RESULTS = TILES * M * N;

/// One warpgroup per tile: the sums over the first 128, 256, ... of A (64 x K) times B (8 x K) transposed. C: [shown][tile][64][8].
__global__ void __launch_bounds__(128)
    sum_tiles(const uint8_t* A, const uint8_t* B, float* straight_sums, float* promoted_sums) {
  __shared__ __align__(1024) uint8_t sA[M * BK], sB[N * BK];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  A += blockIdx.x * size_t{M} * K, B += blockIdx.x * size_t{N} * K;
  float straight[4] = {}, promoted[4] = {};
  for (int k = 0, shown = 0; k < K; k += BK) {
    for (int i = threadIdx.x; i < M * BK; i += 128)
      sA[swizzle_128b(i / BK, i % BK / 16) + i % 16] = A[i / BK * size_t{K} + k + i % BK];
    for (int i = threadIdx.x; i < N * BK; i += 128)
      sB[swizzle_128b(i / BK, i % BK / 16) + i % 16] = B[i / BK * size_t{K} + k + i % BK];
    fence_proxy_async_shared();
    __syncthreads();
    float fresh[4] = {};
    wgmma_fence();
    for (int k_step = 0; k_step < BK / 32; ++k_step) {
      const uint64_t a = descriptor(shared_address(sA)) + k_step * 2, b = descriptor(shared_address(sB)) + k_step * 2;
      wgmma_m64n8k32<Format::e4m3, Format::e4m3>(straight, a, b, 1);
      wgmma_m64n8k32<Format::e4m3, Format::e4m3>(fresh, a, b, 1);
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
    __syncthreads();  // before the next k tile is copied
    for (int i = 0; i < 4; ++i) promoted[i] += fresh[i];
    if (k + BK != BK << shown) continue;
    for (int i = 0; i < 4; ++i) {
      const auto [row, col] = mma_c(lane, i);
      const int at = (shown * TILES + blockIdx.x) * M * N + (warp * 16 + row) * N + col;
      straight_sums[at] = straight[i], promoted_sums[at] = promoted[i];
    }
    ++shown;
  }
}

/// E4M3 as they lie in memory.
std::vector<uint8_t> operands(size_t count, bool positive, Random& random) {
  std::vector<uint8_t> numbers(count);
  for (uint8_t& number : numbers) {
    const float x = random.normal();
    number = rounded(positive ? std::fabs(x) : x, Format::e4m3);
  }
  return numbers;
}

std::vector<double> exact(const std::vector<uint8_t>& bytes) {
  std::vector<double> numbers;
  for (const uint8_t byte : bytes) numbers.push_back(__half2float(__half(__nv_cvt_fp8_to_halfraw(byte, __NV_E4M3))));
  return numbers;
}

/// Of each sum that is shown, exactly: the products, and their magnitudes.
struct Exact {
  Exact(const std::vector<uint8_t>& a_bytes, const std::vector<uint8_t>& b_bytes) {
    const std::vector<double> a = exact(a_bytes), b = exact(b_bytes);
    for (int i = 0; i < RESULTS; ++i) {
      const double *row = &a[static_cast<size_t>(i / N) * K],
                   *col = &b[static_cast<size_t>(i / (M * N) * N + i % N) * K];
      double sum = 0, magnitude = 0;
      for (int k = 0, shown = 0; k < K; ++k) {
        sum += row[k] * col[k], magnitude += std::fabs(row[k] * col[k]);
        if (k + 1 != BK << shown) continue;
        sums[shown * RESULTS + i] = sum, magnitudes[shown * RESULTS + i] = magnitude;
        ++shown;
      }
    }
  }
  std::vector<double> sums = std::vector<double>(SHOWN * RESULTS), magnitudes = sums;
};

void print(const char* name, bool positive, const Exact& exact, const DeviceBuffer& sums, const std::string& device) {
  std::vector<float> got(SHOWN * RESULTS);
  cuda_check(cudaMemcpy(got.data(), sums.as<float>(), sums.bytes(), cudaMemcpyDeviceToHost));
  for (int shown = 0; shown < SHOWN; ++shown) {
    double errors = 0, squares = 0, results = 0, magnitudes = 0, largest = 0;
    for (int i = shown * RESULTS; i < (shown + 1) * RESULTS; ++i) {
      const double error = got[i] - exact.sums[i];
      errors += error, squares += error * error;
      results += exact.sums[i] * exact.sums[i], magnitudes += exact.magnitudes[i];
      largest = std::fmax(largest, std::fabs(error) / exact.magnitudes[i]);
    }
    std::printf("%s,%s,%d,%.4g,%.4g,%.4g,%s\n", name, positive ? "positive" : "normal", BK << shown,
                std::sqrt(squares / results), errors / magnitudes, largest, device.c_str());
  }
}

void measure(bool positive, const std::string& device) {
  Random random(positive ? 102 : 101);
  const std::vector<uint8_t> a = operands(size_t{TILES} * M * K, positive, random),
                             b = operands(size_t{TILES} * N * K, positive, random);
  const DeviceBuffer dA(a.size()), dB(b.size()), straight(SHOWN * RESULTS * sizeof(float)), promoted(straight.bytes());
  cuda_check(cudaMemcpy(dA.as<uint8_t>(), a.data(), a.size(), cudaMemcpyHostToDevice));
  cuda_check(cudaMemcpy(dB.as<uint8_t>(), b.data(), b.size(), cudaMemcpyHostToDevice));
  sum_tiles<<<TILES, 128>>>(dA.as<uint8_t>(), dB.as<uint8_t>(), straight.as<float>(), promoted.as<float>());
  cuda_check(cudaGetLastError());
  const Exact exact(a, b);
  print("straight", positive, exact, straight, device);
  print("promoted", positive, exact, promoted, device);
}

}  // namespace
}  // namespace ladder

int main(int count, char** arguments) {
  using namespace ladder;
  const bool sim = count == 2 && std::string(arguments[1]) == "--sim";
  if (count > 1 && !sim) {
    std::fprintf(stderr, "usage: fp8_sums [--sim]\n");
    return exit_usage;
  }
  try {
    const std::string no_gpu = sim ? "--sim" : why_no_gpu();
    if (!no_gpu.empty() && !on_simulator()) restart_on_simulator(find_simulator(no_gpu), arguments);
    const std::string device = open_device(0).name;
    std::puts("sums,data,k,rms,bias,largest,device");
    for (const bool positive : {false, true}) measure(positive, device);
  } catch (const Waived& error) {
    std::fprintf(stderr, "fp8_sums: %s\n", error.what());
    return exit_waived;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fp8_sums: %s\n", error.what());
    return exit_wrong;
  }
  return exit_ok;
}
