// Thrust on the simulator: its kernels, its queries of the device and its temporary memory.
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/sequence.h>
#include <thrust/transform_reduce.h>

#include "check.h"

struct Square {
  __host__ __device__ long long operator()(int value) const { return static_cast<long long>(value) * value; }
};

int main() {
  const int n = 3001;
  thrust::device_vector<int> values(n);
  thrust::sequence(values.begin(), values.end());
  const long long got =
      thrust::transform_reduce(values.begin(), values.end(), Square{}, 0LL, thrust::plus<long long>());
  long long expected = 0;
  for (int i = 0; i < n; ++i) expected += static_cast<long long>(i) * i;
  expect_equal(0, got, expected);
  return passed();
}
