// How many blocks and clusters of a kernel fit on the described GPU.
#pragma once

#include "shim/modules.h"

namespace sim {

/// The largest cluster that its blocks can form.
int max_cluster_blocks(const Kernel& kernel);

/// The clusters that a launch asks for, by its attribute or by the kernel's __cluster_dims__; without either
/// 1 x 1 x 1. Throws cudaErrorInvalidClusterSize where it is too large or does not divide the grid.
Extent cluster_of(const Kernel& kernel, const cudaLaunchConfig_t& configuration);

/// How many clusters of blocks of `threads` threads run at the same time.
int resident_clusters(const Kernel& kernel, const Extent& cluster, int threads, size_t dynamic_smem);

}  // namespace sim
