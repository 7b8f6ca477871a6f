// mma and wmma.mma (PTX ISA 9.7.14.4 and 9.7.14.5).
//
// Floating point: what PTX leaves open is done as measurements on the hardware suggest (Fasi, Higham, Mikaitis and Pranesh,
// "Numerical behavior of NVIDIA tensor cores", 2021). Products are exact; they and C are summed at once, in FP64 here, which is
// wider than the hardware's adder; the sum is rounded once, to FP32 toward zero, to FP16 to nearest even. TF32 operands
// are FP32 registers whose low 13 bits are not looked at (9.7.14.5, .tf32): a kernel that does not round is truncated.
// FP8 is multiplied as on Hopper, where ptxas makes of one mma conversions to FP16, two mma of FP16 and additions: of each four elements
// along k in a register the lower two are in the first, the upper two in the second; they are summed from zero, and that sum is added
// to C with the usual rounding to nearest. Ada and the RTX 50 have an instruction for FP8, which keeps fewer bits.
// FP64 is a chain of fused multiply-adds.
#include "executor/matrix.h"

#include <immintrin.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <unordered_map>

#include "executor/rounding.h"
#include "executor/vectors.h"

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
template <class T>
struct Fp8 {
  static constexpr bool in_halves = true;
  using Bits = uint8_t;
  using Sum = double;
  static constexpr const char* name = std::is_same_v<T, e4m3> ? "e4m3" : "e5m2";
  static double value(Bits x) {
    static const auto table = [] {
      std::array<double, 256> values;
      for (int i = 0; i < 256; ++i) values[i] = T{uint8_t(i)}.value();
      return values;
    }();
    return table[x];
  }
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

/// Sums of integers wrap round, those of FP64 are rounded already.
template <class T>
typename T::Bits rounded(auto sum) {
  if constexpr (std::is_same_v<T, F64>)
    return std::bit_cast<uint64_t>(sum);
  else
    return sum;
}

template <class T>
constexpr int elements_per_register = sizeof(typename T::Bits) >= 4 ? 1 : 4 / int(sizeof(typename T::Bits));

// --- fragments -------------------------------------------------------------------------------------------------------------
// Each loop below runs over neighbouring values, so that the compiler vectorises it.

/// Elements of the 32 lanes of one register, in the order in which they lie in the register file: lane after lane.
template <class T>
constexpr int held = warp_size* elements_per_register<T>;

template <class T, class Sum>
void values(const std::byte* registers, const Element& e, Sum* to) {
  const auto* bits = reinterpret_cast<const typename T::Bits*>(registers + e.offset);
  for (int i = 0; i < held<T>; ++i) to[i] = T::value(bits[i]);
}

/// The 32 lanes of a register of A are 8 rows of its block, one after the other; those of B are 8 columns.
template <class T, int M, int K, class Sum>
void gather_a(const std::byte* registers, const Element* fragment, Sum (&a)[M][K]) {
  constexpr int each = elements_per_register<T>, width = 4 * each;
  for (int r = 0; r < M * K / held<T>; ++r) {
    Sum block[held<T>];
    values<T>(registers, fragment[r], block);
    const Position origin = a_position(M, K, each, 0, r * each);
    for (int g = 0; g < 8; ++g) std::memcpy(&a[origin.row + g][origin.column], block + width * g, width * sizeof(Sum));
  }
}

template <class T, int K, int N, class Sum>
void gather_b(const std::byte* registers, const Element* fragment, Sum (&b)[K][N]) {
  constexpr int each = elements_per_register<T>, width = 4 * each;
  for (int r = 0; r < K * N / held<T>; ++r) {
    Sum block[held<T>];
    values<T>(registers, fragment[r], block);
    const Position origin = b_position(K, each, 0, r * each);
    for (int j = 0; j < width; ++j)
      for (int g = 0; g < 8; ++g) b[origin.row + j][origin.column + g] = block[width * g + j];
  }
}

/// Of C and D: pairs of neighbours in a row, in one register (FP16) or in two.
template <class T, int M, int N, class Function>
void for_each_register(Function function) {
  constexpr int each = elements_per_register<T>;
  for (int r = 0; r < M * N / held<T>; ++r) function(r, c_position(M, N, 0, r * each));
}
template <int each>
constexpr int column(int i) {  ///< of value i of a register, from the register's first
  return each == 2 ? i % 8 : 2 * (i % 4);
}

/// Calls f(row of C or D, four values of the row's even columns, of its odd ones) for each eight columns of FP32.
template <int M, int N, class Function>
void for_each_row_of_eight(const Element* fragment, std::byte* registers, Function function) {
  for (int r = 0; r < M * N / warp_size; r += 2) {
    const Position origin = c_position(M, N, 0, r);
    float* const even = reinterpret_cast<float*>(registers + fragment[r].offset);
    float* const odd = reinterpret_cast<float*>(registers + fragment[r + 1].offset);
    for (int g = 0; g < 8; ++g) function(origin.row + g, origin.column, even + 4 * g, odd + 4 * g);
  }
}

template <class T, int M, int N, class Sum>
void gather_c(std::byte* registers, const Element* fragment, Sum (&c)[M][N]) {
  if constexpr (std::is_same_v<T, F32>) {
    for_each_row_of_eight<M, N>(fragment, registers, [&](int row, int column, const float* even, const float* odd) {
      const __m256d e = _mm256_cvtps_pd(_mm_load_ps(even)), o = _mm256_cvtps_pd(_mm_load_ps(odd));
      const __m256d low = _mm256_unpacklo_pd(e, o), high = _mm256_unpackhi_pd(e, o);
      _mm256_storeu_pd(&c[row][column], _mm256_permute2f128_pd(low, high, 0x20));
      _mm256_storeu_pd(&c[row][column + 4], _mm256_permute2f128_pd(low, high, 0x31));
    });
    return;
  }
  for_each_register<T, M, N>([&](int r, Position origin) {
    Sum block[held<T>];
    values<T>(registers, fragment[r], block);
    constexpr int each = elements_per_register<T>;
    for (int i = 0; i < held<T>; ++i) c[origin.row + i / (4 * each)][origin.column + column<each>(i)] = block[i];
  });
}

template <class T, int M, int N, class Sum>
void scatter_d(std::byte* registers, const Element* fragment, const Sum (&d)[M][N]) {
  if constexpr (std::is_same_v<T, F32>) {
    for_each_row_of_eight<M, N>(fragment, registers, [&](int row, int column, float* even, float* odd) {
      const __m256d low = _mm256_loadu_pd(&d[row][column]), high = _mm256_loadu_pd(&d[row][column + 4]);
      const __m256d e = _mm256_permute4x64_pd(_mm256_unpacklo_pd(low, high), _MM_SHUFFLE(3, 1, 2, 0));
      const __m256d o = _mm256_permute4x64_pd(_mm256_unpackhi_pd(low, high), _MM_SHUFFLE(3, 1, 2, 0));
      _mm_store_ps(even, canonical(e, toward_zero(e)));
      _mm_store_ps(odd, canonical(o, toward_zero(o)));
    });
  } else if constexpr (std::is_same_v<T, F16>) {
    for_each_register<T, M, N>([&](int r, Position origin) {
      for (int g = 0; g < 8; ++g) {
        const double* const row = &d[origin.row + g][origin.column];
        _mm_store_si128(reinterpret_cast<__m128i*>(registers + fragment[r].offset) + g,
                        to_halves(_mm256_loadu_pd(row), _mm256_loadu_pd(row + 4)));
      }
    });
  } else {
    for_each_register<T, M, N>([&](int r, Position origin) {
      auto* to = reinterpret_cast<typename T::Bits*>(registers + fragment[r].offset);
      constexpr int each = elements_per_register<T>;
      for (int i = 0; i < held<T>; ++i)
        to[i] = rounded<T>(d[origin.row + i / (4 * each)][origin.column + column<each>(i)]);
    });
  }
}

/// c += a * b, a row of C at a time in vector registers.
template <class Sum, int M, int N, int K>
void accumulate(const Sum (&a)[M][K], const Sum (&b)[K][N], Sum (&c)[M][N]) {
  constexpr int lanes = 32 / sizeof(Sum), vectors = N / lanes;
  typedef Sum Vector __attribute__((vector_size(32)));
  for (int m = 0; m < M; ++m) {
    Vector row[vectors];
    std::memcpy(row, c[m], sizeof row);
    for (int k = 0; k < K; ++k) {
      Vector other[vectors];
      std::memcpy(other, b[k], sizeof other);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) row[v] += a[m][k] * other[v];
    }
    std::memcpy(c[m], row, sizeof row);
  }
}

template <class D, class A, class B, class C, int M, int N, int K, int a_registers, int b_registers>
void multiply(std::byte* registers, const Op& op) {
  using Sum = typename A::Sum;
  const Element *d = op.elements.data(), *a_fragment = d + M * N / held<D>, *b_fragment = a_fragment + a_registers,
                *c = b_fragment + b_registers;
  alignas(32) Sum a[M][K], b[K][N], sum[M][N];
  gather_a<A>(registers, a_fragment, a);
  gather_b<B>(registers, b_fragment, b);
  gather_c<C>(registers, c, sum);
  if constexpr (std::is_same_v<A, F64>) {
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        for (int k = 0; k < K; ++k) sum[m][n] = std::fma(a[m][k], b[k][n], sum[m][n]);
  } else if constexpr (requires { A::in_halves; }) {
    Sum products[M][N] = {};
    for (const int half : {0, 2}) {
      alignas(32) Sum a_half[M][K / 2], b_half[K / 2][N];
      for (int k = 0; k < K / 2; ++k) {
        const int from = k / 2 * 4 + half + k % 2;
        for (int m = 0; m < M; ++m) a_half[m][k] = a[m][from];
        std::memcpy(b_half[k], b[from], sizeof b_half[k]);
      }
      accumulate(a_half, b_half, products);
      for (auto& row : products)
        for (Sum& x : row) x = std::is_same_v<D, F32> ? to_float(x, Round::zero) : f16::from(x).value();
    }
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        const double x = add_odd(sum[m][n], products[m][n]);
        sum[m][n] = std::is_same_v<D, F32> ? to_float(x, Round::nearest) : f16::from(x).value();
      }
  } else {
    accumulate(a, b, sum);
  }
  scatter_d<D>(registers, d, sum);
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
  const auto count = []<class T>(T) { return uint8_t(M * N / held<T>); };
  const auto width = []<class T>(T) { return uint8_t(sizeof(typename T::Bits) == 8 ? 8 : 4); };
  table[name] = {multiply<D, A, B, C, M, N, K, a_held, b_held>,
                 count(D{}),
                 a_held,
                 b_held,
                 count(C{}),
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

/// FP64, whose rounding is to nearest whether it says so or not.
template <int M, int K>
void mma_f64(Table& table) {
  for (const std::string round : {"", ".rn"})
    add<F64, F64, F64, F64, M, 8, K>(
        table, "mma.sync.aligned" + shape<M, 8, K>() + ".row.col" + round + types<F64, F64, F64, F64>());
}
/// Integers, of any signs.
template <int K>
void mma_s8(Table& table) {
  mma<S32, S8, S8, 16, 8, K>(table);
  mma<S32, U8, U8, 16, 8, K>(table);
  mma<S32, S8, U8, 16, 8, K>(table);
  mma<S32, U8, S8, 16, 8, K>(table);
}
/// FP8, of either format.
template <class D, int K>
void mma_fp8(Table& table) {
  using P = Fp8<e4m3>;
  using Q = Fp8<e5m2>;
  mma<D, P, P, 16, 8, K>(table);
  mma<D, P, Q, 16, 8, K>(table);
  mma<D, Q, P, 16, 8, K>(table);
  mma<D, Q, Q, 16, 8, K>(table);
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
  mma_s8<16>(t);
  mma_s8<32>(t);
  mma_fp8<F32, 16>(t);
  mma_fp8<F32, 32>(t);
  mma_fp8<F16, 16>(t);
  mma_fp8<F16, 32>(t);
  mma_f64<8, 4>(t);
  mma_f64<16, 4>(t);
  mma_f64<16, 8>(t);
  mma_f64<16, 16>(t);
  wmma_all<16, 16, 16>(t);
  wmma_all<32, 8, 16>(t);
  wmma_all<8, 32, 16>(t);
  wmma<F32, Tf32, Tf32, 16, 16, 8>(t);
  wmma<F64, F64, F64, 8, 8, 4>(t);
  add<F64, F64, F64, F64, 8, 8, 4>(t, "wmma.mma.sync.aligned.m8n8k4.rn.f64.f64.f64.f64");
  return t;
}

}  // namespace

const MatrixMultiply* find_matrix_multiply(const std::string& mnemonic) {
  static const Table table = make_table();
  const auto found = table.find(mnemonic);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace sim
