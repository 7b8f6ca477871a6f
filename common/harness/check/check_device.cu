#include "common/harness/check/check_device.h"

#include "common/harness/check/through_epilogue.h"
#include "common/harness/for_each_index.h"
#include "common/quantise.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"

namespace ladder {
namespace {

/// C, whose elements are of type `Element`, counted without its padding.
template <class Element>
struct ViewC {
  const Element* data;
  size_t cols, ld;
  explicit ViewC(const Problem& p) : data(p.C<Element>()), cols(p.n), ld(p.ldc) {}
  __device__ float operator[](size_t index) const { return to_float(data[index / cols * ld + index % cols]); }
};

constexpr int product_threads = 128;

/// Sum over the block; in thread 0 alone.
__device__ double block_sum(double x) {
  __shared__ double part[product_threads / 32];
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_down_sync(~0U, x, distance);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0.0;
  if (threadIdx.x == 0)
    for (const double p : part) sum += p;
  __syncthreads();  // so that the next call may write
  return sum;
}

/// The element of D at index[blockIdx.x] in FP64, and its scale S. One block per element.
template <class ElementA, class ElementB, class C>
__global__ void fp64_element(Problem p, const size_t* index, double* value, double* scale) {
  const Elements<ElementA> A{p.a};
  const Elements<ElementB> B{p.b};
  const size_t row = index[blockIdx.x] / p.n, col = index[blockIdx.x] % p.n;
  int group = 0;
  while (group + 1 < p.groups && p.first_row[group + 1] <= row) ++group;
  const size_t first_b = static_cast<size_t>(group) * (p.layout_b == MatrixLayout::row_major ? p.k : p.n) * p.ldb;
  const float* const scale_b = p.scale_b + group * scale_stride_b(p.scales, p.n, p.k);
  double sum = 0.0, magnitude = 0.0;
  for (int k = threadIdx.x; k < p.k; k += product_threads) {
    const size_t at_a = p.layout_a == MatrixLayout::row_major ? row * p.lda + k : static_cast<size_t>(k) * p.lda + row;
    const size_t at_b = p.layout_b == MatrixLayout::row_major ? static_cast<size_t>(k) * p.ldb + col : col * p.ldb + k;
    double product = static_cast<double>(to_float(A[at_a])) * static_cast<double>(to_float(B[first_b + at_b]));
    if (p.scales != Scales::none)
      product *=
          static_cast<double>(
              scale_at(p.scales, p.scale_a, scale_index_a(p.scales, p.m, p.k, static_cast<int>(row), k))) *
          static_cast<double>(scale_at(p.scales, scale_b, scale_index_b(p.scales, p.k, static_cast<int>(col), k)));
    sum += product;
    magnitude += fabs(product);
  }
  sum = block_sum(sum);
  magnitude = block_sum(magnitude);
  if (threadIdx.x != 0) return;
  const double c = p.beta == 0.0F ? 0.0 : to_float(static_cast<const C*>(p.c)[row * p.ldc + col]);
  value[blockIdx.x] = static_cast<double>(p.alpha) * sum + static_cast<double>(p.beta) * c;
  scale[blockIdx.x] = fabs(static_cast<double>(p.alpha)) * magnitude + fabs(static_cast<double>(p.beta) * c);
}

/// One element of products becomes a result.
template <class Result>
struct Finish {
  Problem p;
  ViewC<Result> c;
  float *value, *scale;
  const float *gate_value, *gate_scale;
  double gamma;
  __device__ void operator()(size_t index) const {
    const double bias = p.epilogue.bias ? to_float(static_cast<const Result*>(p.bias)[index % p.n]) : 0.0;
    const double residual = p.beta == 0.0F ? 0.0 : static_cast<double>(p.beta) * c[index];
    const Valued gate = gate_value ? Valued{gate_value[index], gate_scale[index]} : Valued{};
    const Valued d = through_epilogue(p.epilogue, {value[index], scale[index]}, bias, gate, residual, gamma);
    value[index] = static_cast<float>(d.value), scale[index] = static_cast<float>(d.scale);
  }
};

/// The scale of one block of a row; its elements become multiples of it.
struct QuantiseReference {
  int m, n;
  float *value, *scale, *right, *right_scale;
  __device__ void operator()(size_t index) const {
    const size_t row = index % m, first = index / m * 128, end = min(first + 128, static_cast<size_t>(n));
    float largest = 0.0F, largest_scale = 0.0F;
    for (size_t at = row * n + first; at < row * n + end; ++at)
      largest = fmaxf(largest, fabsf(value[at])), largest_scale = fmaxf(largest_scale, scale[at]);
    const float unit = scale_of(largest);
    right[index] = unit, right_scale[index] = largest_scale / 448.0F;
    for (size_t at = row * n + first; at < row * n + end; ++at) value[at] /= unit, scale[at] /= unit;
  }
};

struct Dequantise {
  ViewC<__nv_fp8_e4m3> c;
  size_t m, scale_ld;
  const float *scale, *right;
  float* to;
  __device__ void operator()(size_t index) const {
    const size_t row = index / c.cols, block = index % c.cols / 128;
    to[index] = c[index] * (scale[block * scale_ld + row] / right[block * m + row]);
  }
};

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

/// Adds what was found at `index` to a tally that all threads share. Errors are not negative, so their bits are in order.
__device__ void note(Tally* tally, size_t index, bool wrong, double error) {
  if (wrong) {
    atomicAdd(&tally->wrong, 1ULL);
    atomicMin(&tally->first, static_cast<unsigned long long>(index));
  }
  if (error > *static_cast<volatile double*>(&tally->max_error))
    atomicMax(reinterpret_cast<unsigned long long*>(&tally->max_error), __double_as_longlong(error));
}

struct JudgeAgainst {
  const float *reference, *scale;
  Bound bound;
  __device__ void operator()(float got, size_t index, Tally* tally) const {
    const Judgement j = judge(got, reference[index], scale[index], bound);
    note(tally, index, j.wrong, j.error);
  }
};
struct JudgeFinite {
  __device__ void operator()(float got, size_t index, Tally* tally) const { note(tally, index, !isfinite(got), 0.0); }
};
template <class Judge, class C>
struct JudgeElement {
  Judge judge_element;
  ViewC<C> c;
  Tally* tally;
  __device__ void operator()(size_t index) const { judge_element(c[index], index, tally); }
};

/// What `judge_element` noted of every element of C.
template <class Judge>
Tally tally(const Problem& p, const Judge& judge_element) {
  const DeviceBuffer found = to_device(std::vector<Tally>(1));
  visit(AllTypes{}, p.type, p.out, [&]<Type type, class C>() {
    for_each_index(static_cast<size_t>(p.m) * p.n, p.stream,
                   JudgeElement<Judge, C>{judge_element, ViewC<C>(p), found.as<Tally>()});
  });
  cuda_check(cudaStreamSynchronize(p.stream));
  return to_host<Tally>(found)[0];
}

/// Absolute value, by clearing the sign, which is the highest bit of every format.
template <class Element>
struct ClearSign {
  unsigned char* data;
  __device__ void operator()(size_t index) const { data[(index + 1) * sizeof(Element) - 1] &= 0x7F; }
};

template <class Element>
struct Widen {
  Elements<Element> from;
  __half* to;
  __device__ void operator()(size_t index) const { to[index] = from_float<__half>(to_float(from[index])); }
};

/// An operand times its scales, with `columns` of `ld` elements in each of its stored rows. Index: where(column or row of the product, k).
template <class Element, class Index>
struct Scale {
  Elements<Element> from;
  float* to;
  const float* scales;
  int columns, ld;
  bool rows_run_along_k;
  Index where;
  __device__ void operator()(size_t index) const {
    const int outer = static_cast<int>(index / ld), inner = static_cast<int>(index % ld);
    if (inner < columns)
      to[index] = to_float(from[index]) *
                  scale_at(where.scales, scales, rows_run_along_k ? where(outer, inner) : where(inner, outer));
  }
};
struct IndexA {
  Scales scales;
  int m, depth;
  __device__ size_t operator()(int row, int k) const { return scale_index_a(scales, m, depth, row, k); }
};
struct IndexB {
  Scales scales;
  int n, depth;
  __device__ size_t operator()(int col, int k) const {  // columns are counted through all groups
    return col / n * scale_stride_b(scales, n, depth) + scale_index_b(scales, depth, col % n, k);
  }
};

/// `type`, `extent`: of the operand, the latter across k.
template <class Index>
DeviceBuffer scaled(const Problem& p, Type type, const void* data, const float* scales, int extent, int ld,
                    bool rows_run_along_k, Index where) {
  const size_t elements = static_cast<size_t>(rows_run_along_k ? extent : p.k) * ld;
  DeviceBuffer copy(elements * sizeof(float));
  visit(AllTypes{}, type, [&]<Type row>() {
    using Element = typename Operand<row>::Element;
    for_each_index(elements, p.stream,
                   Scale<Element, Index>{
                       {data}, copy.as<float>(), scales, rows_run_along_k ? p.k : extent, ld, rows_run_along_k, where});
  });
  return copy;
}

/// C, converted to FP32 without padding, into `values`; its absolute value into `magnitudes`.
template <class C>
struct CopyC {
  ViewC<C> c;
  float *values, *magnitudes;
  __device__ void operator()(size_t index) const {
    values[index] = c[index];
    magnitudes[index] = fabsf(values[index]);
  }
};

template <class Element>
float read(const Element* from) {
  Element element;
  cuda_check(cudaMemcpy(&element, from, sizeof element, cudaMemcpyDeviceToHost));
  return to_float(element);
}

}  // namespace

void fp64_elements(const Problem& p, Samples& samples) {
  const DeviceBuffer index = to_device(samples.index);
  const DeviceBuffer value(samples.index.size() * sizeof(double)), scale(samples.index.size() * sizeof(double));
  visit(AllTypes{}, p.type, p.out, [&]<Type type, class C>() {
    fp64_element<typename Operand<type>::Element, typename Operand<of_b(type)>::Element, C>
        <<<static_cast<int>(samples.index.size()), product_threads, 0, p.stream>>>(
            p, index.as<size_t>(), value.as<double>(), scale.as<double>());
  });
  cuda_check(cudaGetLastError());
  cuda_check(cudaStreamSynchronize(p.stream));
  samples.value = to_host<double>(value);
  samples.scale = to_host<double>(scale);
}

Tally tally_against(const Problem& p, const float* reference, const float* scale, const Bound& bound) {
  return tally(p, JudgeAgainst{reference, scale, bound});
}

void finish(const Problem& p, float* value, float* scale, const float* gate_value, const float* gate_scale,
            double gamma) {
  visit(AllTypes{}, p.type, p.out, [&]<Type type, class Result>() {
    for_each_index(static_cast<size_t>(p.m) * p.n, p.stream,
                   Finish<Result>{p, ViewC<Result>(p), value, scale, gate_value, gate_scale, gamma});
  });
}

ScalesOfC quantise_reference(const Problem& p, float* value, float* scale) {
  const size_t scales = static_cast<size_t>(ceil_div(p.n, 128)) * p.m;
  const DeviceBuffer right(scales * sizeof(float)), right_scale(scales * sizeof(float));
  for_each_index(scales, p.stream,
                 QuantiseReference{p.m, p.n, value, scale, right.as<float>(), right_scale.as<float>()});
  cuda_check(cudaStreamSynchronize(p.stream));
  return {to_host<float>(right), to_host<float>(right_scale)};
}

DeviceBuffer dequantised(const Problem& p, const ScalesOfC& scales) {
  const size_t elements = static_cast<size_t>(p.m) * p.n;
  const DeviceBuffer right = to_device(scales.right);
  DeviceBuffer values(elements * sizeof(float));
  for_each_index(elements, p.stream,
                 Dequantise{ViewC<__nv_fp8_e4m3>(p), static_cast<size_t>(p.m), static_cast<size_t>(p.scale_c_ld()),
                            p.scale_c, right.as<float>(), values.as<float>()});
  cuda_check(cudaStreamSynchronize(p.stream));
  return values;
}

Tally tally_infinite(const Problem& p) { return tally(p, JudgeFinite{}); }

DeviceBuffer absolute(const void* data, size_t elements, Type type, cudaStream_t stream) {
  DeviceBuffer copy(operand_bytes(type, elements));
  cuda_check(cudaMemcpyAsync(copy.as<void>(), data, copy.bytes(), cudaMemcpyDeviceToDevice, stream));
  visit(WholeByteTypes{}, type, [&]<Type row>() {
    for_each_index(elements, stream, ClearSign<typename Operand<row>::Element>{copy.as<unsigned char>()});
  });
  return copy;
}

DeviceBuffer as_f16(const void* data, size_t elements, Type type, cudaStream_t stream) {
  DeviceBuffer copy(elements * sizeof(__half));
  visit(Types<Type::e4m3, Type::e5m2, Type::e2m1>{}, type, [&]<Type row>() {
    using Element = typename Operand<row>::Element;
    for_each_index(elements, stream, Widen<Element>{{data}, copy.as<__half>()});
  });
  return copy;
}

DeviceBuffer scaled_a(const Problem& p) {
  return scaled(p, p.type, p.a, p.scale_a, p.m, p.lda, p.layout_a == MatrixLayout::row_major,
                IndexA{p.scales, p.m, p.k});
}
DeviceBuffer scaled_b(const Problem& p) {
  const int columns = (p.groups > 0 ? p.groups : 1) * p.n;
  return scaled(p, of_b(p.type), p.b, p.scale_b, columns, p.ldb, p.layout_b == MatrixLayout::col_major,
                IndexB{p.scales, p.n, p.k});
}

void copy_c(const Problem& p, float* values, float* magnitudes) {
  visit(AllTypes{}, p.type, p.out, [&]<Type type, class C>() {
    for_each_index(static_cast<size_t>(p.m) * p.n, p.stream, CopyC<C>{ViewC<C>(p), values, magnitudes});
  });
}

float read_c(const Problem& p, size_t index) {
  return visit(AllTypes{}, p.type, p.out,
               [&]<Type type, class C>() { return read(p.C<C>() + index / p.n * p.ldc + index % p.n); });
}

float read_bias(const Problem& p, size_t column) {
  return visit(AllTypes{}, p.type, p.out,
               [&]<Type type, class C>() { return read(static_cast<const C*>(p.bias) + column); });
}

}  // namespace ladder
