// Several small programs in one file: PROGRAM NAME runs one, which checks its result against the host's; PROGRAM alone lists them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

/// An array of the device's, filled from the host and read back.
template <class T>
class Array {
 public:
  explicit Array(size_t count) : count_(count) {
    CHECK(cudaMalloc(&data_, count * sizeof(T)));
    CHECK(cudaMemset(data_, 0, count * sizeof(T)));
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    CHECK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Array() { CHECK(cudaFree(data_)); }
  Array(const Array&) = delete;

  operator T*() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

/// Whole numbers from a fixed sequence, below `limit`.
template <class T>
std::vector<T> numbers(size_t count, uint32_t limit, uint32_t seed = 1) {
  std::vector<T> values(count);
  uint32_t state = seed * 2654435761u + 1;
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    value = T((state >> 8) % limit);
  }
  return values;
}

template <class T>
void expect_all(const std::vector<T>& got, const std::vector<T>& expected) {
  expect_equal(0, got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) expect_equal(i, got[i], expected[i]);
}

inline void launched() {
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

struct Sample {
  const char* name;
  void (*run)();
};

template <size_t count>
int run_samples(int argc, char** argv, const Sample (&samples)[count]) {
  for (const Sample& sample : samples) {
    if (argc < 2) std::printf("%s\n", sample.name);
    if (argc < 2 || std::strcmp(argv[1], sample.name) != 0) continue;
    sample.run();
    CHECK(cudaDeviceSynchronize());
    return passed();
  }
  return argc < 2 ? 0 : 2;
}
