// A launch that is ready to run: for a graph, which runs it later.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace sim {

/// Decides what is left to chance, another one each time. GEMM_LADDER_SIM_SEED repeats a run.
uint64_t next_seed();

/// A launch of a kernel with these arguments, which are copied now.
std::function<void()> prepared_launch(const void* function, const cudaLaunchConfig_t& configuration, void** arguments);

}  // namespace sim
