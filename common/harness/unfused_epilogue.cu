#include "common/epilogue.h"
#include "common/harness/unfused_epilogue.h"
#include "common/quantise.h"
#include "common/rung.h"
#include "common/types.h"

namespace ladder {
namespace {

constexpr int WARPS = 8, PER_LANE = 4;  // elements; 128 per warp, those of one scale

template <class T>
struct alignas(PER_LANE * sizeof(T)) Four {
  T element[PER_LANE];
};

/// Elements of a row from `col` on, as floats: with one load where they are whole and aligned.
template <class T>
__device__ void load(float (&x)[PER_LANE], const T* row, int col, int N, bool aligned) {
  if (aligned && col + PER_LANE <= N) {
    const auto four = *reinterpret_cast<const Four<T>*>(row + col);
    for (int i = 0; i < PER_LANE; ++i) x[i] = to_float(four.element[i]);
  } else {
    for (int i = 0; i < PER_LANE; ++i) x[i] = col + i < N ? to_float(row[col + i]) : 0.0F;
  }
}
template <class T>
__device__ void store(const float (&x)[PER_LANE], T* row, int col, int N, bool aligned) {
  Four<T> four;
  for (int i = 0; i < PER_LANE; ++i) four.element[i] = from_float<T>(x[i]);
  if (aligned && col + PER_LANE <= N)
    *reinterpret_cast<Four<T>*>(row + col) = four;
  else
    for (int i = 0; i < PER_LANE; ++i)
      if (col + i < N) row[col + i] = four.element[i];
}

/// D from `product` and `gate`, laid out as D. A warp for 128 columns of a row. Which steps is the same for all threads, and memory is slower.
template <class T>
__global__ void __launch_bounds__(WARPS * 32) epilogue(Problem p, int scale_c_ld, const T* product, const T* gate) {
  T* const C = static_cast<T*>(p.c);
  const int blocks = ceil_div(p.n, 128), lane = threadIdx.x % 32;
  const size_t warp = static_cast<size_t>(blockIdx.x) * WARPS + threadIdx.x / 32, row = warp / blocks;
  const int col = static_cast<int>(warp % blocks) * 128 + lane * PER_LANE;
  if (row >= static_cast<size_t>(p.m)) return;
  const bool aligned = p.ldc % PER_LANE == 0;
  float x[PER_LANE], g[PER_LANE], c[PER_LANE], largest = 0.0F;
  load(x, product + row * p.ldc, col, p.n, aligned);
  if (gate) load(g, gate + row * p.ldc, col, p.n, aligned);
  if (p.beta != 0.0F) load(c, C + row * p.ldc, col, p.n, aligned);
  for (int i = 0; i < PER_LANE; ++i) {
    const Place at{static_cast<int>(row), col + i, gate ? g[i] : 0.0F};
    if (p.epilogue.bias) x[i] = Bias<T>{static_cast<const T*>(p.bias), p.n}(x[i], at);
    if (p.epilogue.activation == Activation::gelu) x[i] = Gelu{}(x[i], at);
    if (p.epilogue.activation == Activation::silu) x[i] = Silu{}(x[i], at);
    if (gate) x[i] = Gate{1.0F}(x[i], at);
    if (p.beta != 0.0F) x[i] += p.beta * c[i];
    largest = fmaxf(largest, fabsf(x[i]));
  }
  if (!p.epilogue.quantise) return store(x, C + row * p.ldc, col, p.n, aligned);
  for (int lanes = 1; lanes < 32; lanes *= 2) largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, lanes));
  const float scale = scale_of(largest), inverse = 1.0F / scale;
  if (lane == 0) p.scale_c[static_cast<size_t>(col / 128) * scale_c_ld + row] = scale;
  for (float& one : x) one *= inverse;
  store(x, static_cast<__nv_fp8_e4m3*>(p.c) + row * p.ldc, col, p.n, aligned);
}

size_t product_bytes(const OperandSpec& spec) {
  return static_cast<size_t>(spec.shape.m) * spec.ldc() * result_bytes(spec.type, spec.out);
}

}  // namespace

UnfusedEpilogue::UnfusedEpilogue(const OperandSpec& spec)
    : product_(product_bytes(spec)), gate_(spec.epilogue.gate ? product_bytes(spec) : 0) {}

size_t UnfusedEpilogue::bytes(const OperandSpec& spec) { return (1 + spec.epilogue.gate) * product_bytes(spec); }

Problem UnfusedEpilogue::product(const Problem& p, bool gate) const {
  Problem product = p;
  product.epilogue = {};
  product.beta = 0.0F;
  product.b = gate ? p.b_gate : p.b;
  product.c = gate ? gate_.as<void>() : product_.as<void>();
  return product;
}

void UnfusedEpilogue::run(const std::function<void(const Problem&)>& multiply, const Problem& p) const {
  multiply(product(p));
  if (p.epilogue.gate) multiply(product(p, true));
  const size_t warps = static_cast<size_t>(p.m) * ceil_div(p.n, 128);
  visit(AllTypes{}, p.type, p.out, [&]<Type type, class T>() {
    epilogue<T><<<static_cast<unsigned>((warps + WARPS - 1) / WARPS), WARPS * 32, 0, p.stream>>>(
        p, p.scale_c_ld(), product_.as<T>(), gate_.as<T>());
  });
  cuda_check(cudaGetLastError());
}

}  // namespace ladder
