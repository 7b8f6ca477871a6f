// Memory that streams and graphs take.
#pragma once

#include <cstddef>
#include <functional>

namespace sim {

/// Memory that cudaMallocAsync gave out is gone.
void left_pool(void* pointer);

/// Memory that a graph takes when it runs, and the work of the nodes that take it and free it.
void* graph_memory(size_t bytes);
std::function<void()> take_graph_memory(void* memory);
std::function<void()> free_graph_memory(void* memory);

}  // namespace sim
