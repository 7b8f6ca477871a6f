// What a program may ask the simulator about its own launches. The simulator's library exports these functions beside
// those of the runtime. A program looks them up with dlsym, and where they are not there, it runs on a GPU.
#pragma once

#include <cstdint>

/// Sums over launches. They depend on the program and its input alone.
struct CudaSimCounts {
  uint64_t launches;
  uint64_t warp_instructions;     ///< of PTX
  uint64_t flops;                 ///< of all units; an FMA is two
  uint64_t global_load_sectors;   ///< of 32 bytes
  uint64_t global_load_bytes;     ///< that the lanes asked for
  uint64_t global_store_sectors;  ///< of 32 bytes
  uint64_t global_store_bytes;    ///< that the lanes asked for
  uint64_t shared_wavefronts;     ///< loads and stores
  uint64_t shared_ideal;          ///< the fewest wavefronts for as many bytes
  uint64_t barriers;              ///< warps that arrived at a block's barrier
  uint64_t tensor_products;       ///< tcgen05.mma
  uint64_t tensor_operand_bytes;  ///< of shared memory that they read
  uint64_t tensor_load_bytes;     ///< of tensor memory, by tcgen05.ld
  uint64_t tensor_store_bytes;    ///< and by tcgen05.st
};

extern "C" {

/// Launches are counted from here on, from zero; and before the first of these calls, too.
void cudaSimStartCounting();

/// Launches are no longer counted, here and in the file of GEMM_LADDER_SIM_COUNTS; `counts` is what they were.
void cudaSimStopCounting(CudaSimCounts* counts);

/// The simulator's report on the kernel fault that made the runtime's calls fail; "" where there was none.
const char* cudaSimFaultReport();
}
