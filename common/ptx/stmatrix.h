// Registers to tiles in shared memory, laid out as ldmatrix reads them: sm_90, PTX ISA 7.8, "Warp-level matrix store instruction:
// stmatrix".
#pragma once

#include <cstdint>

namespace ladder {

/// stmatrix.sync.aligned.m8n8.x4.shared.b16 [smem], {r[0], r[1], r[2], r[3]};
/// Four matrices of 8 rows of 16 bytes; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i. Of each, lane 4 g + t gives bytes 4 t to
/// 4 t + 3 of row g.
__device__ __forceinline__ void stmatrix_x4(uint32_t smem, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

/// stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [smem], {r[0], r[1], r[2], r[3]};
/// The same of transposed matrices: of each, lane 4 g + t gives what becomes column g, its rows 2 t and 2 t + 1.
__device__ __forceinline__ void stmatrix_x4_trans(uint32_t smem, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace ladder
