// Tensor maps as DeepGEMM's kernels take them.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>

/// Of `rows` by `columns` elements without gaps, of so many bytes each.
inline CUtensorMap map_of(CUtensorMapDataType type, double bytes, void* matrix, int rows, int columns,
                          uint32_t box_rows, uint32_t box_columns,
                          CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  CUtensorMap map;
  const cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {cuuint64_t(columns * bytes)};
  const cuuint32_t box[] = {box_columns, box_rows}, step[] = {1, 1};
  const CUresult status =
      cuTensorMapEncodeTiled(&map, type, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) std::exit(2);
  return map;
}
