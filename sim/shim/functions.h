// The device that the simulated runtime presents: the GPU that GEMM_LADDER_SIM_GPU describes.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu.h"

namespace sim {

/// Within a call of the runtime.
const Gpu& described_gpu();

}  // namespace sim
