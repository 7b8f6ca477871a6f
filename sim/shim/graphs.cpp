// Graphs (CUDA C++ Programming Guide, "CUDA Graphs"), captured or made node by node. A graph that is instantiated keeps what
// each node does. A launch runs the nodes one after another: in another order with every seed, where the graph leaves it open.
#include "shim/graphs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "shim/launch.h"
#include "shim/memory.h"
#include "shim/pools.h"
#include "shim/runtime.h"
#include "shim/streams.h"

struct CUgraphExec_st {
  struct Node {
    cudaGraphNode_t made_from;
    cudaGraphNodeType type;
    std::function<void()> work;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};

cudaGraphNode_t CUgraph_st::add(cudaGraphNodeType type, std::function<void()> work,
                                std::vector<cudaGraphNode_t> after) {
  nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{type, std::move(work), std::move(after), this}));
  return nodes.back().get();
}

namespace sim {
namespace {

std::set<cudaGraph_t> graphs;
std::set<cudaGraphExec_t> instances;

void require_graph(cudaGraph_t graph) { require(graphs.contains(graph)); }

CUgraphNode_st& find_node(cudaGraphNode_t node) {
  for (const cudaGraph_t graph : graphs)
    for (const auto& one : graph->nodes)
      if (one.get() == node) return *node;
  throw CallFailed{cudaErrorInvalidValue};
}

/// The node of an instance that was made from `node`.
CUgraphExec_st::Node& find_node(cudaGraphExec_t instance, cudaGraphNode_t node, cudaGraphNodeType type) {
  require(instances.contains(instance));
  for (auto& one : instance->nodes)
    if (one.made_from == node && one.type == type) return one;
  throw CallFailed{cudaErrorInvalidValue};
}

/// Orders `nodes` so that each comes after what it waits for: an error where they wait in a circle.
template <class After>
std::vector<size_t> ordered(size_t nodes, const After& after, std::mt19937_64& random) {
  std::vector<size_t> order, ready;
  std::vector<size_t> missing(nodes);
  std::vector<std::vector<size_t>> then(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    for (const size_t before : after(i)) then[before].push_back(i);
    missing[i] = after(i).size();
    if (!missing[i]) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t next = ready.back();
    ready.pop_back();
    order.push_back(next);
    for (const size_t i : then[next])
      if (!--missing[i]) ready.push_back(i);
  }
  require(order.size() == nodes);
  return order;
}

std::vector<size_t> order_of(const CUgraphExec_st& instance, std::mt19937_64& random) {
  return ordered(
      instance.nodes.size(), [&](size_t i) -> const std::vector<size_t>& { return instance.nodes[i].after; }, random);
}

CUgraphExec_st instantiated(const CUgraph_st& graph) {
  CUgraphExec_st instance;
  std::map<cudaGraphNode_t, size_t> index;
  for (const auto& node : graph.nodes) index.emplace(node.get(), index.size());
  for (const auto& node : graph.nodes) {
    std::vector<size_t> after;
    for (const cudaGraphNode_t before : node->after) after.push_back(index.at(before));
    instance.nodes.push_back({node.get(), node->type, node->work, std::move(after)});
  }
  std::mt19937_64 random;
  order_of(instance, random);
  return instance;
}

/// One node after another. A graph within another one is such a function, too.
void run(const CUgraphExec_st& instance) {
  std::mt19937_64 random(next_seed());
  for (const size_t i : order_of(instance, random))
    if (instance.nodes[i].work) instance.nodes[i].work();
}

cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                     cudaGraphNodeType type, const std::function<std::function<void()>()>& work) {
  return call([&] {
    require_graph(graph);
    require(node && (after || !count));
    std::vector<cudaGraphNode_t> before(after, after + count);
    for (const cudaGraphNode_t one : before) require(find_node(one).graph == graph);
    *node = graph->add(type, work(), std::move(before));
  });
}

std::function<void()> kernel_work(const cudaKernelNodeParams* parameters) {
  require(parameters);
  if (parameters->extra) not_supported("a kernel node with its arguments in one buffer (extra)");
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = parameters->gridDim;
  configuration.blockDim = parameters->blockDim;
  configuration.dynamicSmemBytes = parameters->sharedMemBytes;
  return prepared_launch(parameters->func, configuration, parameters->kernelParams);
}

std::function<void()> copy_work(const cudaMemcpy3DParms* parameters) {
  require(parameters);
  return prepared_copy(*parameters);
}

std::function<void()> copy_work(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parameters = {};
  parameters.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  parameters.dstPtr = {to, bytes, bytes, 1};
  parameters.extent = {bytes, 1, 1};
  parameters.kind = kind;
  return prepared_copy(parameters);
}

std::function<void()> fill_work(const cudaMemsetParams* given) {
  require(given);
  const cudaMemsetParams parameters = *given;
  const unsigned size = parameters.elementSize;
  require(size == 1 || size == 2 || size == 4);
  return [parameters, size] {
    for (size_t row = 0; row < parameters.height; ++row) {
      std::byte* const to = static_cast<std::byte*>(parameters.dst) + row * parameters.pitch;
      require(runtime().memory.contains(reinterpret_cast<uint64_t>(to), parameters.width * size));
      for (size_t i = 0; i < parameters.width; ++i) std::memcpy(to + i * size, &parameters.value, size);
      runtime().memory.wrote(reinterpret_cast<uint64_t>(to), parameters.width * size);
    }
  };
}

std::function<void()> host_work(const cudaHostNodeParams* parameters) {
  require(parameters && parameters->fn);
  return [function = parameters->fn, data = parameters->userData] { function(data); };
}

/// Fills a list whose length the program asks for first, with a null pointer.
void give(const std::vector<cudaGraphNode_t>& found, cudaGraphNode_t* nodes, size_t* count) {
  require(count);
  if (nodes)
    for (size_t i = 0; i < *count; ++i) nodes[i] = i < found.size() ? found[i] : nullptr;
  *count = nodes ? std::min(*count, found.size()) : found.size();
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph, bool roots) {
  require_graph(graph);
  std::vector<cudaGraphNode_t> found;
  for (const auto& node : graph->nodes)
    if (!roots || node->after.empty()) found.push_back(node.get());
  return found;
}

}  // namespace

cudaGraph_t new_graph() { return *graphs.insert(new CUgraph_st).first; }

void destroy_graph(cudaGraph_t graph) {
  require(graphs.erase(graph));
  delete graph;
}

}  // namespace sim

using namespace sim;

// --- making a graph ----------------------------------------------------------------------------------------------------------

CUDA_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return call([&] {
    require(graph && !flags);
    *graph = new_graph();
  });
}

CUDA_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] { destroy_graph(graph); });
}

CUDA_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return call([&] {
    require(clone);
    require_graph(graph);
    *clone = new_graph();
    std::map<cudaGraphNode_t, cudaGraphNode_t> copies;
    for (const auto& node : graph->nodes) copies[node.get()] = (*clone)->add(node->type, node->work, node->after);
    for (const auto& node : (*clone)->nodes)
      for (cudaGraphNode_t& before : node->after) before = copies.at(before);
  });
}

CUDA_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                            size_t count, const cudaKernelNodeParams* parameters) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeKernel, [&] { return kernel_work(parameters); });
}

CUDA_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                            size_t count, const cudaMemcpy3DParms* parameters) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, [&] { return copy_work(parameters); });
}

CUDA_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                              size_t count, void* to, const void* from, size_t bytes,
                                              cudaMemcpyKind kind) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, [&] { return copy_work(to, from, bytes, kind); });
}

CUDA_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                            size_t count, const cudaMemsetParams* parameters) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemset, [&] { return fill_work(parameters); });
}

CUDA_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                          size_t count, const cudaHostNodeParams* parameters) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeHost, [&] { return host_work(parameters); });
}

CUDA_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           size_t count) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeEmpty, [] { return std::function<void()>{}; });
}

CUDA_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                                size_t count, cudaGraph_t child) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeGraph, [&]() -> std::function<void()> {
    require_graph(child);
    return [instance = instantiated(*child)] { run(instance); };
  });
}

/// The address is known from now on, the memory is there when the node has run.
CUDA_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                              size_t count, cudaMemAllocNodeParams* parameters) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemAlloc, [&] {
    require(parameters && parameters->bytesize);
    parameters->dptr = graph_memory(parameters->bytesize);
    return take_graph_memory(parameters->dptr);
  });
}

CUDA_API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                             size_t count, void* pointer) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemFree, [&] { return free_graph_memory(pointer); });
}

CUDA_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                              const cudaGraphEdgeData*, size_t count) {
  return call([&] {
    require_graph(graph);
    require((from && to) || !count);
    for (size_t i = 0; i < count; ++i) {
      require(find_node(from[i]).graph == graph && find_node(to[i]).graph == graph);
      auto& after = to[i]->after;
      require(std::find(after.begin(), after.end(), from[i]) == after.end());
      after.push_back(from[i]);
    }
  });
}

CUDA_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  return call([&] {
    require(find_node(node).type == cudaGraphNodeTypeKernel);
    node->work = kernel_work(parameters);
  });
}

CUDA_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call([&] { give(nodes_of(graph, false), nodes, count); });
}

CUDA_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call([&] { give(nodes_of(graph, true), nodes, count); });
}

CUDA_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData*,
                                                  size_t* count) {
  return call([&] { give(find_node(node).after, nodes, count); });
}

CUDA_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                       cudaGraphEdgeData*, size_t* count) {
  return call([&] {
    require_graph(graph);
    require(count && !from == !to);
    size_t edges = 0;
    for (const auto& node : graph->nodes)
      for (const cudaGraphNode_t before : node->after) {
        if (from && edges < *count) {
          from[edges] = before;
          to[edges] = node.get();
        }
        ++edges;
      }
    *count = from ? std::min(*count, edges) : edges;
  });
}

CUDA_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call([&] {
    require(type);
    *type = find_node(node).type;
  });
}

// --- running it --------------------------------------------------------------------------------------------------------------

CUDA_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long flags) {
  return call([&] {
    require(instance);
    require_graph(graph);
    if (flags & cudaGraphInstantiateFlagDeviceLaunch) not_supported("a graph that a kernel launches");
    *instance = *instances.insert(new CUgraphExec_st(instantiated(*graph))).first;
  });
}

CUDA_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* instance, cudaGraph_t graph,
                                                   unsigned long long flags) {
  return cudaGraphInstantiate(instance, graph, flags);
}

CUDA_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  return call([&] {
    require(instances.erase(instance));
    delete instance;
  });
}

CUDA_API cudaError_t cudaGraphUpload(cudaGraphExec_t instance, cudaStream_t stream) {
  return call([&] {
    require(instances.contains(instance));
    require_stream(stream);
  });
}

CUDA_API cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  return call([&] {
    require(instances.contains(instance));
    on_stream(stream, cudaGraphNodeTypeGraph, [copy = *instance] { run(copy); });
  });
}

CUDA_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                      const cudaKernelNodeParams* parameters) {
  return call([&] { find_node(instance, node, cudaGraphNodeTypeKernel).work = kernel_work(parameters); });
}

CUDA_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                      const cudaMemcpy3DParms* parameters) {
  return call([&] { find_node(instance, node, cudaGraphNodeTypeMemcpy).work = copy_work(parameters); });
}

CUDA_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t instance, cudaGraphNode_t node, void* to,
                                                        const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call([&] { find_node(instance, node, cudaGraphNodeTypeMemcpy).work = copy_work(to, from, bytes, kind); });
}

CUDA_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                      const cudaMemsetParams* parameters) {
  return call([&] { find_node(instance, node, cudaGraphNodeTypeMemset).work = fill_work(parameters); });
}

CUDA_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                                    const cudaHostNodeParams* parameters) {
  return call([&] { find_node(instance, node, cudaGraphNodeTypeHost).work = host_work(parameters); });
}

/// The same nodes in the same order, waiting for the same: their work is taken over.
CUDA_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph,
                                         cudaGraphExecUpdateResultInfo* result) {
  return call([&] {
    require(instances.contains(instance));
    require_graph(graph);
    CUgraphExec_st updated = instantiated(*graph);
    const auto same = [](const CUgraphExec_st::Node& a, const CUgraphExec_st::Node& b) {
      return a.type == b.type && a.after == b.after;
    };
    const bool fits =
        std::equal(updated.nodes.begin(), updated.nodes.end(), instance->nodes.begin(), instance->nodes.end(), same);
    if (result) *result = {};
    if (result && !fits) result->result = cudaGraphExecUpdateErrorTopologyChanged;
    require(fits, cudaErrorGraphExecUpdateFailure);
    for (size_t i = 0; i < updated.nodes.size(); ++i) instance->nodes[i].work = std::move(updated.nodes[i].work);
  });
}
