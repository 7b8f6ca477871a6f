// Graphs, captured or made node by node: nodes with what they wait for. A launch runs them one after another, in one of the orders that the graph permits.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

struct CUgraph_st;

struct CUgraphNode_st {
  cudaGraphNodeType type;
  std::function<void()> work;          ///< empty: nothing to do. May throw what a call throws
  std::vector<cudaGraphNode_t> after;  ///< these come first
  CUgraph_st* graph;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;

  cudaGraphNode_t add(cudaGraphNodeType type, std::function<void()> work, std::vector<cudaGraphNode_t> after);
};

namespace sim {

/// Makes a graph that the program can use, and must destroy.
cudaGraph_t new_graph();

/// Also of one that is still being captured.
void destroy_graph(cudaGraph_t graph);

}  // namespace sim
