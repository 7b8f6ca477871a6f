// mma and wmma.mma (PTX ISA 9.7.14.4 and 9.7.14.5).
//
// Floating point: what PTX leaves open is done as measurements on the hardware suggest (Fasi, Higham, Mikaitis and Pranesh,
// "Numerical behavior of NVIDIA tensor cores", 2021). Products are exact; they and C are summed at once, in FP64 here, which is
// wider than the hardware's adder; the sum is rounded once, to FP32 toward zero, to FP16 to nearest even. TF32 operands
// are FP32 registers whose low 13 bits are not looked at (9.7.14.5, .tf32): a kernel that does not round is truncated.
// FP64 is a chain of fused multiply-adds.
#include "sim/executor/matrix.h"

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <unordered_map>

namespace sim {
namespace {

// --- element types -------------------------------------------------------------------------------------------------------

struct F16 {
  using Bits = uint16_t;
  using Sum = double;
  static constexpr const char* name = "f16";
  static double value(Bits x) { return _cvtsh_ss(x); }
};
struct Bf16 {
  using Bits = uint16_t;
  using Sum = double;
  static constexpr const char* name = "bf16";
  static double value(Bits x) { return std::bit_cast<float>(uint32_t{x} << 16); }
};
struct Tf32 {
  using Bits = uint32_t;
  using Sum = double;
  static constexpr const char* name = "tf32";
  static double value(Bits x) { return std::bit_cast<float>(x & ~0x1fffU); }
};
struct F32 {
  using Bits = uint32_t;
  static constexpr const char* name = "f32";
  static double value(Bits x) { return std::bit_cast<float>(x); }
};
struct F64 {
  using Bits = uint64_t;
  using Sum = double;
  static constexpr const char* name = "f64";
  static double value(Bits x) { return std::bit_cast<double>(x); }
};
struct S8 {
  using Bits = uint8_t;
  using Sum = uint32_t;  // wraps round
  static constexpr const char* name = "s8";
  static uint32_t value(Bits x) { return uint32_t(int32_t{int8_t(x)}); }
};
struct U8 {
  using Bits = uint8_t;
  using Sum = uint32_t;
  static constexpr const char* name = "u8";
  static uint32_t value(Bits x) { return x; }
};
struct S32 {
  using Bits = uint32_t;
  static constexpr const char* name = "s32";
  static uint32_t value(Bits x) { return x; }
};

/// To FP32, toward zero; NaN is the canonical one.
uint32_t toward_zero(double sum) {
  const float nearest = static_cast<float>(sum);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest) - (std::fabs(double{nearest}) > std::fabs(sum));
  return sum == sum ? bits : 0x7fffffffU;
}

template <class T>
typename T::Bits rounded(auto sum) {
  if constexpr (std::is_same_v<T, F32>) {
    return toward_zero(sum);
  } else if constexpr (std::is_same_v<T, F16>) {
    // Once to FP32 by "round to odd", which leaves the second rounding right (rounding.h).
    const uint32_t bits = toward_zero(sum);
    const uint32_t odd = bits | (double{std::bit_cast<float>(bits)} != sum);
    return sum == sum ? _cvtss_sh(std::bit_cast<float>(odd), _MM_FROUND_TO_NEAREST_INT) : 0x7fff;
  } else if constexpr (std::is_same_v<T, F64>) {
    return std::bit_cast<uint64_t>(sum);
  } else {
    return sum;
  }
}

template <class T>
constexpr int elements_per_register = sizeof(typename T::Bits) >= 4 ? 1 : 4 / int(sizeof(typename T::Bits));

// --- fragments -------------------------------------------------------------------------------------------------------------

/// A register's 32 lanes, one behind the other in memory: of A, a block of 8 rows of 4 * each elements.
template <class T>
const typename T::Bits* lanes(const std::byte* registers, const Element& e) {
  return reinterpret_cast<const typename T::Bits*>(registers + e.offset);
}

template <class T, int M, int K, class Sum>
void gather_a(const std::byte* registers, const Element* fragment, Sum (&a)[M][K]) {
  constexpr int each = elements_per_register<T>, count = M * K / warp_size / each;
  for (int r = 0; r < count; ++r) {
    const auto* block = lanes<T>(registers, fragment[r]);
    const Position origin = a_position(M, K, each, 0, r * each);
    for (int g = 0; g < 8; ++g)
      for (int j = 0; j < 4 * each; ++j) a[origin.row + g][origin.column + j] = T::value(block[4 * each * g + j]);
  }
}

template <class T, int K, int N, class Sum>
void gather_b(const std::byte* registers, const Element* fragment, Sum (&b)[K][N]) {
  constexpr int each = elements_per_register<T>, count = K * N / warp_size / each;
  for (int r = 0; r < count; ++r) {
    const auto* block = lanes<T>(registers, fragment[r]);
    const Position origin = b_position(K, each, 0, r * each);
    for (int g = 0; g < 8; ++g)
      for (int j = 0; j < 4 * each; ++j) b[origin.row + j][origin.column + g] = T::value(block[4 * each * g + j]);
  }
}

/// C and D: two elements in one register (FP16), or one in each of two.
template <class T, int M, int N, class Function>
void for_c(const Element* fragment, Function function) {
  constexpr int each = sizeof(typename T::Bits) == 2 ? 2 : 1;
  for (int r = 0; r < M * N / warp_size / each; ++r) {
    const Position origin = c_position(M, N, 0, r * each);
    for (int g = 0; g < 8; ++g)
      for (int t = 0; t < 4; ++t)
        for (int j = 0; j < each; ++j)
          function(fragment[r], (4 * g + t) * each + j, origin.row + g, origin.column + 2 * t + j);
  }
}

template <class D, class A, class B, class C, int M, int N, int K, int a_registers, int b_registers>
void multiply(std::byte* registers, const Op& op) {
  using Sum = typename A::Sum;
  constexpr int d_registers = M * N / warp_size / (sizeof(typename D::Bits) == 2 ? 2 : 1);
  const Element *d = op.elements.data(), *a_fragment = d + d_registers, *b_fragment = a_fragment + a_registers,
                *c = b_fragment + b_registers;
  alignas(32) Sum a[M][K], b[K][N], sum[M][N];
  gather_a<A>(registers, a_fragment, a);
  gather_b<B>(registers, b_fragment, b);
  for_c<C, M, N>(
      c, [&](const Element& e, int i, int row, int column) { sum[row][column] = C::value(lanes<C>(registers, e)[i]); });
  for (int m = 0; m < M; ++m) {
    Sum row[N];
    std::memcpy(row, sum[m], sizeof row);
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) {
        if constexpr (std::is_same_v<A, F64>)
          row[n] = std::fma(a[m][k], b[k][n], row[n]);
        else
          row[n] += a[m][k] * b[k][n];
      }
    std::memcpy(sum[m], row, sizeof row);
  }
  for_c<D, M, N>(d, [&](const Element& e, int i, int row, int column) {
    reinterpret_cast<typename D::Bits*>(registers + e.offset)[i] = rounded<D>(sum[row][column]);
  });
}

// --- the table -------------------------------------------------------------------------------------------------------------

using Table = std::unordered_map<std::string, MatrixMultiply>;

/// `names`: what the instruction's text ends with, ".f32.bf16.bf16.f32". `fixed`: wmma's FP16 fragments of A and B always
/// have 8 registers; those beyond the matrix's elements repeat them.
template <class D, class A, class B, class C, int M, int N, int K, int fixed = 0>
void add(Table& table, const std::string& name) {
  constexpr int a_registers = M * K / warp_size / elements_per_register<A>,
                b_registers = K * N / warp_size / elements_per_register<B>;
  constexpr int a_held = fixed ? fixed : a_registers, b_held = fixed ? fixed : b_registers;
  const auto held = []<class T>(T) { return uint8_t(M * N / warp_size / (sizeof(typename T::Bits) == 2 ? 2 : 1)); };
  const auto width = []<class T>(T) { return uint8_t(sizeof(typename T::Bits) == 8 ? 8 : 4); };
  table[name] = {multiply<D, A, B, C, M, N, K, a_held, b_held>,
                 held(D{}),
                 a_held,
                 b_held,
                 held(C{}),
                 width(D{}),
                 width(A{}),
                 width(B{}),
                 width(C{}),
                 2 * M * N * K / warp_size};
}

template <int M, int N, int K>
std::string shape() {
  return ".m" + std::to_string(M) + "n" + std::to_string(N) + "k" + std::to_string(K);
}
template <class... T>
std::string types() {
  return (("." + std::string(T::name)) + ...);
}

template <class D, class A, class B, int M, int N, int K>
void mma(Table& table) {
  add<D, A, B, D, M, N, K>(table, "mma.sync.aligned" + shape<M, N, K>() + ".row.col" + types<D, A, B, D>());
}

template <class D, class A, class B, int M, int N, int K>
void wmma(Table& table) {
  add<D, A, B, D, M, N, K>(table, "wmma.mma.sync.aligned" + shape<M, N, K>() + types<D, A, B, D>());
}
template <int M, int N, int K>
void wmma_all(Table& table) {
  const std::string start = "wmma.mma.sync.aligned" + shape<M, N, K>();
  add<F32, F16, F16, F32, M, N, K, 8>(table, start + ".f32.f32");
  add<F32, F16, F16, F16, M, N, K, 8>(table, start + ".f32.f16");
  add<F16, F16, F16, F32, M, N, K, 8>(table, start + ".f16.f32");
  add<F16, F16, F16, F16, M, N, K, 8>(table, start + ".f16.f16");
  wmma<F32, Bf16, Bf16, M, N, K>(table);
  wmma<S32, S8, S8, M, N, K>(table);
  wmma<S32, U8, U8, M, N, K>(table);
}

Table make_table() {
  Table t;
  mma<F32, F16, F16, 16, 8, 8>(t);
  mma<F16, F16, F16, 16, 8, 8>(t);
  mma<F32, F16, F16, 16, 8, 16>(t);
  mma<F16, F16, F16, 16, 8, 16>(t);
  mma<F32, Bf16, Bf16, 16, 8, 8>(t);
  mma<F32, Bf16, Bf16, 16, 8, 16>(t);
  mma<F32, Tf32, Tf32, 16, 8, 4>(t);
  mma<F32, Tf32, Tf32, 16, 8, 8>(t);
  mma<S32, S8, S8, 16, 8, 16>(t);
  mma<S32, U8, U8, 16, 8, 16>(t);
  mma<S32, S8, S8, 16, 8, 32>(t);
  mma<S32, U8, U8, 16, 8, 32>(t);
  mma<S32, S8, U8, 16, 8, 32>(t);
  mma<S32, U8, S8, 16, 8, 32>(t);
  mma<F64, F64, F64, 8, 8, 4>(t);
  wmma_all<16, 16, 16>(t);
  wmma_all<32, 8, 16>(t);
  wmma_all<8, 32, 16>(t);
  wmma<F32, Tf32, Tf32, 16, 16, 8>(t);
  wmma<F64, F64, F64, 8, 8, 4>(t);
  return t;
}

}  // namespace

const MatrixMultiply* find_matrix_multiply(const std::string& mnemonic) {
  static const Table table = make_table();
  const auto found = table.find(mnemonic);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace sim
