// Matrices of 8 rows of 16 bytes from shared memory into registers: sm_75, PTX ISA 6.5, "Warp-level matrix load
// instruction: ldmatrix".
#pragma once

#include <cstdint>

namespace ladder {

/// ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d0, d1, d2, d3}, [row];
/// By the whole warp. Lanes 8 i to 8 i + 7 give the addresses of the 8 rows of matrix i, each a multiple of 16. d[i]
/// receives word lane % 4 of row lane / 4 of matrix i. A word is two 16-bit elements or one of 32 bits.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&d)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row)
               : "memory");
}

}  // namespace ladder
