// What the test programs share: every call is checked, and a wrong result ends the program with its index.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                             \
  do {                                                                                                          \
    const cudaError_t status = (call);                                                                          \
    if (status != cudaSuccess) {                                                                                \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, cudaGetErrorName(status), cudaGetErrorString(status)); \
      std::exit(1);                                                                                             \
    }                                                                                                           \
  } while (0)

template <class T>
void expect_equal(size_t index, T got, T expected) {
  if (got == expected) return;
  std::printf("at %zu: got %g, expected %g\n", index, static_cast<double>(got), static_cast<double>(expected));
  std::exit(1);
}

inline int passed() {
  std::printf("passed\n");
  return 0;
}
