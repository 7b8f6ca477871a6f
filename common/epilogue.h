// Epilogues: what becomes of an accumulator before it is stored. A step is a function of a result and of where it is; a chain applies its
// steps one after another, in registers. What a chain consists of is known to the compiler: a product without bias has no code for one.
//
//   accumulator -Scale-> alpha * acc -Bias-> x -Silu-> y -Gate-> y * g -Residual-> D
#pragma once

#include "common/layout.h"
#include "common/problem.h"
#include "common/ptx/special_functions.h"
#include "common/types.h"

namespace ladder {

/// Where in C a result is, and the accumulator of the same place in the second product, if there is one.
struct Place {
  int row, col;
  float gate;
};

/// A step, as all others: f(x, place).
struct Scale {
  float alpha;
  __device__ float operator()(float x, const Place&) const { return alpha * x; }
};

/// A number for each of N columns.
template <class T>
struct Bias {
  const T* bias;
  int N;
  __device__ float operator()(float x, const Place& at) const { return at.col < N ? x + to_float(bias[at.col]) : x; }
};

/// x / (1 + exp(-z)), that is x * sigmoid(z), with exp2 and a reciprocal of the special function unit, each off by 2^-22 or so. tanh.approx
/// would be one instruction in place of two, but off by 2^-11: where 1 + tanh(z / 2) is small, nothing would be left of it.
__device__ __forceinline__ float times_sigmoid(float x, float z) {
  return x * rcp_approx_ftz(1.0F + ex2_approx_ftz(-1.4426950F * z));  // log2(e)
}

/// x * sigmoid(x), also known as swish.
struct Silu {
  __device__ float operator()(float x, const Place&) const { return times_sigmoid(x, x); }
};

/// x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3): GELU by tanh, as cuBLASLt has it. (1 + tanh(u)) / 2 is sigmoid(2 u).
struct Gelu {
  __device__ float operator()(float x, const Place&) const {
    return times_sigmoid(x, x * (1.5957691F + 0.071354814F * x * x));
  }
};

/// Times the result of the second product.
struct Gate {
  float alpha;
  __device__ float operator()(float x, const Place& at) const { return x * (alpha * at.gate); }
};

/// What is in C already, M x N.
template <class T>
struct Residual {
  const T* C;
  int ldc, M, N;
  float beta;
  __device__ float operator()(float x, const Place& at) const {
    if (beta == 0.0F || at.row >= M || at.col >= N) return x;  // beta = 0 must not read C: it may hold NaN
    return x + beta * to_float(C[static_cast<size_t>(at.row) * ldc + at.col]);
  }
};

// [chain]
/// Steps, the first of which gets the accumulator.
template <class... Steps>
struct Chain : Steps... {
  __device__ float operator()(float x, const Place& at) const {
    ((x = static_cast<const Steps&>(*this)(x, at)), ...);
    return x;
  }
};
template <class... Steps>
Chain(Steps...) -> Chain<Steps...>;

/// The steps of one, then of the other.
template <class... First, class... Second>
Chain<First..., Second...> operator|(const Chain<First...>& first, const Chain<Second...>& second) {
  return {static_cast<const First&>(first)..., static_cast<const Second&>(second)...};
}

/// A step, or none.
template <bool wanted, class Step>
auto when(const Step& step) {
  if constexpr (wanted)
    return Chain{step};
  else
    return Chain<>{};
}

/// What the problem asks for, whose epilogue is `asked`. Results are of type T, and so is the bias.
template <Epilogue asked, class T>
auto chain_of(const Problem& p) {
  return Chain{Scale{p.alpha}} |                                          //
         when<asked.bias>(Bias<T>{static_cast<const T*>(p.bias), p.n}) |  //
         when<asked.activation == Activation::gelu>(Gelu{}) |             //
         when<asked.activation == Activation::silu>(Silu{}) |             //
         when<asked.gate>(Gate{p.alpha}) |                                //
         when<!asked.quantise>(Residual<T>{p.C<T>(), p.ldc, p.m, p.n, p.beta});
}
// [/chain]

}  // namespace ladder
