// The host's side: streams, events, graphs, memory of every kind, what a program asks of the device.
#include <atomic>
#include <string>

#include "samples.h"

namespace {

constexpr int threads = 128;

__global__ void add_to(int* x, int value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] += value;
}

__global__ void multiply_by(int* x, int value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] *= value;
}

int blocks_for(int n) { return (n + threads - 1) / threads; }

void expect_error(const char* what, cudaError_t got, cudaError_t expected) {
  cudaGetLastError();
  if (got == expected) return;
  std::printf("%s: got %s, expected %s\n", what, cudaGetErrorName(got), cudaGetErrorName(expected));
  std::exit(1);
}

// --- streams and events ------------------------------------------------------------------------------------------------------------

void streams() {
  const int n = 1000, parts = 4;
  const auto in = numbers<int>(n, 1000);
  int *pinned, *device;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  std::memcpy(pinned, in.data(), n * sizeof(int));
  cudaStream_t stream[parts];
  cudaEvent_t begin, end;
  int least, greatest, priority;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  for (int i = 0; i < parts; ++i) {
    CHECK(cudaStreamCreateWithPriority(&stream[i], cudaStreamNonBlocking, i % 2 ? greatest : least));
    CHECK(cudaStreamGetPriority(stream[i], &priority));
    expect_equal(i, priority, i % 2 ? greatest : least);
  }
  CHECK(cudaEventRecord(begin));
  for (int i = 0; i < parts; ++i) {
    int* const part = pinned + i * n / parts;
    const size_t bytes = n / parts * sizeof(int);
    CHECK(cudaMemcpyAsync(device + i * n / parts, part, bytes, cudaMemcpyHostToDevice, stream[i]));
    add_to<<<blocks_for(n / parts), threads, 0, stream[i]>>>(device + i * n / parts, i, n / parts);
    CHECK(cudaMemcpyAsync(part, device + i * n / parts, bytes, cudaMemcpyDeviceToHost, stream[i]));
  }
  CHECK(cudaEventRecord(end));
  for (const cudaStream_t one : stream) CHECK(cudaStreamSynchronize(one));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  expect_equal(0, milliseconds >= 0, true);
  for (int i = 0; i < n; ++i) expect_equal(i, pinned[i], in[i] + i / (n / parts));
  for (const cudaStream_t one : stream) CHECK(cudaStreamDestroy(one));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(device));
}

void count_call(void* data) { ++*static_cast<std::atomic<int>*>(data); }
void count_callback(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) count_call(data);
}

void callbacks() {
  std::atomic<int> calls = 0;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaLaunchHostFunc(stream, count_call, &calls));
  CHECK(cudaStreamAddCallback(stream, count_callback, &calls, 0));
  CHECK(cudaStreamSynchronize(stream));
  expect_equal(0, calls.load(), 2);
  CHECK(cudaStreamDestroy(stream));
}

// --- memory ------------------------------------------------------------------------------------------------------------------------

void registered_memory() {
  const int n = 500;
  std::vector<int> host(n);
  int* device;
  CHECK(cudaHostRegister(host.data(), n * sizeof(int), cudaHostRegisterMapped));
  expect_error("twice", cudaHostRegister(host.data() + 3, 8, 0), cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostGetDevicePointer(&device, host.data(), 0));
  add_to<<<blocks_for(n), threads>>>(device, 7, n);
  launched();
  for (int i = 0; i < n; ++i) expect_equal(i, host[i], 7);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, host.data() + 2));
  expect_equal<int>(0, attributes.type, cudaMemoryTypeHost);
  CHECK(cudaHostUnregister(host.data()));
  expect_error("again", cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  CHECK(cudaPointerGetAttributes(&attributes, host.data()));
  expect_equal<int>(1, attributes.type, cudaMemoryTypeUnregistered);
}

void managed_memory() {
  const int n = 300;
  int* both;
  CHECK(cudaMallocManaged(&both, n * sizeof(int)));
  for (int i = 0; i < n; ++i) both[i] = i;
  cudaMemLocation location = {};
  location.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemAdvise(both, n * sizeof(int), cudaMemAdviseSetPreferredLocation, location));
  CHECK(cudaMemPrefetchAsync(both, n * sizeof(int), location, 0));
  multiply_by<<<blocks_for(n), threads>>>(both, 3, n);
  launched();
  for (int i = 0; i < n; ++i) expect_equal(i, both[i], 3 * i);
  CHECK(cudaFree(both));
}

void memory_pools() {
  const int n = 400;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  int supported;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  expect_equal(0, supported, 1);
  cudaMemPool_t pool, own;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t threshold = 1 << 20, got = 0, used = 1, high = 0;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &got));
  expect_equal(1, got, threshold);
  int* a;
  CHECK(cudaMallocAsync(&a, n * sizeof(int), stream));
  CHECK(cudaMemsetAsync(a, 0, n * sizeof(int), stream));
  add_to<<<blocks_for(n), threads, 0, stream>>>(a, 9, n);
  std::vector<int> host(n);
  CHECK(cudaMemcpyAsync(host.data(), a, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaFreeAsync(a, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect_all(host, std::vector<int>(n, 9));

  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemPoolCreate(&own, &properties));
  CHECK(cudaMallocFromPoolAsync(&a, 4096, own, stream));
  CHECK(cudaFreeAsync(a, stream));
  CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemHigh, &high));
  expect_equal<uint64_t>(2, used, 0);
  expect_equal<uint64_t>(3, high, 4096);
  CHECK(cudaDeviceSetMemPool(0, own));
  CHECK(cudaDeviceGetMemPool(&pool, 0));
  expect_equal(4, pool == own, true);
  CHECK(cudaMemPoolTrimTo(own, 0));
  CHECK(cudaMemPoolDestroy(own));
  CHECK(cudaStreamDestroy(stream));
}

/// Boxes out of boxes: rows with a pitch, planes of rows.
void copies_2d_and_3d() {
  const int width = 10, height = 6, depth = 4;
  const auto in = numbers<int>(width * height * depth, 1000);
  cudaPitchedPtr device;
  CHECK(cudaMalloc3D(&device, make_cudaExtent(width * sizeof(int), height, depth)));
  CHECK(cudaMemset3D(device, 0xff, make_cudaExtent(width * sizeof(int), height, depth)));
  cudaMemcpy3DParms to = {};
  to.srcPtr = make_cudaPitchedPtr(const_cast<int*>(in.data()), width * sizeof(int), width, height);
  to.srcPos = make_cudaPos(2 * sizeof(int), 1, 1);
  to.dstPtr = device;
  to.dstPos = make_cudaPos(3 * sizeof(int), 2, 0);
  to.extent = make_cudaExtent(5 * sizeof(int), 3, 2);
  to.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&to));
  for (int z = 0; z < depth; ++z) {
    std::vector<int> plane(width * height, 1);
    CHECK(cudaMemcpy2D(plane.data(), width * sizeof(int), static_cast<char*>(device.ptr) + z * device.pitch * height,
                       device.pitch, width * sizeof(int), height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const bool copied = z < 2 && y >= 2 && y < 5 && x >= 3 && x < 8;
        expect_equal(z * 100 + y * width + x, plane[y * width + x],
                     copied ? in[((z + 1) * height + y - 1) * width + x - 1] : -1);
      }
  }
  CHECK(cudaMemset2D(device.ptr, device.pitch, 0, width * sizeof(int), height));
  CHECK(cudaFree(device.ptr));
}

// --- graphs ------------------------------------------------------------------------------------------------------------------------

/// Two streams: the second one joins the capture by an event, works beside the first, and is joined again.
void captured_graph() {
  const int n = 256;
  const Array<int> a(std::vector<int>(n, 1)), b(std::vector<int>(n, 1));
  std::vector<int> result(2 * n);
  cudaStream_t one, other, brief;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaStreamCaptureStatus capturing;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamIsCapturing(one, &capturing));
  expect_equal<int>(0, capturing, cudaStreamCaptureStatusActive);
  add_to<<<2, threads, 0, one>>>(a, 2, n);
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  multiply_by<<<2, threads, 0, other>>>(b, 3, n);
  multiply_by<<<2, threads, 0, one>>>(a, 5, n);
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
  CHECK(cudaStreamWaitEvent(brief, join, 0));
  add_to<<<2, threads, 0, brief>>>(b, 0, n);
  CHECK(cudaEventRecord(join, brief));
  CHECK(cudaStreamWaitEvent(one, join, 0));
  CHECK(cudaStreamDestroy(brief));
  CHECK(cudaMemcpyAsync(result.data(), a, n * sizeof(int), cudaMemcpyDeviceToHost, one));
  CHECK(cudaMemcpyAsync(result.data() + n, b, n * sizeof(int), cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamEndCapture(one, &graph));
  expect_all(a.host(), std::vector<int>(n, 1));  // nothing has run
  size_t nodes = 0, roots = 0, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  expect_equal<size_t>(1, nodes, 6);
  expect_equal<size_t>(2, roots, 1);
  expect_equal<size_t>(3, edges, 6);
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  int x = 1, y = 1;
  for (int repeat = 0; repeat < 3; ++repeat) {
    CHECK(cudaGraphLaunch(instance, one));
    CHECK(cudaStreamSynchronize(one));
    x = (x + 2) * 5;
    y *= 3;
    for (int i = 0; i < n; ++i) {
      expect_equal(i, result[i], x);
      expect_equal(n + i, result[n + i], y);
    }
  }
  CHECK(cudaGraphExecDestroy(instance));
  CHECK(cudaGraphDestroy(graph));

  // What a capture refuses.
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  expect_error("wait", cudaStreamSynchronize(one), cudaErrorStreamCaptureUnsupported);
  expect_error("end", cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  add_to<<<2, threads, 0, other>>>(a, 2, n);
  expect_error("unjoined", cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
}

struct Seen {
  const int* values;
  int sum;
};
void add_up(void* data) {
  Seen& seen = *static_cast<Seen*>(data);
  seen.sum = 0;
  for (int i = 0; i < 100; ++i) seen.sum += seen.values[i];
}

/// Node by node: fill, kernel, copy, host function; then with other arguments, and as part of another graph.
void graph_of_nodes() {
  const int n = 100;
  const Array<int> device(n);
  std::vector<int> host(n);
  cudaGraph_t graph;
  cudaGraphNode_t fill, kernel, copy, function;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams memset = {};
  memset.dst = device;
  memset.value = 6;
  memset.elementSize = 4;
  memset.width = n;
  memset.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &memset));
  int* pointer = device;
  int value = 7, count = n;
  void* arguments[] = {&pointer, &value, &count};
  cudaKernelNodeParams launch = {};
  launch.func = reinterpret_cast<void*>(multiply_by);
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(threads);
  launch.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &launch));
  CHECK(
      cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
  Seen seen{host.data(), 0};
  cudaHostNodeParams call = {add_up, &seen};
  CHECK(cudaGraphAddHostNode(&function, graph, &copy, 1, &call));
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(function, &type));
  expect_equal<int>(0, type, cudaGraphNodeTypeHost);

  cudaGraphExec_t instance;
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  CHECK(cudaGraphLaunch(instance, nullptr));
  CHECK(cudaDeviceSynchronize());
  expect_equal(1, seen.sum, 42 * n);
  value = 2;
  CHECK(cudaGraphExecKernelNodeSetParams(instance, kernel, &launch));
  CHECK(cudaGraphLaunch(instance, nullptr));
  CHECK(cudaDeviceSynchronize());
  expect_equal(2, seen.sum, 12 * n);
  CHECK(cudaGraphExecDestroy(instance));

  cudaGraph_t outer, clone;
  cudaGraphNode_t child, empty, twice;
  CHECK(cudaGraphCreate(&outer, 0));
  CHECK(cudaGraphAddEmptyNode(&empty, outer, nullptr, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, outer, &empty, 1, graph));
  value = 5;
  CHECK(cudaGraphAddKernelNode(&twice, outer, &child, 1, &launch));
  CHECK(cudaGraphClone(&clone, outer));
  CHECK(cudaGraphInstantiate(&instance, clone, 0));
  CHECK(cudaGraphLaunch(instance, nullptr));
  CHECK(cudaDeviceSynchronize());
  expect_all(device.host(), std::vector<int>(n, 6 * 7 * 5));  // the graph itself still multiplies by 7

  value = 10;
  CHECK(cudaGraphKernelNodeSetParams(twice, &launch));
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(instance, outer, &info));
  CHECK(cudaGraphLaunch(instance, nullptr));
  CHECK(cudaDeviceSynchronize());
  expect_all(device.host(), std::vector<int>(n, 6 * 7 * 10));
  expect_error("update", cudaGraphExecUpdate(instance, graph, &info), cudaErrorGraphExecUpdateFailure);
  expect_equal<int>(3, info.result, cudaGraphExecUpdateErrorTopologyChanged);
  CHECK(cudaGraphExecDestroy(instance));
  for (const cudaGraph_t one : {graph, outer, clone}) CHECK(cudaGraphDestroy(one));
}

/// Memory that a graph takes for itself, captured and as nodes.
void graph_with_memory() {
  const int n = 64;
  std::vector<int> host(n);
  cudaStream_t stream;
  cudaGraph_t graph, made;
  cudaGraphNode_t nodes[3];
  cudaGraphExec_t instance;
  int* memory;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&memory, n * sizeof(int), stream));
  CHECK(cudaMemsetAsync(memory, 0, n * sizeof(int), stream));
  add_to<<<1, threads, 0, stream>>>(memory, 4, n);
  CHECK(cudaMemcpyAsync(host.data(), memory, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaFreeAsync(memory, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  expect_equal<size_t>(0, count, 5);
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  for (int repeat = 0; repeat < 2; ++repeat) {
    CHECK(cudaGraphLaunch(instance, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect_all(host, std::vector<int>(n, 4));
    cudaPointerAttributes attributes;  // between the launches it is not there
    CHECK(cudaPointerGetAttributes(&attributes, memory));
    expect_equal<int>(repeat, attributes.type, cudaMemoryTypeUnregistered);
  }
  CHECK(cudaGraphExecDestroy(instance));
  CHECK(cudaGraphDestroy(graph));

  CHECK(cudaGraphCreate(&made, 0));
  cudaMemAllocNodeParams parameters = {};
  parameters.poolProps.allocType = cudaMemAllocationTypePinned;
  parameters.poolProps.location.type = cudaMemLocationTypeDevice;
  parameters.bytesize = n;
  CHECK(cudaGraphAddMemAllocNode(&nodes[0], made, nullptr, 0, &parameters));
  cudaMemsetParams fill = {};
  fill.dst = parameters.dptr;
  fill.elementSize = 1;
  fill.width = n;
  fill.height = 1;
  CHECK(cudaGraphAddMemsetNode(&nodes[1], made, &nodes[0], 1, &fill));
  CHECK(cudaGraphInstantiate(&instance, made, 0));
  for (int repeat = 0; repeat < 2; ++repeat) {  // the program frees it, and the next launch takes it again
    CHECK(cudaGraphLaunch(instance, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect_error("not freed", cudaGraphLaunch(instance, stream), cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(parameters.dptr, stream));
  }
  CHECK(cudaGraphExecDestroy(instance));
  CHECK(cudaGraphAddMemFreeNode(&nodes[2], made, &nodes[1], 1, parameters.dptr));
  CHECK(cudaGraphInstantiate(&instance, made, 0));
  for (int repeat = 0; repeat < 2; ++repeat) CHECK(cudaGraphLaunch(instance, stream));
  CHECK(cudaGraphExecDestroy(instance));
  CHECK(cudaGraphDestroy(made));
  CHECK(cudaStreamDestroy(stream));
}

/// A missing dependency: the two kernels may run in either order. With one seed or the other the result is wrong.
void graph_without_order() {
  const Array<int> device(std::vector<int>(1, 1));
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t instance;
  CHECK(cudaGraphCreate(&graph, 0));
  int* pointer = device;
  int value = 10, count = 1;
  void* arguments[] = {&pointer, &value, &count};
  cudaKernelNodeParams launch = {};
  launch.gridDim = launch.blockDim = dim3(1);
  launch.kernelParams = arguments;
  launch.func = reinterpret_cast<void*>(add_to);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &launch));
  launch.func = reinterpret_cast<void*>(multiply_by);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &launch));
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  bool added_first = false, multiplied_first = false;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const int one = 1;
    CHECK(cudaMemcpy(device, &one, sizeof one, cudaMemcpyHostToDevice));
    CHECK(cudaGraphLaunch(instance, nullptr));
    CHECK(cudaDeviceSynchronize());
    const int got = device.host()[0];
    expect_equal(repeat, got == 110 || got == 20, true);
    (got == 110 ? added_first : multiplied_first) = true;
  }
  expect_equal(0, added_first && multiplied_first, true);
  CHECK(cudaGraphExecDestroy(instance));
  CHECK(cudaGraphDestroy(graph));
}

// --- questions -------------------------------------------------------------------------------------------------------------------------

void properties() {
  cudaDeviceProp all;
  CHECK(cudaGetDeviceProperties(&all, 0));
  int value, device = -1;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  expect_equal(0, value, all.multiProcessorCount);
  expect_equal(1, all.warpSize, 32);
  expect_equal(2, all.maxThreadsPerBlock, 1024);
  expect_equal(3, all.memoryPoolsSupported, 1);
  CHECK(cudaChooseDevice(&device, &all));
  expect_equal(4, device, 0);
  CHECK(cudaDeviceCanAccessPeer(&value, 0, 0));
  expect_equal(5, value, 0);
  size_t bytes = 0;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  CHECK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  expect_equal<size_t>(6, bytes, 4096);
  expect_error("limit", cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1), cudaErrorUnsupportedLimit);
  char id[32];
  CHECK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  CHECK(cudaDeviceGetByPCIBusId(&device, id));
  const char* name;
  CHECK(cudaFuncGetName(&name, reinterpret_cast<const void*>(add_to)));
  expect_equal(7, std::string(name).find("add_to") != std::string::npos, true);
  CHECK(cudaFuncSetCacheConfig(add_to, cudaFuncCachePreferShared));
}

void occupancy() {
  int grid, block, blocks;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add_to, 0, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_to, block, 0));
  cudaDeviceProp all;
  CHECK(cudaGetDeviceProperties(&all, 0));
  expect_equal(0, grid, blocks * all.multiProcessorCount);
  expect_equal(1, blocks * block <= all.maxThreadsPerMultiProcessor, true);
  size_t bytes;
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, add_to, 2, 128));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_to, 128, bytes));
  expect_equal(2, blocks >= 2, true);
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"streams", streams},
                      {"callbacks", callbacks},
                      {"registered_memory", registered_memory},
                      {"managed_memory", managed_memory},
                      {"memory_pools", memory_pools},
                      {"copies_2d_and_3d", copies_2d_and_3d},
                      {"captured_graph", captured_graph},
                      {"graph_of_nodes", graph_of_nodes},
                      {"graph_with_memory", graph_with_memory},
                      {"graph_without_order", graph_without_order},
                      {"properties", properties},
                      {"occupancy", occupancy}});
}
