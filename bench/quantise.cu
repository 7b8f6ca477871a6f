// bin/quantise [--sim]: what it takes to make scaled E4M3 of a matrix (lib/quantise.cu), beside a copy of as many bytes, as CSV. Every
// result is compared with the CPU's, bit by bit. On the simulator, where there is no GPU, matrices are small and nothing is timed.
//
//   block     numbers that share a scale: all, row, 1x128, 128x128
//   type      of the matrix
//   rows, columns
//   wrong     bytes and scales that are not the CPU's
//   us        median of rounds in which it and two copies run once, in shuffled order, each on memory that L2 does not hold
//   copy_us   likewise a kernel that copies: it reads and writes half as many bytes each as quantising reads and writes in all, the
//             matrix counted once
//   memcpy_us likewise cudaMemcpyAsync
//   gb_per_s  these bytes over the time
//   of_copy   the time of the faster copy over that of quantising
//   device    GPU or simulator
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/fp8_operands.h"
#include "common/harness/device.h"
#include "common/harness/error.h"
#include "common/harness/operands.h"
#include "common/harness/simulator.h"
#include "common/harness/timing/measure.h"
#include "common/harness/timing/sm_clock.h"
#include "common/quantise.h"
#include "common/rung.h"
#include "common/types.h"
#include "lib/quantise.h"

namespace ladder {
namespace {

constexpr int ROUNDS = 31;

struct Size {
  int rows, columns;
};
constexpr Size ON_GPU[] = {{4096, 4096}, {8192, 8192}, {4096, 7168}, {128, 7168}};
constexpr Size ON_SIMULATOR[] = {{132, 264}, {7, 131}, {2, 40000}};

struct Named {
  const char* name;
  Block block;
};
constexpr Named BLOCKS[] = {
    {"all", Block::all}, {"row", Block::row}, {"1x128", Block::row_128}, {"128x128", Block::square}};

/// Four vectors of 16 bytes per thread.
__global__ void __launch_bounds__(256) copy(const uint4* from, uint4* to, int64_t count) {
  const int64_t first = blockIdx.x * int64_t{1024} + threadIdx.x;
  uint4 vectors[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * 256 < count) vectors[i] = from[first + i * 256];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * 256 < count) to[first + i * 256] = vectors[i];
}

/// A matrix on the host, as its elements are, and so many copies on the device that L2 does not hold the next.
struct Matrix {
  Type type;
  Size size;
  std::vector<float> x;
  DeviceBuffer data, to, scales;
  size_t bytes, moved;  // of a copy of the matrix; read and written, but for the scales
  int sets;

  Matrix(Type type, Size size, const Device& device) : type(type), size(size) {
    const size_t elements = static_cast<size_t>(size.rows) * size.columns;
    bytes = (elements * operand_bytes(type) + 255) / 256 * 256;
    moved = elements * (operand_bytes(type) + 1);
    sets = device.simulated ? 1 : static_cast<int>(2 * device.l2_bytes / bytes + 2);
    data = DeviceBuffer(sets * bytes), to = DeviceBuffer(sets * bytes), scales = DeviceBuffer(4 * elements);
    std::vector<char> host(bytes);
    x.resize(elements);
    Random random(103);
    visit(WholeByteTypes{}, type, [&]<Type of>() {
      using T = typename Operand<of>::Element;
      for (size_t i = 0; i < elements; ++i) {
        // A row and a square of small numbers, and a square of zeros
        const size_t row = i / size.columns, column = i % size.columns;
        const float scale = row == 1                    ? 0x1p-14F
                            : row < 128 && column < 128 ? 0.0F
                            : column % 640 < 128        ? 0x1p-9F
                                                        : 1.0F;
        const T element = from_float<T>(random.normal() * scale);
        x[i] = to_float(element);
        std::memcpy(&host[i * sizeof(T)], &element, sizeof(T));
      }
    });
    for (int set = 0; set < sets; ++set)
      cuda_check(cudaMemcpy(data.as<char>() + set * bytes, host.data(), bytes, cudaMemcpyDefault));
  }

  Quantisation quantisation(Block block, int set) const {
    return {.type = type,
            .block = block,
            .rows = size.rows,
            .columns = size.columns,
            .x = data.as<char>() + set * bytes,
            .ld = size.columns,
            .to = to.as<uint8_t>() + set * bytes,
            .ld_to = size.columns,
            .scale = scales.as<float>()};
  }
};

/// How many numbers and scales differ from the CPU's.
size_t wrong(const Matrix& matrix, Block block) {
  const Quantisation q = matrix.quantisation(block, 0);
  quantise(q, nullptr);
  std::vector<uint8_t> got(matrix.x.size());
  std::vector<float> scales(q.scales());
  cuda_check(cudaMemcpy(got.data(), q.to, got.size(), cudaMemcpyDefault));
  cuda_check(cudaMemcpy(scales.data(), q.scale, scales.size() * sizeof(float), cudaMemcpyDefault));
  const int high = block == Block::all ? q.rows : block == Block::square ? 128 : 1;
  const int wide = block == Block::all || block == Block::row ? q.columns : 128;
  size_t count = 0;
  for (int row = 0; row < q.rows; row += high)
    for (int column = 0; column < q.columns; column += wide) {
      const auto each = [&](auto&& f) {
        for (int i = row; i < std::min(row + high, q.rows); ++i)
          for (int j = column; j < std::min(column + wide, q.columns); ++j) f(static_cast<size_t>(i) * q.columns + j);
      };
      float largest = 0;
      each([&](size_t at) { largest = std::max(largest, std::fabs(matrix.x[at])); });
      const float scale = scale_of(largest);
      const int64_t at = block == Block::row_128  ? column / 128 * q.ld_scale() + row
                         : block == Block::square ? row / 128 * q.ld_scale() + column / 128
                                                  : row;
      count += scales[at] != scale;
      each([&](size_t at) { count += got[at] != quantised(matrix.x[at], 1 / scale); });
    }
  return count;
}

/// Medians in microseconds: all blocks, the copying kernel, cudaMemcpyAsync.
std::vector<double> measured(const Matrix& matrix) {
  cudaStream_t stream;
  cuda_check(cudaStreamCreate(&stream));
  const size_t half = matrix.moved / 2;
  const auto vectors = static_cast<int64_t>(half / sizeof(uint4));
  std::vector<std::function<void(int)>> contenders;
  for (const Named& named : BLOCKS)
    contenders.push_back([&, block = named.block](int set) { quantise(matrix.quantisation(block, set), stream); });
  contenders.push_back([&](int set) {
    const Quantisation q = matrix.quantisation(Block::all, set);
    copy<<<static_cast<unsigned>((vectors + 1023) / 1024), 256, 0, stream>>>(static_cast<const uint4*>(q.x),
                                                                             reinterpret_cast<uint4*>(q.to), vectors);
  });
  contenders.push_back([&](int set) {
    const Quantisation q = matrix.quantisation(Block::all, set);
    cuda_check(cudaMemcpyAsync(q.to, q.x, half, cudaMemcpyDeviceToDevice, stream));
  });

  const int count = static_cast<int>(contenders.size());
  std::vector<cudaEvent_t> events(2 * count);
  for (cudaEvent_t& event : events) cuda_check(cudaEventCreate(&event));
  std::vector<std::vector<double>> us(count);
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  int set = 0;
  for (int round = -2; round < ROUNDS; ++round) {  // two that are not counted
    std::shuffle(order.begin(), order.end(), random);
    hold(stream, 500'000);
    for (const int i : order) {
      cuda_check(cudaEventRecord(events[2 * i], stream));
      contenders[i](set);
      cuda_check(cudaEventRecord(events[2 * i + 1], stream));
      set = (set + 1) % matrix.sets;
    }
    cuda_check(cudaStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) {
      float ms;
      cuda_check(cudaEventElapsedTime(&ms, events[2 * i], events[2 * i + 1]));
      if (round >= 0) us[i].push_back(1e3 * ms);
    }
  }
  for (const cudaEvent_t event : events) cuda_check(cudaEventDestroy(event));
  cuda_check(cudaStreamDestroy(stream));
  std::vector<double> medians;
  for (const std::vector<double>& times : us) medians.push_back(quantile(times, 0.5));
  return medians;
}

/// Returns whether all is as the CPU has it.
bool print(Type type, Size size, const Device& device) {
  const Matrix matrix(type, size, device);
  const std::vector<double> us = device.simulated ? std::vector<double>{} : measured(matrix);
  bool right = true;
  for (size_t i = 0; i < std::size(BLOCKS); ++i) {
    const size_t count = wrong(matrix, BLOCKS[i].block);
    right = right && count == 0;
    std::printf("%s,%s,%d,%d,%zu,", BLOCKS[i].name, name(type).c_str(), size.rows, size.columns, count);
    if (us.empty()) {
      std::printf(",,,,,");
    } else {
      const double copied = us[std::size(BLOCKS)], memcpied = us[std::size(BLOCKS) + 1];
      std::printf("%.2f,%.2f,%.2f,%.0f,%.3f,", us[i], copied, memcpied, matrix.moved / us[i] * 1e-3,
                  std::min(copied, memcpied) / us[i]);
    }
    std::printf("%s\n", device.name.c_str());
    std::fflush(stdout);
  }
  return right;
}

}  // namespace
}  // namespace ladder

int main(int count, char** arguments) {
  using namespace ladder;
  const bool sim = count == 2 && std::string(arguments[1]) == "--sim";
  if (count > 1 && !sim) {
    std::fprintf(stderr, "usage: quantise [--sim]\n");
    return exit_usage;
  }
  bool right = true;
  try {
    const std::string no_gpu = sim ? "--sim" : why_no_gpu();
    if (!no_gpu.empty() && !on_simulator()) restart_on_simulator(find_simulator(no_gpu), arguments);
    const Device device = open_device(0);
    std::puts("block,type,rows,columns,wrong,us,copy_us,memcpy_us,gb_per_s,of_copy,device");
    for (const Type type : {Type::bf16, Type::f32, Type::f16}) {
      if (device.simulated)
        for (const Size size : ON_SIMULATOR) right = print(type, size, device) && right;
      else
        for (const Size size : ON_GPU) right = print(type, size, device) && right;
    }
  } catch (const Waived& error) {
    std::fprintf(stderr, "quantise: %s\n", error.what());
    return exit_waived;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quantise: %s\n", error.what());
    return exit_wrong;
  }
  return right ? exit_ok : exit_wrong;
}
