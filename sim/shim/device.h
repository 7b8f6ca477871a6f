// The described GPU: an NVIDIA H200 in figures that a program can ask for. Nothing here is about time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace sim::h200 {

constexpr const char* name = "Simulated NVIDIA H200 (PTX on the CPU)";
constexpr const char* pci_bus_id = "0000:00:00.0";
constexpr int sm = 90;
constexpr size_t memory_bytes = 150'109'880'320;

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0.
constexpr int sm_count = 132;
constexpr int warp_size = 32;
constexpr int max_threads_per_block = 1024;
constexpr int max_block[3] = {1024, 1024, 64};
constexpr int max_grid[3] = {2147483647, 65535, 65535};
constexpr int max_threads_per_sm = 2048;
constexpr int max_blocks_per_sm = 32;
constexpr int registers_per_sm = 65536;
constexpr int smem_per_block = 48 * 1024;         // without asking for more
constexpr int smem_per_block_optin = 227 * 1024;  // with cudaFuncSetAttribute
constexpr int smem_per_sm = 228 * 1024;
constexpr int smem_reserved_per_block = 1024;  // by the system, from sm_80 on
constexpr int smem_granularity = 128;
constexpr int constant_bytes = 64 * 1024;
constexpr int max_cluster_blocks = 8;  // portable
constexpr int max_cluster_blocks_nonportable = 16;
constexpr int sms_per_gpc = 16;  // a cluster lies within one GPC; some have 18, which a program cannot count on

/// An attribute of the device; false where the described GPU has no figure for it.
bool attribute(cudaDeviceAttr attribute, int* value);

}  // namespace sim::h200
