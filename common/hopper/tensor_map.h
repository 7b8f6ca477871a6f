// Tensor maps: what TMA is told about a matrix. 21 writes the function out; the rungs after it take it from here.
#pragma once

#include <cuda.h>

#include "common/rung.h"

namespace ladder {

/// What one bulk tensor copy moves. Rows of 128, 64 or 32 bytes are swizzled in shared memory, with the swizzle of their length, if
/// nothing else is said; longer rows are not.
struct TensorBox {
  int rows;             ///< at most 256
  int row_bytes = 128;  ///< a multiple of 16; at most 256 elements
  bool swizzled = true;
  int every = 1;  ///< rows: 4 copies the first, fifth, ninth … of `rows`
};

/// Describes `rows` rows of `columns` elements T, `ld` elements apart, to TMA. The matrix begins at a multiple of 16 bytes, and so
/// does each row. `l2`: how much DRAM sends to L2 where a copy asks for less. Throws CudaError.
template <class T>
CUtensorMap tensor_map(const void* matrix, int rows, int columns, int ld, const TensorBox& box,
                       CUtensorMapL2promotion l2 = CU_TENSOR_MAP_L2_PROMOTION_L2_256B) {
  static const auto encode = [] {  // a function of the driver, which programs of the runtime do not link
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) cuda_check(cudaErrorSymbolNotFound);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  constexpr cuuint64_t BYTES = sizeof(T);
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {ld * BYTES};
  const cuuint32_t box_size[] = {static_cast<cuuint32_t>(box.row_bytes / BYTES), static_cast<cuuint32_t>(box.rows)};
  const cuuint32_t every[] = {1, static_cast<cuuint32_t>(box.every)};  // element of a row, and row
  const CUtensorMapSwizzle swizzle = box.row_bytes > 128 || !box.swizzled ? CU_TENSOR_MAP_SWIZZLE_NONE
                                     : box.row_bytes == 128               ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : box.row_bytes == 64                ? CU_TENSOR_MAP_SWIZZLE_64B
                                                                          : CU_TENSOR_MAP_SWIZZLE_32B;
  constexpr CUtensorMapDataType TYPE = BYTES == 4   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                       : BYTES == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                                    : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  CUtensorMap map;
  const CUresult result = encode(&map, TYPE, 2, const_cast<void*>(matrix), size, row_bytes, box_size, every,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) cuda_check(cudaErrorInvalidValue);
  return map;
}

}  // namespace ladder
