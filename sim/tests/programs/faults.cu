// Faults of a kernel: which error the program sees, and that it stays until the device is reset. faults KIND prints the
// names of the errors of the launch, of a later call, and of a call after cudaDeviceReset.
#include <cstring>

#include "check.h"

__global__ void write(int* values, size_t offset) { *(values + offset + threadIdx.x) = 1; }
__global__ void write_bytes(char* bytes) { *reinterpret_cast<int*>(bytes + 2) = 1; }
__global__ void stop() { __trap(); }

int main(int, char** arguments) {
  int* values;
  CHECK(cudaMalloc(&values, 32 * sizeof(int)));
  if (!std::strcmp(arguments[1], "beyond")) write<<<1, 32>>>(values, 1);
  if (!std::strcmp(arguments[1], "null")) write<<<1, 32>>>(nullptr, 0);
  if (!std::strcmp(arguments[1], "misaligned")) write_bytes<<<1, 1>>>(reinterpret_cast<char*>(values));
  if (!std::strcmp(arguments[1], "trap")) stop<<<1, 32>>>();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("%s\n", cudaGetErrorName(cudaMemset(values, 0, 4)));
  CHECK(cudaDeviceReset());
  (void)cudaGetLastError();
  std::printf("%s\n", cudaGetErrorName(cudaMalloc(&values, 4)));
  return 0;
}
