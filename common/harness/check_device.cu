#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform_reduce.h>

#include <cub/block/block_reduce.cuh>

#include "common/harness/check_device.h"
#include "common/rung.h"

namespace ladder {
namespace {

/// Element of a matrix of FP32, BF16 or FP16.
__device__ inline float load(const void* data, size_t index, Type type, bool wide) {
  if (wide) return static_cast<const float*>(data)[index];
  return type == Type::bf16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index])
                            : __half2float(static_cast<const __half*>(data)[index]);
}
__device__ inline float load_operand(const void* data, size_t index, Type type) {
  return load(data, index, type, type == Type::f32 || type == Type::tf32);
}
__device__ inline float load_c(const Problem& p, size_t row, size_t col) {
  const bool wide = p.out == Out::f32 || p.type == Type::f32 || p.type == Type::tf32;
  return load(p.c, row * p.ldc + col, p.type, wide);
}

/// The element of D at index[blockIdx.x] in FP64, and its scale S. One block an element.
constexpr int product_threads = 128;
__global__ void fp64_element(Problem p, const size_t* index, double* value, double* scale) {
  const size_t row = index[blockIdx.x] / p.n, col = index[blockIdx.x] % p.n;
  double sum = 0.0, magnitude = 0.0;
  for (int k = threadIdx.x; k < p.k; k += product_threads) {
    const size_t at_b =
        p.layout_b == LayoutB::row_major ? static_cast<size_t>(k) * p.ldb + col : col * p.ldb + static_cast<size_t>(k);
    const double product = static_cast<double>(load_operand(p.a, row * p.lda + k, p.type)) *
                           static_cast<double>(load_operand(p.b, at_b, p.type));
    sum += product;
    magnitude += fabs(product);
  }
  using Reduce = cub::BlockReduce<double, product_threads>;
  __shared__ typename Reduce::TempStorage storage;
  sum = Reduce(storage).Sum(sum);
  __syncthreads();
  magnitude = Reduce(storage).Sum(magnitude);
  if (threadIdx.x != 0) return;
  const double c = p.beta == 0.0F ? 0.0 : load_c(p, row, col);
  value[blockIdx.x] = static_cast<double>(p.alpha) * sum + static_cast<double>(p.beta) * c;
  scale[blockIdx.x] = fabs(static_cast<double>(p.alpha)) * magnitude + fabs(static_cast<double>(p.beta) * c);
}

template <class T>
DeviceBuffer to_device(const std::vector<T>& values) {
  DeviceBuffer buffer(values.size() * sizeof(T));
  cuda_check(cudaMemcpy(buffer.as<T>(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
  return buffer;
}
template <class T>
std::vector<T> to_host(const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  cuda_check(cudaMemcpy(values.data(), buffer.as<T>(), buffer.bytes(), cudaMemcpyDeviceToHost));
  return values;
}

struct Merge {
  __host__ __device__ Tally operator()(const Tally& x, const Tally& y) const {
    return {x.wrong + y.wrong, x.first < y.first ? x.first : y.first,
            x.max_error > y.max_error ? x.max_error : y.max_error};
  }
};
struct JudgeAgainst {
  Problem p;
  const float *reference, *scale;
  Bound bound;
  __device__ Tally operator()(size_t index) const {
    const Judgement j = judge(load_c(p, index / p.n, index % p.n), reference[index], scale[index], bound);
    return {j.wrong ? 1ULL : 0ULL, j.wrong ? index : ~0ULL, j.error};
  }
};
struct JudgeFinite {
  Problem p;
  __device__ Tally operator()(size_t index) const {
    const bool wrong = !isfinite(load_c(p, index / p.n, index % p.n));
    return {wrong ? 1ULL : 0ULL, wrong ? index : ~0ULL, 0.0};
  }
};

template <class Judge>
Tally tally(const Judge& judge_element) {
  const size_t elements = static_cast<size_t>(judge_element.p.m) * judge_element.p.n;
  return thrust::transform_reduce(thrust::cuda::par.on(judge_element.p.stream), thrust::counting_iterator<size_t>(0),
                                  thrust::counting_iterator<size_t>(elements), judge_element, Tally{}, Merge{});
}

/// Absolute value, by clearing the sign bit of each element.
template <class Bits>
struct ClearSign {
  Bits* data;
  __device__ void operator()(size_t index) const { data[index] &= static_cast<Bits>(~Bits{0}) >> 1; }
};
/// C, converted to FP32 without padding, into `reference`; its absolute value into `scale`.
struct CopyC {
  Problem p;
  float *reference, *scale;
  __device__ void operator()(size_t index) const {
    reference[index] = load_c(p, index / p.n, index % p.n);
    scale[index] = fabsf(reference[index]);
  }
};

}  // namespace

void fp64_elements(const Problem& p, Samples& samples) {
  const DeviceBuffer index = to_device(samples.index);
  const DeviceBuffer value(samples.index.size() * sizeof(double)), scale(samples.index.size() * sizeof(double));
  fp64_element<<<static_cast<int>(samples.index.size()), product_threads, 0, p.stream>>>(
      p, index.as<size_t>(), value.as<double>(), scale.as<double>());
  cuda_check(cudaGetLastError());
  cuda_check(cudaStreamSynchronize(p.stream));
  samples.value = to_host<double>(value);
  samples.scale = to_host<double>(scale);
}

Tally tally_against(const Problem& p, const float* reference, const float* scale, const Bound& bound) {
  return tally(JudgeAgainst{p, reference, scale, bound});
}

Tally tally_infinite(const Problem& p) { return tally(JudgeFinite{p}); }

DeviceBuffer absolute(const void* data, size_t elements, size_t element_bytes, cudaStream_t stream) {
  DeviceBuffer copy(elements * element_bytes);
  cuda_check(cudaMemcpyAsync(copy.as<void>(), data, copy.bytes(), cudaMemcpyDeviceToDevice, stream));
  const auto policy = thrust::cuda::par_nosync.on(stream);
  const thrust::counting_iterator<size_t> first(0);
  if (element_bytes == 4)
    thrust::for_each_n(policy, first, elements, ClearSign<uint32_t>{copy.as<uint32_t>()});
  else
    thrust::for_each_n(policy, first, elements, ClearSign<uint16_t>{copy.as<uint16_t>()});
  return copy;
}

void copy_c(const Problem& p, float* values, float* magnitudes) {
  thrust::for_each_n(thrust::cuda::par_nosync.on(p.stream), thrust::counting_iterator<size_t>(0),
                     static_cast<size_t>(p.m) * p.n, CopyC{p, values, magnitudes});
}

float read_c(const Problem& p, size_t index) {
  const size_t at = index / p.n * p.ldc + index % p.n;
  const size_t bytes = result_bytes(p.type, p.out);
  uint32_t bits = 0;
  cuda_check(cudaMemcpy(&bits, static_cast<const char*>(p.c) + at * bytes, bytes, cudaMemcpyDeviceToHost));
  if (bytes == 4) return __builtin_bit_cast(float, bits);
  if (p.type == Type::bf16) return __builtin_bit_cast(float, bits << 16);
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

}  // namespace ladder
