// Built with machine code only: the simulator has nothing to run.
#include "check.h"

__global__ void nothing() {}

int main() {
  nothing<<<1, 1>>>();
  CHECK(cudaGetLastError());
  return passed();
}
