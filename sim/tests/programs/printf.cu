// printf in a kernel: a kernel's lines, a line of dashes, and the same lines from the host. With an argument: a kernel
// that prints and then reads outside of all allocations.
#include <cstdint>

#include "check.h"

constexpr char word[] = "words";

/// Every conversion, with flags, widths and precisions.
__host__ __device__ void show(int i, long long wide, double x, const char* text) {
  printf("no arguments, 100 %%\n");
  printf("%d %i %5d|%-5d|%05d|%+d\n", i, -i, i, i, i, i);
  printf("%u %x %X %o %#x\n", i, i, i, i, i);
  printf("%lld %llu %llx %ld\n", wide, (unsigned long long)wide, wide, (long)wide);
  printf("%hd %hhd\n", (short)i, (signed char)i);
  printf("%f %.2f %8.3f|%e %g %G\n", x, x, x, x, x, x);
  printf("%s|%10s|%.3s|%c\n", text, text, text, 'z');
  printf("%*d|%.*f\n", 7, i, 3, x);
  printf("%d %f %d %lld %c %f\n", 1, 2.5, 3, 4LL, 'd', -0.0);
}

__global__ void from_kernel(int i, long long wide, double x) {
  const char text[] = "words";
  show(i, wide, x, text);
}

__global__ void each(int* counts) { counts[threadIdx.x] = printf("thread %d of %s\n", threadIdx.x, "three"); }

__global__ void faulty(const int* nothing) {
  printf("before the fault: %d\n", 7);
  printf("%d\n", *nothing);
}

int main(int count, char**) {
  if (count > 1) {
    faulty<<<1, 1>>>(nullptr);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
  }
  int* counts;
  CHECK(cudaMalloc(&counts, 3 * sizeof(int)));
  from_kernel<<<1, 1>>>(1234, -5'000'000'000LL, 3.14159);
  each<<<1, 3>>>(counts);
  CHECK(cudaDeviceSynchronize());
  int of_kernel[3];
  CHECK(cudaMemcpy(of_kernel, counts, sizeof of_kernel, cudaMemcpyDeviceToHost));
  printf("---\n");
  show(1234, -5'000'000'000LL, 3.14159, word);
  for (int i = 0; i < 3; ++i) {
    printf("thread %d of three\n", i);
    if (of_kernel[i] != 2) return 1;  // the number of arguments
  }
  return 0;
}
