// bin/accuracy [--sim]: what the sums and the operands of the tensor cores cost in accuracy, as CSV. Runs on a GPU, or
// on the simulator where there is none. Chapters 09 and 10 show bench/recorded's copy of what it prints.
//
//   what     f32: FP16 operands, FP32 sums (mma.sync.m16n8k16.f32.f16.f16.f32). f32_to_f16: the same, rounded to FP16 at
//            the end. f16: FP16 sums (mma.sync.m16n8k16.f16.f16.f16.f16). tf32_rounded: FP32 operands, rounded to TF32
//            by cvt.rna, FP32 sums. tf32_cut: the same operands as they are; the tensor cores cut them to TF32
//   data     normal: standard normal; positive: uniform in 0 to 1
//   k        length of the sums; there are 128 x 128 of them
//   rms      root mean square of the errors, relative to that of the exact results
//   shrink   by how much results are too small: the regression of the errors on the exact results, sign turned
//   largest  largest error of an element relative to its sum of |a b|, as the harness's check has it
//   bound    what the check allows of FP32 sums (common/harness/check/bound.h)
//   device   GPU or simulator
// Errors are against FP64 products of the operands as they lie in memory: of TF32, before they are rounded or cut.
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "common/harness/check/bound.h"
#include "common/harness/device.h"
#include "common/harness/error.h"
#include "common/harness/operands.h"
#include "common/harness/simulator.h"
#include "common/layout.h"
#include "common/ptx/mma.h"
#include "common/rung.h"

namespace ladder {
namespace {

constexpr int size = 128;  // M and N
enum class What { f32, f32_to_f16, f16, tf32_rounded, tf32_cut };
constexpr What kinds[] = {What::f32, What::f32_to_f16, What::f16, What::tf32_rounded, What::tf32_cut};
constexpr const char* names[] = {"f32", "f32_to_f16", "f16", "tf32_rounded", "tf32_cut"};
constexpr LADDER_HOST_DEVICE bool is_tf32(What what) { return what == What::tf32_rounded || what == What::tf32_cut; }

/// One warp per tile of 16 x 8 of C. A is M x K and B is N x K, both in rows of `words` words of 32 bits.
template <What what>
__global__ void __launch_bounds__(32) product(const uint32_t* A, const uint32_t* B, float* C, int words) {
  const int lane = threadIdx.x, row = blockIdx.x / (size / 8) * 16, col = blockIdx.x % (size / 8) * 8;
  float d[4] = {};
  uint32_t half[2] = {};
  for (int k = 0; k < words; k += 8) {
    uint32_t a[4], b[2];
    for (int r = 0; r < 4; ++r) a[r] = A[(row + mma_a(lane, r).row) * words + k + mma_a(lane, r).col];
    for (int r = 0; r < 2; ++r) b[r] = B[(col + mma_b(lane, r).row) * words + k + mma_b(lane, r).col];
    if constexpr (what == What::tf32_rounded) {
      for (uint32_t& word : a) word = cvt_rna_tf32_f32(word);
      for (uint32_t& word : b) word = cvt_rna_tf32_f32(word);
    }
    if constexpr (is_tf32(what))
      mma_m16n8k8_f32_tf32(d, a, b);
    else if constexpr (what == What::f16)
      mma_m16n8k16_f16_f16(half, a, b);
    else
      mma_m16n8k16_f32_f16(d, a, b);
  }
  for (int r = 0; r < 4; ++r) {
    const auto [m, n] = mma_c(lane, r);
    if constexpr (what == What::f16)
      d[r] = __half2float(__ushort_as_half(static_cast<unsigned short>(half[r / 2] >> r % 2 * 16)));
    if constexpr (what == What::f32_to_f16) d[r] = __half2float(__float2half_rn(d[r]));
    C[(row + m) * size + col + n] = d[r];
  }
}

/// `count` numbers as they lie in memory, and as FP64.
struct Numbers {
  Numbers(size_t count, bool tf32, bool positive, unsigned seed) : memory(tf32 ? count : count / 2), exact(count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform;
    for (size_t i = 0; i < count; ++i) {
      const float x = positive ? uniform(random) : normal(random);
      const __half h = __float2half_rn(x);
      if (tf32)
        std::memcpy(&memory[i], &x, sizeof x);
      else
        std::memcpy(reinterpret_cast<char*>(memory.data()) + i * sizeof h, &h, sizeof h);
      exact[i] = tf32 ? x : __half2float(h);
    }
  }
  DeviceBuffer upload() const {
    DeviceBuffer buffer(memory.size() * sizeof(uint32_t));
    cuda_check(cudaMemcpy(buffer.as<void>(), memory.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    return buffer;
  }
  std::vector<uint32_t> memory;
  std::vector<double> exact;
};

void launch(What what, const DeviceBuffer& a, const DeviceBuffer& b, DeviceBuffer& c, int words) {
  const auto kernel = what == What::f32            ? product<What::f32>
                      : what == What::f32_to_f16   ? product<What::f32_to_f16>
                      : what == What::f16          ? product<What::f16>
                      : what == What::tf32_rounded ? product<What::tf32_rounded>
                                                   : product<What::tf32_cut>;
  kernel<<<size / 16 * (size / 8), 32>>>(a.as<uint32_t>(), b.as<uint32_t>(), c.as<float>(), words);
  cuda_check(cudaGetLastError());
}

void measure(What what, bool positive, int k, const std::string& device) {
  const bool tf32 = is_tf32(what);
  const Numbers a(static_cast<size_t>(size) * k, tf32, positive, 1),
      b(static_cast<size_t>(size) * k, tf32, positive, 2);
  DeviceBuffer c(size * size * sizeof(float));
  launch(what, a.upload(), b.upload(), c, tf32 ? k : k / 2);
  std::vector<float> got(size * size);
  cuda_check(cudaMemcpy(got.data(), c.as<float>(), c.bytes(), cudaMemcpyDeviceToHost));

  double errors = 0.0, together = 0.0, results = 0.0, largest = 0.0;
  for (int i = 0; i < size * size; ++i) {
    const double *row = &a.exact[static_cast<size_t>(i / size) * k], *col = &b.exact[static_cast<size_t>(i % size) * k];
    double exact = 0.0, scale = 0.0;
    for (int j = 0; j < k; ++j) exact += row[j] * col[j], scale += std::fabs(row[j] * col[j]);
    const double error = got[i] - exact;
    errors += error * error, together += error * exact, results += exact * exact;
    largest = std::fmax(largest, std::fabs(error) / scale);
  }
  const double bound = error_bound(tf32 ? Type::tf32 : Type::f16, Out::f32, k, ReferenceSum::fp64).gamma;
  std::printf("%s,%s,%d,%.3g,%.3g,%.3g,%.3g,%s\n", names[static_cast<int>(what)], positive ? "positive" : "normal", k,
              std::sqrt(errors / results), -together / results, largest, bound, device.c_str());
}

}  // namespace
}  // namespace ladder

int main(int count, char** arguments) {
  using namespace ladder;
  const bool sim = count == 2 && std::string(arguments[1]) == "--sim";
  if (count > 1 && !sim) {
    std::fprintf(stderr, "usage: accuracy [--sim]\n");
    return exit_usage;
  }
  try {
    const std::string no_gpu = sim ? "--sim" : why_no_gpu();
    if (!no_gpu.empty() && !on_simulator()) restart_on_simulator(find_simulator(no_gpu), arguments);
    const std::string device = open_device(0).name;
    std::puts("what,data,k,rms,shrink,largest,bound,device");
    for (const What what : kinds)
      for (const bool positive : {false, true})
        for (const int k : {512, 4096}) measure(what, positive, k, device);
  } catch (const Waived& error) {
    std::fprintf(stderr, "accuracy: %s\n", error.what());
    return exit_waived;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "accuracy: %s\n", error.what());
    return exit_wrong;
  }
  return exit_ok;
}
