#include "gpu.h"

#include <algorithm>

namespace sim {
namespace {

constexpr size_t GiB = size_t{1} << 30;
constexpr int MiB = 1 << 20, KiB = 1 << 10;

// Limits by compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and
// cuda_occupancy.h in the CUDA Toolkit. The rest is published for each GPU in the paper that its entry names.
constexpr Gpu table[] = {
    // NVIDIA H100 Tensor Core GPU Architecture; NVIDIA H200 Tensor Core GPU, data sheet; memory, L2 and clocks as an H200
    // reports them. How its SMs are spread over GPCs is read off cudaOccupancyMaxActiveClusters, which there, on three cards, counted
    // 66 clusters of two, 30 of four and 15 of eight large blocks.
    {.key = "h200",
     .name = "Simulated NVIDIA H200 (PTX on the CPU)",
     .sm = 90,
     .sms = 132,
     .memory_bytes = 150'109'880'320,
     .memory_bus_bits = 6144,
     .l2_bytes = 60 * MiB,
     .ecc = true,
     .clock_khz = 1'980'000,
     .memory_clock_khz = 3'134'000,
     .fp32_to_fp64 = 2,
     .threads_per_sm = 2048,
     .blocks_per_sm = 32,
     .smem_per_sm = 228 * KiB,
     .smem_per_block_optin = 227 * KiB,
     .smem_reserved_per_block = 1 * KiB,
     .smem_granularity = 128,
     .cluster_blocks = 8,
     .cluster_blocks_nonportable = 16,
     .gpcs = {18, 18, 18, 18, 18, 16, 16, 10}},
    // NVIDIA H100 Tensor Core GPU Architecture; the SXM5 board with HBM3. How its SMs are spread over GPCs is taken from the H200, the
    // same chip.
    {.key = "h100",
     .name = "Simulated NVIDIA H100 (PTX on the CPU)",
     .sm = 90,
     .sms = 132,
     .memory_bytes = 80 * GiB,
     .memory_bus_bits = 5120,
     .l2_bytes = 50 * MiB,
     .ecc = true,
     .clock_khz = 1'980'000,
     .memory_clock_khz = 2'619'000,
     .fp32_to_fp64 = 2,
     .threads_per_sm = 2048,
     .blocks_per_sm = 32,
     .smem_per_sm = 228 * KiB,
     .smem_per_block_optin = 227 * KiB,
     .smem_reserved_per_block = 1 * KiB,
     .smem_granularity = 128,
     .cluster_blocks = 8,
     .cluster_blocks_nonportable = 16,
     .gpcs = {18, 18, 18, 18, 18, 16, 16, 10}},
    // NVIDIA Blackwell Tuning Guide (shared memory, L2, clusters); NVIDIA DGX B200, data sheet: 1440 GB and 64 TB/s in eight of them. The
    // clock is the one that public measurements name. Nobody here has one: how its SMs are spread over GPCs is not known, and the rest of
    // this entry was not compared with what one reports.
    {.key = "b200",
     .name = "Simulated NVIDIA B200 (PTX on the CPU)",
     .sm = 100,
     .sms = 148,
     .memory_bytes = 180'000'000'000,
     .memory_bus_bits = 8192,
     .l2_bytes = 126 * MiB,
     .ecc = true,
     .clock_khz = 1'965'000,
     .memory_clock_khz = 3'906'000,
     .fp32_to_fp64 = 2,
     .threads_per_sm = 2048,
     .blocks_per_sm = 32,
     .smem_per_sm = 228 * KiB,
     .smem_per_block_optin = 227 * KiB,
     .smem_reserved_per_block = 1 * KiB,
     .smem_granularity = 128,
     .cluster_blocks = 8,
     .cluster_blocks_nonportable = 16,
     .gpcs = {20, 20, 20, 18, 18, 18, 18, 16}},
    // NVIDIA A100 Tensor Core GPU Architecture; the A100 with 40 GB.
    {.key = "a100",
     .name = "Simulated NVIDIA A100 (PTX on the CPU)",
     .sm = 80,
     .sms = 108,
     .memory_bytes = 40 * GiB,
     .memory_bus_bits = 5120,
     .l2_bytes = 40 * MiB,
     .ecc = true,
     .clock_khz = 1'410'000,
     .memory_clock_khz = 1'215'000,
     .fp32_to_fp64 = 2,
     .threads_per_sm = 2048,
     .blocks_per_sm = 32,
     .smem_per_sm = 164 * KiB,
     .smem_per_block_optin = 163 * KiB,
     .smem_reserved_per_block = 1 * KiB,
     .smem_granularity = 128},
    // NVIDIA Ada GPU Architecture.
    {.key = "rtx4090",
     .name = "Simulated NVIDIA GeForce RTX 4090 (PTX on the CPU)",
     .sm = 89,
     .sms = 128,
     .memory_bytes = 24 * GiB,
     .memory_bus_bits = 384,
     .l2_bytes = 72 * MiB,
     .ecc = false,
     .clock_khz = 2'520'000,
     .memory_clock_khz = 10'501'000,
     .fp32_to_fp64 = 64,
     .threads_per_sm = 1536,
     .blocks_per_sm = 24,
     .smem_per_sm = 100 * KiB,
     .smem_per_block_optin = 99 * KiB,
     .smem_reserved_per_block = 1 * KiB,
     .smem_granularity = 128},
    // NVIDIA RTX Blackwell GPU Architecture (11 GPCs). Nobody here has one: how its SMs are spread over them is not known, nor its largest
    // cluster; 8 blocks are what every GPU with clusters has.
    {.key = "rtx5090",
     .name = "Simulated NVIDIA GeForce RTX 5090 (PTX on the CPU)",
     .sm = 120,
     .sms = 170,
     .memory_bytes = 32 * GiB,
     .memory_bus_bits = 512,
     .l2_bytes = 96 * MiB,
     .ecc = false,
     .clock_khz = 2'407'000,
     .memory_clock_khz = 14'001'000,
     .fp32_to_fp64 = 64,
     .threads_per_sm = 1536,
     .blocks_per_sm = 24,
     .smem_per_sm = 100 * KiB,
     .smem_per_block_optin = 99 * KiB,
     .smem_reserved_per_block = 1 * KiB,
     .smem_granularity = 128,
     .cluster_blocks = 8,
     .cluster_blocks_nonportable = 8,
     .gpcs = {16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 10}},
    // NVIDIA Turing GPU Architecture; NVIDIA T4, product brief.
    {.key = "t4",
     .name = "Simulated NVIDIA Tesla T4 (PTX on the CPU)",
     .sm = 75,
     .sms = 40,
     .memory_bytes = 16 * GiB,
     .memory_bus_bits = 256,
     .l2_bytes = 4 * MiB,
     .ecc = true,
     .clock_khz = 1'590'000,
     .memory_clock_khz = 5'001'000,
     .fp32_to_fp64 = 32,
     .threads_per_sm = 1024,
     .blocks_per_sm = 16,
     .smem_per_sm = 64 * KiB,
     .smem_per_block_optin = 64 * KiB,
     .smem_reserved_per_block = 0,
     .smem_granularity = 256},
};

}  // namespace

std::span<const Gpu> gpus() { return table; }

const Gpu* find_gpu(std::string_view key) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const Gpu& gpu) { return gpu.key == key; });
  return found == std::end(table) ? nullptr : found;
}

std::string gpu_names() {
  std::string names;
  for (const Gpu& gpu : table) names += (names.empty() ? "" : ", ") + std::string(gpu.key);
  return names;
}

}  // namespace sim
