// Mistakes that a GPU often forgives: planted CASE runs the kernel with the mistake, planted CASE right the mended one;
// planted --list names the cases. The comments are about the one with the mistake.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

constexpr int threads = 128, blocks = 4;

/// Two warps and more write the flag, all the same value.
template <bool right>
__global__ void same_value(float* x, float* y) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (x[threadIdx.x] == 0) {
    if (right)
      atomicExch(&found, 1);
    else
      found = 1;
  }
  __syncthreads();
  if (found && blockIdx.x == 0) y[threadIdx.x] = 2;
}

/// No __syncwarp(): a lane may read its neighbour's word before the neighbour writes it.
template <bool right>
__global__ void warp_race(float* x, float*) {
  __shared__ float row[threads];
  row[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (right) __syncwarp();
  const float other = row[threadIdx.x ^ 1];
  if (blockIdx.x == 0) x[threadIdx.x] = other;
}

__device__ __forceinline__ void barrier(int count) { asm volatile("barrier.sync 1, %0;" ::"r"(count) : "memory"); }

/// Warps 0, 1 and 2 read the word. Warp 3 waits for 1 and 2 before it writes, but not for 0.
template <bool right>
__global__ void third_reader(float* x, float*) {
  __shared__ float word;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) word = 1;
  __syncthreads();
  float mine = 0;
  if (warp < 3) mine = *const_cast<volatile float*>(&word);
  if (right || warp > 0) barrier(right ? 128 : 96);
  if (threadIdx.x == 96) word = 2;
  if (blockIdx.x == 0) x[threadIdx.x] = mine;
}

/// Every block writes the same word.
template <bool right>
__global__ void global_write(float* x, float*) {
  if (threadIdx.x != 0) return;
  if (right)
    atomicAdd(x, 1.0F);
  else
    x[0] = static_cast<float>(blockIdx.x);
}

/// Block 0 writes what the others read; the mended kernel reads what it has written itself.
template <bool right>
__global__ void global_read(float* x, float* y) {
  const int own = blockIdx.x * threads + threadIdx.x;
  x[own] = 1;
  y[own] = x[right ? own : static_cast<int>(threadIdx.x)];
}

/// Nobody has written `scratch`.
template <bool right>
__global__ void never_written(float* x, float* scratch) {
  if (blockIdx.x == 0) x[threadIdx.x] = scratch[threadIdx.x];
}

/// `old` has been freed, and another allocation may have its address.
template <bool right>
__global__ void freed(float* old, float*) {
  if (blockIdx.x == 0) old[threadIdx.x] = 1;
}

/// __ldg is for memory that does not change during the launch.
template <bool right>
__global__ void read_only(float* x, float* y) {
  const int first = blockIdx.x * threads;
  x[first + threadIdx.x] = 1;
  __syncthreads();
  const float* const other = &x[first + (threadIdx.x ^ 32)];
  y[first + threadIdx.x] = right ? *const_cast<const volatile float*>(other) : __ldg(other);
}

/// Half of each warp leaves before the barrier.
template <bool right>
__global__ void exited(float* x, float*) {
  if (right) __syncthreads();
  if (threadIdx.x % 32 >= 16) return;
  if (!right) __syncthreads();
  if (blockIdx.x == 0) x[threadIdx.x] = 1;
}

/// Lanes 8 to 15 take part in a shuffle whose mask leaves them out.
template <bool right>
__global__ void member_mask(float* x, float*) {
  if (threadIdx.x >= 16) return;
  const float other = __shfl_down_sync(right ? 0xffff : 0xff, static_cast<float>(threadIdx.x), 1, 8);
  if (blockIdx.x == 0) x[threadIdx.x] = other;
}

struct Case {
  const char* name;
  void (*wrong)(float*, float*);
  void (*right)(float*, float*);
};
#define CASE(kernel) \
  Case { #kernel, kernel < false>, kernel < true> }
const std::vector<Case> cases = {CASE(same_value),  CASE(warp_race),     CASE(third_reader), CASE(global_write),
                                 CASE(global_read), CASE(never_written), CASE(freed),        CASE(read_only),
                                 CASE(exited),      CASE(member_mask)};

float* zeros(size_t count) {
  float* x;
  CHECK(cudaMalloc(&x, count * sizeof(float)));
  CHECK(cudaMemset(x, 0, count * sizeof(float)));
  return x;
}

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  const bool right = count > 2 && !std::strcmp(arguments[2], "right");
  for (const Case& one : cases) {
    if (name == "--list") std::printf("%s\n", one.name);
    if (name != one.name) continue;
    constexpr size_t words = size_t{blocks} * threads;
    float *x = zeros(words), *y = zeros(words);
    if (name == "never_written" && !right) {
      CHECK(cudaFree(y));
      CHECK(cudaMalloc(&y, words * sizeof(float)));
    }
    if (name == "freed") {
      CHECK(cudaFree(x));
      float* const next = zeros(words);
      if (right) x = next;
    }
    (right ? one.right : one.wrong)<<<blocks, threads>>>(x, y);
    const cudaError_t status = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(status));
    return status != cudaSuccess;
  }
  if (name == "--list") return 0;
  std::printf("usage: planted CASE [right]\n");
  return 2;
}
