// The GPUs that the simulator can describe: what a program asks of its device, it is told of one of these. A described GPU
// decides which launches fit and which PTX is taken. It changes no count and no result.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sim {

struct Gpu {
  std::string_view key;  ///< its name in GEMM_LADDER_SIM_GPU
  const char* name;      ///< as cudaDeviceProp::name

  int sm;   ///< compute capability: 90 for 9.0
  int sms;  ///< multiprocessors
  size_t memory_bytes;
  int memory_bus_bits;
  int l2_bytes;
  bool ecc;
  int clock_khz, memory_clock_khz;  ///< for what is reported, since nothing is timed
  int fp32_to_fp64;                 ///< throughput of single over that of double precision

  int threads_per_sm, blocks_per_sm;
  int smem_per_sm;
  int smem_per_block_optin;     ///< with cudaFuncSetAttribute
  int smem_reserved_per_block;  ///< by the system
  int smem_granularity;

  // Only for a GPU with thread block clusters.
  int cluster_blocks = 1, cluster_blocks_nonportable = 1;  ///< the largest cluster
  std::array<int, 16> gpcs{};                              ///< SMs of each; a cluster lies within one

  // What is the same on all of them.
  static constexpr int warp_size = 32;
  static constexpr int max_threads_per_block = 1024;
  static constexpr int max_block[3] = {1024, 1024, 64};
  static constexpr int max_grid[3] = {2147483647, 65535, 65535};
  static constexpr int registers_per_sm = 65536;
  static constexpr int smem_per_block = 48 * 1024;  ///< without asking for more
  static constexpr int constant_bytes = 64 * 1024;

  bool has_clusters() const { return cluster_blocks > 1; }
};

/// All of them; the first one is described where nothing else is asked for.
std::span<const Gpu> gpus();

/// Null where there is none of that name.
const Gpu* find_gpu(std::string_view key);

/// Their names: "h200, a100, ...".
std::string gpu_names();

}  // namespace sim
