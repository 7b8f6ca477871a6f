// Calls one of learn-cuda's 02e matmul functions (FUNCTION).
#include "operands.h"

void FUNCTION(const bf16* a, const bf16* b, bf16* c, int m, int n, int k);

int main(int argc, char** argv) {
  return check_product(argc, argv,
                       [](Sizes size, bf16* a, bf16* b, bf16* c) { FUNCTION(a, b, c, size.m, size.n, size.k); });
}
