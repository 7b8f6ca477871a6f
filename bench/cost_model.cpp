// predicted_us() for bench/fit_cost_model.py, which builds this file as a library.
#include "common/hopper/cost_model.h"

using namespace ladder;

/// Predicted microseconds of `count` pairs of a product and a tiling, with these constants: the members of CostConstants in their order.
extern "C" void predict(int count, const TiledProduct* products, const Tiling* tilings, const Card* card,
                        const CostConstants* cost, double* microseconds) {
  for (int i = 0; i < count; ++i) microseconds[i] = predicted_us(products[i], tilings[i], *card, *cost);
}

/// What the header has: the constants, and bytes of TiledProduct, Tiling, Card and CostConstants.
extern "C" void stated(CostConstants* cost, size_t sizes[4]) {
  *cost = CostConstants();
  sizes[0] = sizeof(TiledProduct), sizes[1] = sizeof(Tiling), sizes[2] = sizeof(Card), sizes[3] = sizeof(CostConstants);
}
