// Tensor maps: the 128 bytes hold what the executor needs to know (sim/executor/tensor_map.h).
#include <cuda.h>

#include <cstring>
#include <string_view>

#include "executor/tensor_map.h"
#include "text.h"

namespace sim {
namespace {

/// Bytes per element, and the type in which cp.reduce adds it; 0 bytes: not supported.
std::pair<uint8_t, NumberType> element_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return {1, NumberType::unsigned_};
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
      return {2, NumberType::unsigned_};
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      return {4, NumberType::unsigned_};
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
      return {8, NumberType::unsigned_};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
      return {2, NumberType::f16};
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return {2, NumberType::bf16};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
      return {4, NumberType::f32};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return {8, NumberType::f64};
    default:
      return {0, NumberType::unsigned_};
  }
}

CUresult unsupported(const char* what) {
  print(stderr, "simulator: cuTensorMapEncodeTiled with {} is not supported\n", what);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace
}  // namespace sim

using namespace sim;

CUresult cuTensorMapEncodeTiled(CUtensorMap* result, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* size, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  const auto invalid = [](std::string_view what) {  // the driver says no more than its code
    print(stderr, "simulator: cuTensorMapEncodeTiled: {}\n", what);
    return CUDA_ERROR_INVALID_VALUE;
  };
  if (!result || !size || !strides || !box || !element_strides) return invalid("a null pointer");
  if (rank < 1 || rank > 5) return invalid(formatted("rank {}: 1 to 5 can be", rank));
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return unsupported("interleaved channels");
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) return unsupported("NaNs outside of the tensor");
  TensorMap map;
  map.magic = TensorMap::valid;
  std::tie(map.element_bytes, map.type) = element_of(type);
  if (!map.element_bytes) return unsupported("this type of elements");
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      break;
    case CU_TENSOR_MAP_SWIZZLE_32B:
      map.swizzle = 32;
      break;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      map.swizzle = 64;
      break;
    case CU_TENSOR_MAP_SWIZZLE_128B:
      map.swizzle = 128;
      break;
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
      map.swizzle = 128;
      map.swizzles_pairs = true;
      break;
    default:
      return unsupported("this swizzle");
  }
  map.rank = static_cast<uint8_t>(rank);
  map.base = reinterpret_cast<uint64_t>(address);
  for (cuuint32_t d = 0; d < rank; ++d) {
    map.size[d] = size[d];
    map.box[d] = static_cast<uint16_t>(std::min(box[d], 65535U));
    map.step[d] = static_cast<uint8_t>(std::min(element_strides[d], 255U));
    if (d) map.stride[d - 1] = strides[d - 1];
  }
  if (type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B) map.padded_bits = 4;
  if (type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) map.padded_bits = 6;
  if (type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B) {
    if (size[0] % 2 || box[0] % 2) return invalid("an odd number of elements of 4 bits");
    if (box[0] > 256) return invalid(formatted("a box of {} in dimension 0: 1 to 256 can be", box[0]));
    map.in_pairs = true;
    map.size[0] /= 2;
    map.box[0] /= 2;
  }
  if (const std::string wrong = map.check(); !wrong.empty()) return invalid(wrong);
  std::memset(result, 0, sizeof *result);
  std::memcpy(result, &map, sizeof map);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  TensorMap changed;
  if (!map) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(static_cast<void*>(&changed), map, sizeof changed);
  if (changed.magic != TensorMap::valid) return CUDA_ERROR_INVALID_VALUE;
  changed.base = reinterpret_cast<uint64_t>(address);
  if (!changed.check().empty()) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(map, &changed, sizeof changed);
  return CUDA_SUCCESS;
}
