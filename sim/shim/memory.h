// Copies, for a graph, which does them later.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace sim {

/// The copy that the parameters describe.
std::function<void()> prepared_copy(const cudaMemcpy3DParms& parameters);

}  // namespace sim
