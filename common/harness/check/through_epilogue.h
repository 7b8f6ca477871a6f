// What an epilogue (problem.h) makes of a right value, and of S, which its error is relative to (bound.h), in FP64.
//
// A step f makes at most max |f'| * error of an error. The derivative of SiLU reaches 1.0998, that of GELU 1.1290. Two factors y and g with
// errors gamma * S_y and gamma * S_g have a product that is off by gamma * (|y| * S_g + |g| * S_y + gamma * S_y * S_g) at most.
#pragma once

#include <cmath>

#include "common/layout.h"
#include "common/problem.h"

namespace ladder {

struct Valued {
  double value, scale;  ///< scale: S
};

inline LADDER_HOST_DEVICE Valued activated(Activation activation, const Valued& x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::gelu: {
      constexpr double SQRT_2_PI = 0.79788456080286535588;  // sqrt(2 / pi)
      return {x.value / 2 * (1 + std::tanh(SQRT_2_PI * (x.value + 0.044715 * x.value * x.value * x.value))),
              1.13 * x.scale};
    }
    case Activation::silu:
      return {x.value / (1 + std::exp(-x.value)), 1.1 * x.scale};
  }
  return x;
}

/// `x` and `gate` are products times alpha; `bias` and `residual`, which is beta * C, are 0 where there are none. gamma: of the products.
inline LADDER_HOST_DEVICE Valued through_epilogue(const Epilogue& epilogue, const Valued& x, double bias,
                                                  const Valued& gate, double residual, double gamma) {
  Valued y = activated(epilogue.activation, {x.value + bias, x.scale + std::fabs(bias)});
  if (epilogue.gate)
    y = {y.value * gate.value,
         std::fabs(y.value) * gate.scale + std::fabs(gate.value) * y.scale + gamma * y.scale * gate.scale};
  return {y.value + residual, y.scale + std::fabs(residual)};
}

}  // namespace ladder
