#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <utility>

#include "common/harness/operands.h"
#include "common/rung.h"

namespace ladder {
namespace {

constexpr size_t guard_elements = 1024;  // before and after each copy of C
constexpr size_t align_bytes = 256;      // of every copy

size_t round_up(size_t bytes) { return (bytes + align_bytes - 1) / align_bytes * align_bytes; }

/// 64 well mixed bits of (seed, index): the finaliser of SplitMix64 (G. Steele et al., OOPSLA 2014).
__host__ __device__ inline uint64_t mix(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

__device__ inline float random_value(Init init, uint64_t bits) {
  const float u = ((bits >> 40) + 0.5F) * 0x1p-24F;       // uniform in (0, 1)
  const float v = ((bits & 0xFFFFFF) + 0.5F) * 0x1p-24F;  // independent of u
  switch (init) {
    case Init::normal:
      return sqrtf(-2.0F * logf(u)) * cospif(2.0F * v);  // Box-Muller
    case Init::uniform:
      return 2.0F * u - 1.0F;
    case Init::integer:
      return floorf(u * 9.0F) - 4.0F;
    case Init::zeros:
      break;
  }
  return 0.0F;
}

/// Bits of a quiet NaN that no arithmetic produces: arithmetic NaNs on NVIDIA GPUs have all mantissa bits set.
template <class T>
struct Pattern;
template <>
struct Pattern<uint32_t> {
  static constexpr uint32_t guard = 0x7FC0BAD1, poison = 0x7FC0DEAD;
};
template <>
struct Pattern<uint16_t> {
  static constexpr uint16_t guard = 0x7FD1, poison = 0x7FDE;  // a NaN as BF16 and as FP16
};

__device__ inline uint32_t to_bits(float value, Type) { return __float_as_uint(value); }
__device__ inline uint16_t to_bits16(float value, Type type) {
  return type == Type::bf16 ? __bfloat16_as_ushort(__float2bfloat16(value)) : __half_as_ushort(__float2half(value));
}

/// Element `index` of `sets` row-major matrices of `rows` x `cols` with leading dimension `ld`, `stride` apart.
template <class Bits>
struct Fill {
  Bits* data;
  size_t rows, cols, ld, stride;
  Init init;
  uint64_t seed;
  Type type;
  Bits padding;
  bool poison;
  __device__ void operator()(size_t index) const {
    const size_t set = index / (rows * ld), within = index % (rows * ld);
    Bits& element = data[set * stride + within];
    if (within % ld >= cols)
      element = padding;
    else if (poison)
      element = Pattern<Bits>::poison;
    else if constexpr (sizeof(Bits) == 4)
      element = to_bits(random_value(init, mix(seed, index)), type);
    else
      element = to_bits16(random_value(init, mix(seed, index)), type);
  }
};

template <class Bits>
void fill(const DeviceBuffer& buffer, size_t offset, size_t sets, size_t rows, size_t cols, size_t ld, size_t stride,
          Init init, uint64_t seed, Type type, Bits padding, bool poison, cudaStream_t stream) {
  const Fill<Bits> element{buffer.as<Bits>() + offset, rows, cols, ld, stride, init, seed, type, padding, poison};
  thrust::for_each_n(thrust::cuda::par_nosync.on(stream), thrust::counting_iterator<size_t>(0), sets * rows * ld,
                     element);
}

template <class Bits>
struct GuardChanged {
  const Bits* data;  // of the C matrix; guards lie before and after
  size_t rows, cols, ld;
  __device__ bool operator()(size_t index) const {  // counted from the first guard element
    const bool inside = index >= guard_elements && index < guard_elements + rows * ld;
    if (inside && (index - guard_elements) % ld < cols) return false;
    return *(data + index - guard_elements) != Pattern<Bits>::guard;
  }
};

template <class Bits>
struct FillGuard {
  Bits* data;
  size_t elements;  // of the C matrix, between the two guards
  __device__ void operator()(size_t index) const {
    *(data + index - guard_elements + (index < guard_elements ? 0 : elements)) = Pattern<Bits>::guard;
  }
};

}  // namespace

size_t operand_bytes(Type type) { return type == Type::f32 || type == Type::tf32 ? 4 : 2; }
size_t result_bytes(Type type, Out out) { return out == Out::f32 ? 4 : operand_bytes(type); }

DeviceBuffer::DeviceBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes) cuda_check(cudaMalloc(&data_, bytes));
}
DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }
DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

// Strides in elements, from one copy to the next.
size_t Operands::stride_a() const {
  const size_t element = operand_bytes(spec_.type);
  return round_up(static_cast<size_t>(spec_.shape.m) * spec_.lda() * element) / element;
}
size_t Operands::stride_b() const {
  const size_t element = operand_bytes(spec_.type);
  const size_t rows = spec_.layout_b == LayoutB::row_major ? spec_.shape.k : spec_.shape.n;
  return round_up(rows * spec_.ldb() * element) / element;
}
size_t Operands::stride_c() const {
  const size_t element = result_bytes(spec_.type, spec_.out);
  return round_up((static_cast<size_t>(spec_.shape.m) * spec_.ldc() + 2 * guard_elements) * element) / element;
}

size_t Operands::bytes(const OperandSpec& spec, int sets) {
  const size_t m = spec.shape.m, k = spec.shape.k, n = spec.shape.n;
  const size_t rows_b = spec.layout_b == LayoutB::row_major ? k : n;
  const size_t element = operand_bytes(spec.type), result = result_bytes(spec.type, spec.out);
  return sets * (round_up(m * spec.lda() * element) + round_up(rows_b * spec.ldb() * element) +
                 round_up((m * spec.ldc() + 2 * guard_elements) * result));
}

Operands::Operands(const OperandSpec& spec, int sets) : spec_(spec), sets_(sets) {
  const size_t m = spec.shape.m, n = spec.shape.n, k = spec.shape.k;
  const bool row_major = spec.layout_b == LayoutB::row_major;
  const size_t element = operand_bytes(spec.type);
  a_ = DeviceBuffer(sets * stride_a() * element);
  b_ = DeviceBuffer(sets * stride_b() * element);
  c_ = DeviceBuffer(sets * stride_c() * result_bytes(spec.type, spec.out));

  const auto fill_operand = [&]<class Bits>(Bits nan, const DeviceBuffer& buffer, size_t rows, size_t cols, size_t ld,
                                            size_t stride, uint64_t salt) {
    fill<Bits>(buffer, 0, sets, rows, cols, ld, stride, spec.init, mix(spec.seed, salt), spec.type, nan, false,
               nullptr);
  };
  if (element == 4) {
    fill_operand(Pattern<uint32_t>::poison, a_, m, k, spec.lda(), stride_a(), 1);
    fill_operand(Pattern<uint32_t>::poison, b_, row_major ? k : n, row_major ? n : k, spec.ldb(), stride_b(), 2);
  } else {
    fill_operand(Pattern<uint16_t>::poison, a_, m, k, spec.lda(), stride_a(), 1);
    fill_operand(Pattern<uint16_t>::poison, b_, row_major ? k : n, row_major ? n : k, spec.ldb(), stride_b(), 2);
  }
  for (int set = 0; set < sets; ++set) fill_c(set, false, nullptr);
  cuda_check(cudaStreamSynchronize(nullptr));
}

Problem Operands::problem(int set, float alpha, float beta, cudaStream_t stream) const {
  const size_t element = operand_bytes(spec_.type), result = result_bytes(spec_.type, spec_.out);
  Problem p;
  p.m = spec_.shape.m, p.n = spec_.shape.n, p.k = spec_.shape.k;
  p.type = spec_.type, p.out = spec_.out, p.layout_b = spec_.layout_b;
  p.alpha = alpha, p.beta = beta;
  p.a = a_.as<char>() + set * stride_a() * element;
  p.b = b_.as<char>() + set * stride_b() * element;
  p.c = c_.as<char>() + (set * stride_c() + guard_elements) * result;
  p.lda = spec_.lda(), p.ldb = spec_.ldb(), p.ldc = spec_.ldc();
  p.stream = stream;
  return p;
}

void Operands::fill_c(int set, bool poison, cudaStream_t stream) {
  const size_t m = spec_.shape.m, n = spec_.shape.n, ldc = spec_.ldc();
  const auto run = [&]<class Bits>(Bits guard) {
    const size_t offset = set * stride_c() + guard_elements;
    fill<Bits>(c_, offset, 1, m, n, ldc, stride_c(), spec_.init, mix(spec_.seed, 3 + set), spec_.type, guard, poison,
               stream);
    thrust::for_each_n(thrust::cuda::par_nosync.on(stream), thrust::counting_iterator<size_t>(0), 2 * guard_elements,
                       FillGuard<Bits>{c_.as<Bits>() + offset, m * ldc});
  };
  result_bytes(spec_.type, spec_.out) == 4 ? run(Pattern<uint32_t>::guard) : run(Pattern<uint16_t>::guard);
}

size_t Operands::guard_violations(int set, cudaStream_t stream) const {
  const size_t m = spec_.shape.m, n = spec_.shape.n, ldc = spec_.ldc();
  const auto run = [&]<class Bits>(Bits) -> size_t {
    const GuardChanged<Bits> changed{c_.as<Bits>() + set * stride_c() + guard_elements, m, n, ldc};
    return thrust::count_if(thrust::cuda::par.on(stream), thrust::counting_iterator<size_t>(0),
                            thrust::counting_iterator<size_t>(m * ldc + 2 * guard_elements), changed);
  };
  return result_bytes(spec_.type, spec_.out) == 4 ? run(uint32_t{}) : run(uint16_t{});
}

}  // namespace ladder
