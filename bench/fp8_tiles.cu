// bin/fp8_tiles [--sim]: checksums of what wgmma of FP8 makes of random tiles, as CSV. bench/recorded has those of a GPU; a test compares
// the simulator's with them, so that it is known to sum FP8 as the hardware does, bit for bit.
//
//   operands  types of A and B
//   data      any: each pattern of bits but infinities and NaN; normal: standard normal; positive: their magnitudes, 16 times; sparse: three
//             of four are zero; small: normal, around the smallest numbers of E4M3
//   tiles     64 x 8 x 32, so many
//   checksum  FNV-1a of the bits of D = A B + C; a fifth of C is zero, the rest is around what the products sum up to
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
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

constexpr int M = 64, N = 8, K = 32;
enum class Data { any, normal, positive, sparse, small };
constexpr const char* data_names[] = {"any", "normal", "positive", "sparse", "small"};

struct Formats {
  Format a, b;
  const char* name;
  int tiles;
};
constexpr Formats formats[] = {{Format::e4m3, Format::e4m3, "e4m3 e4m3", 10000},
                               {Format::e5m2, Format::e4m3, "e5m2 e4m3", 1000},
                               {Format::e4m3, Format::e5m2, "e4m3 e5m2", 1000},
                               {Format::e5m2, Format::e5m2, "e5m2 e5m2", 1000}};

/// One warpgroup per tile: C[64][8] += A[64][32] B[8][32]'s transpose.
template <Format a_format, Format b_format>
__global__ void __launch_bounds__(128) multiply_tiles(const uint8_t* A, const uint8_t* B, float* C) {
  __shared__ __align__(1024) uint8_t sA[M * 128], sB[N * 128];  // of each row of 128 bytes the first 32 are used
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  A += blockIdx.x * size_t{M} * K, B += blockIdx.x * size_t{N} * K, C += blockIdx.x * size_t{M} * N;
  for (int i = threadIdx.x; i < M * K; i += 128) sA[swizzle_128b(i / K, i % K / 16) + i % 16] = A[i];
  for (int i = threadIdx.x; i < N * K; i += 128) sB[swizzle_128b(i / K, i % K / 16) + i % 16] = B[i];
  fence_proxy_async_shared();
  __syncthreads();
  float d[4];
  const auto c = [&](int i) -> float& {
    const auto [row, col] = mma_c(lane, i);
    return C[(warp * 16 + row) * N + col];
  };
  for (int i = 0; i < 4; ++i) d[i] = c(i);
  wgmma_fence();
  wgmma_m64n8k32<a_format, b_format>(d, descriptor(shared_address(sA)), descriptor(shared_address(sB)), 1);
  wgmma_commit_group();
  wgmma_wait_group<0>();
  for (int i = 0; i < 4; ++i) c(i) = d[i];
}

uint8_t operand(Data data, Format format, Random& random) {
  const auto any = [&] {
    uint8_t byte = 0;
    do byte = static_cast<uint8_t>(random.bits());
    while (format == Format::e4m3 ? (byte & 0x7F) == 0x7F : (byte & 0x7C) == 0x7C);
    return byte;
  };
  switch (data) {
    case Data::any:
      return any();
    case Data::normal:
      return rounded(random.normal(), format);
    case Data::positive:
      return rounded(16 * std::fabs(random.normal()), format);
    case Data::sparse:
      return random.bits() % 4 ? 0 : any();
    case Data::small:
      return rounded(0.01F * random.normal(), format);
  }
  return 0;
}

float old_result(Data data, Random& random) {
  if (random.bits() % 5 == 0) return 0;
  const float x = random.normal();
  switch (data) {
    case Data::any:
      return std::ldexp(x, static_cast<int>(random.bits() % 40) - 20);
    case Data::normal:
      return 4 * x;
    case Data::positive:
      return 3000 * std::fabs(x);
    case Data::sparse:
      return 10 * x;
    case Data::small:
      return 0.001F * x;
  }
  return 0;
}

uint64_t checksum(const Formats& types, Data data, int tiles) {
  Random random(static_cast<uint64_t>(&types - formats) * 8 + static_cast<uint64_t>(data) + 1);
  std::vector<uint8_t> a(size_t{M} * K * tiles), b(size_t{N} * K * tiles);
  std::vector<float> c(size_t{M} * N * tiles);
  for (uint8_t& x : a) x = operand(data, types.a, random);
  for (uint8_t& x : b) x = operand(data, types.b, random);
  for (float& x : c) x = old_result(data, random);
  const DeviceBuffer dA(a.size()), dB(b.size()), dC(c.size() * sizeof(float));
  cuda_check(cudaMemcpy(dA.as<uint8_t>(), a.data(), a.size(), cudaMemcpyHostToDevice));
  cuda_check(cudaMemcpy(dB.as<uint8_t>(), b.data(), b.size(), cudaMemcpyHostToDevice));
  cuda_check(cudaMemcpy(dC.as<float>(), c.data(), dC.bytes(), cudaMemcpyHostToDevice));
  const auto kernel = types.a == Format::e4m3   ? types.b == Format::e4m3 ? multiply_tiles<Format::e4m3, Format::e4m3>
                                                                          : multiply_tiles<Format::e4m3, Format::e5m2>
                        : types.b == Format::e4m3 ? multiply_tiles<Format::e5m2, Format::e4m3>
                                                : multiply_tiles<Format::e5m2, Format::e5m2>;
  kernel<<<tiles, 128>>>(dA.as<uint8_t>(), dB.as<uint8_t>(), dC.as<float>());
  cuda_check(cudaGetLastError());
  cuda_check(cudaMemcpy(c.data(), dC.as<float>(), dC.bytes(), cudaMemcpyDeviceToHost));
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const float x : c) {
    uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    hash = (hash ^ bits) * 0x100000001B3ULL;
  }
  return hash;
}

}  // namespace
}  // namespace ladder

int main(int count, char** arguments) {
  using namespace ladder;
  const bool sim = count == 2 && std::string(arguments[1]) == "--sim";
  if (count > 1 && !sim) {
    std::fprintf(stderr, "usage: fp8_tiles [--sim]\n");
    return exit_usage;
  }
  try {
    const std::string no_gpu = sim ? "--sim" : why_no_gpu();
    if (!no_gpu.empty() && !on_simulator()) restart_on_simulator(find_simulator(no_gpu), arguments);
    open_device(0);
    std::puts("operands,data,tiles,checksum");
    for (const Formats& types : formats)
      for (const Data data : {Data::any, Data::normal, Data::positive, Data::sparse, Data::small})
        std::printf("%s,%s,%d,%016llx\n", types.name, data_names[static_cast<int>(data)], types.tiles / 5,
                    static_cast<unsigned long long>(checksum(types, data, types.tiles / 5)));
  } catch (const Waived& error) {
    std::fprintf(stderr, "fp8_tiles: %s\n", error.what());
    return exit_waived;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fp8_tiles: %s\n", error.what());
    return exit_wrong;
  }
  return exit_ok;
}
