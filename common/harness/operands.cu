#include "common/harness/operands.h"

#include <cmath>
#include <utility>

#include "common/harness/for_each_index.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"

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

/// Quiet NaNs that no arithmetic produces: arithmetic NaNs on NVIDIA GPUs have all mantissa bits set.
template <size_t bytes>
struct Pattern;
template <>
struct Pattern<4> {
  using Bits = uint32_t;
  static constexpr Bits guard = 0x7FC0BAD1, poison = 0x7FC0DEAD;
};
template <>
struct Pattern<2> {
  using Bits = uint16_t;
  static constexpr Bits guard = 0x7FD1, poison = 0x7FDE;  // NaN as BF16 and as FP16
};
template <>
struct Pattern<1> {
  using Bits = uint8_t;
  static constexpr Bits guard = 0xFF, poison = 0x7F;  // NaN as E4M3 and as E5M2
};
template <class Element>
using PatternOf = Pattern<sizeof(Element)>;

/// Of `sets` row-major matrices of `rows` x `cols` with leading dimension `ld`, `stride` apart: what an element becomes.
template <class Element>
struct Fill {
  using Bits = typename PatternOf<Element>::Bits;
  Element* data;
  size_t rows, cols, ld, stride;
  Init init;
  float scale;  ///< of random values
  uint64_t seed;
  Bits padding;
  bool poison;
  __device__ size_t at(size_t index) const { return index / (rows * ld) * stride + index % (rows * ld); }
  __device__ bool is_padding(size_t index) const { return index % (rows * ld) % ld >= cols; }
  __device__ Element random(size_t index) const {
    return from_float<Element>(scale * random_value(init, mix(seed, index)));
  }
  __device__ void operator()(size_t index) const {
    if (is_padding(index))
      reinterpret_cast<Bits*>(data)[at(index)] = padding;
    else if (poison)
      reinterpret_cast<Bits*>(data)[at(index)] = PatternOf<Element>::poison;
    else
      data[at(index)] = random(index);
  }
};

/// The same of elements of 4 bits, by the byte; rows have an even number of them. There is no NaN: padding holds 6.
template <class Element>
struct FillPairs {
  Fill<Element> each;
  __device__ void operator()(size_t index) const {
    unsigned char byte = 0;
    for (int i = 0; i < 2; ++i) byte |= (each.is_padding(2 * index + i) ? 7 : each.random(2 * index + i).__x) << 4 * i;
    reinterpret_cast<unsigned char*>(each.data)[each.at(2 * index) / 2] = byte;
  }
};

/// C of one set, with a guard before and one after; indices count from the first guard element.
template <class Element>
struct Guarded {
  using Bits = typename PatternOf<Element>::Bits;
  Bits* data;  // of C itself
  size_t rows, cols, ld;
  __device__ bool is_guard(size_t index) const {
    return index < guard_elements || index >= guard_elements + rows * ld || (index - guard_elements) % ld >= cols;
  }
};
template <class Element>
struct FillGuard : Guarded<Element> {
  __device__ void operator()(size_t index) const {
    if (this->is_guard(index)) *(this->data + index - guard_elements) = PatternOf<Element>::guard;
  }
};
template <class Element>
struct CountChanged : Guarded<Element> {
  unsigned long long* changed;
  __device__ void operator()(size_t index) const {
    if (this->is_guard(index) && *(this->data + index - guard_elements) != PatternOf<Element>::guard)
      atomicAdd(changed, 1ULL);
  }
};

/// Of `sets` matrices of scales, `stride` floats apart: the first `cols` of `ld` floats in each row are scales.
struct FillScales {
  float* data;
  size_t rows, cols, ld, stride;
  float octaves;  ///< scales are 2^-5.5 times at most half of them to either side
  uint64_t seed;
  __device__ void operator()(size_t index) const {
    const size_t within = index % stride;
    const float u = ((mix(seed, index) >> 40) + 0.5F) * 0x1p-24F;  // uniform in (0, 1)
    const uint32_t bits = __float_as_uint(exp2f(-5.5F + octaves * (u - 0.5F)));
    // 16 significant bits, the last of which is 1: no power of two, which many mistakes would leave exact.
    const bool is_scale = within < rows * ld && within % ld < cols;
    reinterpret_cast<uint32_t*>(data)[index] = is_scale ? (bits & ~0xFFU) | 0x100 : Pattern<4>::poison;
  }
};

/// Of `sets` matrices of scales of mx or nv, `stride` bytes apart: a byte each, from 2^-7 to 2^-5, of mx a power of 2, and 0 where there is
/// none.
struct FillScaleBytes {
  unsigned char* data;
  int vector, rows, k;
  size_t stride;
  uint64_t seed;
  __device__ void operator()(size_t index) const {
    const size_t within = index % stride, tile = within / 512;
    const int along_k = (k - 1) / (4 * vector) + 1;
    const size_t row = tile / along_k * 128 + within % 16 / 4 * 32 + within % 512 / 16;
    const size_t first_k = (tile % along_k * 4 + within % 4) * vector;
    const int random = static_cast<int>((mix(seed, index) >> 40) & 0xFFFF);
    const int byte = vector == 32 ? 120 + random % 3 : 4 + random % 13;  // UE8M0; E4M3: 2^-7, then steps of 2^-9
    data[index] = row < rows && first_k < k ? byte : 0;
  }
};

/// What random operands of a type are multiplied by. Whole numbers stay as they are.
float scale(Type type, Init init) { return init == Init::integer ? 1.0F : facts(type).scale; }

/// What random elements of B are multiplied by. An epilogue gets sums of about 1, where activations are neither 0 nor the identity: times
/// a power of two near 1 / sqrt(K).
float scale_b(const OperandSpec& spec) {
  const float own = scale(spec.type, spec.init);
  return spec.epilogue == Epilogue{} ? own : own * std::exp2(-std::round(std::log2(spec.shape.k) / 2));
}

}  // namespace

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

// Strides from one copy to the next: of A and B in bytes, of C in elements.
size_t Operands::stride_a() const {
  return round_up(operand_bytes(spec_.type, static_cast<size_t>(spec_.rows_a()) * spec_.lda()));
}
size_t Operands::stride_b() const {
  return round_up(operand_bytes(spec_.type, static_cast<size_t>(spec_.rows_b()) * spec_.ldb()));
}
size_t Operands::stride_c() const {
  const size_t element = spec_.c_bytes();
  return round_up((static_cast<size_t>(spec_.shape.m) * spec_.ldc() + 2 * guard_elements) * element) / element;
}

size_t Operands::stride_scale_c() const {
  const size_t rows = spec_.problem(1, 0).scale_c_ld();
  return spec_.scale_blocks() ? spec_.scale_blocks() * rows + 2 * guard_elements : 0;
}

size_t Operands::bytes(const OperandSpec& spec, int sets) {
  const size_t m = spec.shape.m, rows_a = spec.rows_a(), rows_b = spec.rows_b();
  const size_t result = spec.c_bytes();
  const size_t scales_c = spec.scale_blocks() * (m + 4) * sizeof(float);
  return sets * (round_up(operand_bytes(spec.type, rows_a * spec.lda())) +
                 (1 + spec.epilogue.gate) * round_up(operand_bytes(spec.type, rows_b * spec.ldb())) +
                 round_up((m * spec.ldc() + 2 * guard_elements) * result) + scales_c +
                 round_up(sizeof(float) * scale_floats_a(spec.scales, spec.shape.m, spec.shape.k)) +
                 round_up(sizeof(float) * spec.scale_floats_b())) +
         (spec.groups + 1) * sizeof(int);
}

Operands::Operands(const OperandSpec& spec, int sets) : spec_(spec), sets_(sets) {
  a_ = DeviceBuffer(sets * stride_a());
  b_ = DeviceBuffer(sets * stride_b());
  c_ = DeviceBuffer(sets * stride_c() * spec.c_bytes());
  scale_c_ = DeviceBuffer(sets * stride_scale_c() * sizeof(float));
  if (spec.epilogue.gate) b_gate_ = DeviceBuffer(b_.bytes());
  if (spec.epilogue.bias) bias_ = DeviceBuffer(spec.shape.n * result_bytes(spec.type, spec.out));

  visit(AllTypes{}, spec.type, spec.out, [&]<Type type, class Result>() {
    using Element = typename Operand<type>::Element;
    using ElementB = typename Operand<of_b(type)>::Element;
    const auto fill = [&]<class T>(T* data, size_t rows, size_t cols, size_t ld, size_t stride, float times,
                                   uint64_t salt) {
      const size_t stride_elements = stride / sizeof(T) * per_byte<type>();
      const Fill<T> each{
          data, rows, cols, ld, stride_elements, spec.init, times, mix(spec.seed, salt), PatternOf<T>::poison, false};
      if constexpr (per_byte<type>() == 1)
        for_each_index(sets * rows * ld, nullptr, each);
      else
        for_each_index(sets * rows * ld / 2, nullptr, FillPairs<T>{each});
    };
    fill(a_.as<Element>(), spec.rows_a(), spec.columns_a(), spec.lda(), stride_a(), scale(spec.type, spec.init), 1);
    fill(b_.as<ElementB>(), spec.rows_b(), spec.columns_b(), spec.ldb(), stride_b(), scale_b(spec), 2);
    if (spec.epilogue.gate)
      fill(b_gate_.as<ElementB>(), spec.rows_b(), spec.columns_b(), spec.ldb(), stride_b(), scale_b(spec), ~2ULL);
    if (const size_t n = spec.shape.n; spec.epilogue.bias)
      for_each_index(n, nullptr,
                     Fill<Result>{bias_.as<Result>(), 1, n, n, 0, spec.init, 1.0F, mix(spec.seed, ~3ULL), 0, false});
  });
  const auto [m, n, k] = spec.shape;
  const bool blocks = spec.scales == Scales::blocks;
  const auto fill_scales = [&](DeviceBuffer& buffer, size_t floats, size_t cols, size_t ld, uint64_t salt) {
    const size_t stride = round_up(floats * sizeof(float)) / sizeof(float);
    buffer = DeviceBuffer(sets * stride * sizeof(float));
    for_each_index(
        sets * stride, nullptr,
        FillScales{buffer.as<float>(), floats / ld, cols, ld, stride, blocks ? 1.0F : 3.0F, mix(spec.seed, salt)});
  };
  const auto fill_scale_bytes = [&](DeviceBuffer& buffer, int rows, uint64_t salt) {
    const size_t stride = round_up(scale_floats_a(spec.scales, rows, k) * sizeof(float));
    buffer = DeviceBuffer(sets * stride);
    for_each_index(
        sets * stride, nullptr,
        FillScaleBytes{buffer.as<unsigned char>(), scale_vector(spec.scales), rows, k, stride, mix(spec.seed, salt)});
  };
  if (scale_vector(spec.scales) > 0) {
    fill_scale_bytes(scale_a_, m, ~0ULL), fill_scale_bytes(scale_b_, n, ~1ULL);
  } else if (spec.scales != Scales::none) {
    const size_t a = scale_floats_a(spec.scales, m, k), b = spec.scale_floats_b();
    fill_scales(scale_a_, a, blocks ? m : a, blocks ? scale_ld_a(m) : a, ~0ULL);
    fill_scales(scale_b_, b, blocks ? ceil_div(k, SCALE_BLOCK) : b, blocks ? scale_ld_b(k) : b, ~1ULL);
  }
  for (int set = 0; set < sets; ++set) fill_c(set, false, nullptr);
  const std::vector<int> first_row = spec.first_rows();
  first_row_ = DeviceBuffer(first_row.size() * sizeof(int));
  cuda_check(cudaMemcpy(first_row_.as<int>(), first_row.data(), first_row_.bytes(), cudaMemcpyHostToDevice));
  cuda_check(cudaStreamSynchronize(nullptr));
}

std::vector<int> OperandSpec::first_rows() const {
  return groups == 0 ? std::vector<int>() : ladder::first_rows(shape.m, groups, group_rows, seed);
}

size_t OperandSpec::scale_floats_b() const {
  const bool one_for_all = groups == 0 || scales == Scales::tensor;
  return (one_for_all ? 1 : groups) * ladder::scale_floats_b(scales, shape.n, shape.k);
}

Problem OperandSpec::problem(float alpha, float beta) const {
  Problem p;
  p.m = shape.m, p.n = shape.n, p.k = shape.k;
  p.type = type, p.out = out, p.layout_a = layout_a, p.layout_b = layout_b;
  p.alpha = alpha, p.beta = beta;
  p.lda = lda(), p.ldb = ldb(), p.ldc = ldc();
  p.scales = scales, p.groups = groups, p.epilogue = epilogue;
  return p;
}

Problem Operands::problem(int set, float alpha, float beta, cudaStream_t stream) const {
  const size_t result = spec_.c_bytes();
  Problem p = spec_.problem(alpha, beta);
  p.a = a_.as<char>() + set * stride_a();
  p.b = b_.as<char>() + set * stride_b();
  p.c = c_.as<char>() + (set * stride_c() + guard_elements) * result;
  p.stream = stream;
  if (spec_.scales != Scales::none) {
    p.scale_a = scale_a_.as<float>() + set * (scale_a_.bytes() / sizeof(float) / sets_);
    p.scale_b = scale_b_.as<float>() + set * (scale_b_.bytes() / sizeof(float) / sets_);
  }
  p.first_row = first_row_.as<int>();
  if (spec_.epilogue.bias) p.bias = bias_.as<void>();
  if (spec_.epilogue.gate) p.b_gate = b_gate_.as<char>() + set * stride_b();
  if (spec_.epilogue.quantise) p.scale_c = scale_c_.as<float>() + set * stride_scale_c() + guard_elements;
  return p;
}

void Operands::fill_c(int set, bool poison, cudaStream_t stream) {
  const size_t m = spec_.shape.m, n = spec_.shape.n, ldc = spec_.ldc();
  const float of_product = scale(spec_.type, spec_.init) * scale(spec_.type, spec_.init) *
                           (spec_.scales == Scales::none ? 1.0F : 0x1p-11F);  // both scales, on average
  visit_stored(spec_.type, spec_.out, spec_.epilogue, [&]<Type type, class C>() {
    C* const c = c_.as<C>() + set * stride_c() + guard_elements;
    for_each_index(
        m * ldc, stream,
        Fill<C>{c, m, n, ldc, 0, spec_.init, of_product, mix(spec_.seed, 3 + set), PatternOf<C>::guard, poison});
    for_each_index(m * ldc + 2 * guard_elements, stream,
                   FillGuard<C>{{reinterpret_cast<typename PatternOf<C>::Bits*>(c), m, n, ldc}});
  });
  if (const size_t blocks = spec_.scale_blocks()) {
    const Problem p = problem(set, 1, 0, stream);
    const size_t ld = p.scale_c_ld();
    for_each_index(blocks * ld, stream,
                   Fill<float>{p.scale_c, blocks, m, ld, 0, spec_.init, 1.0F, 0, Pattern<4>::guard, true});
    for_each_index(blocks * ld + 2 * guard_elements, stream,
                   FillGuard<float>{{reinterpret_cast<uint32_t*>(p.scale_c), blocks, m, ld}});
  }
}

size_t Operands::guard_violations(int set, cudaStream_t stream) const {
  const size_t m = spec_.shape.m, n = spec_.shape.n, ldc = spec_.ldc();
  const DeviceBuffer changed(sizeof(unsigned long long));
  cuda_check(cudaMemsetAsync(changed.as<void>(), 0, changed.bytes(), stream));
  visit_stored(spec_.type, spec_.out, spec_.epilogue, [&]<Type type, class C>() {
    using Bits = typename PatternOf<C>::Bits;
    Bits* const c = c_.as<Bits>() + set * stride_c() + guard_elements;
    for_each_index(m * ldc + 2 * guard_elements, stream,
                   CountChanged<C>{{c, m, n, ldc}, changed.as<unsigned long long>()});
  });
  if (const size_t blocks = spec_.scale_blocks()) {
    const Problem p = problem(set, 1, 0, stream);
    const size_t ld = p.scale_c_ld();
    for_each_index(
        blocks * ld + 2 * guard_elements, stream,
        CountChanged<float>{{reinterpret_cast<uint32_t*>(p.scale_c), blocks, m, ld}, changed.as<unsigned long long>()});
  }
  unsigned long long count = 0;
  cuda_check(cudaMemcpyAsync(&count, changed.as<void>(), sizeof count, cudaMemcpyDeviceToHost, stream));
  cuda_check(cudaStreamSynchronize(stream));
  return count;
}

}  // namespace ladder
