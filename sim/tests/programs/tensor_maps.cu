// What cuTensorMapEncodeTiled takes and refuses. The answers are an H200's with CUDA 13.0, where this program passes, too.
#include <cuda.h>

#include "check.h"

struct Case {
  const char* what;
  bool right;
  // What the case changes in a map of 256 x 256 BF16 with boxes of 64 x 64, swizzled over 128 bytes:
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  cuuint64_t width = 256, height = 256, stride = 512;
  cuuint32_t box_width = 64, box_height = 64;
  cuuint32_t rank = 2;
  int offset = 0;  // of the address, in bytes
  bool strides = true;
};

int main() {
  constexpr auto none = CU_TENSOR_MAP_SWIZZLE_NONE, over32 = CU_TENSOR_MAP_SWIZZLE_32B,
                 over64 = CU_TENSOR_MAP_SWIZZLE_64B;
  constexpr auto fp4 = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, fp4_in_bytes = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
                 fp6_in_bytes = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
  const Case cases[] = {
      {.what = "plain", .right = true},
      {.what = "FP32", .right = true, .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, .stride = 1024, .box_width = 32},
      {.what = "a box of 144 bytes swizzled over 128", .right = false, .box_width = 72},
      {.what = "a box of 128 bytes swizzled over 64", .right = false, .swizzle = over64},
      {.what = "a box of 64 bytes swizzled over 64", .right = true, .swizzle = over64, .box_width = 32},
      {.what = "a box of 32 bytes swizzled over 32", .right = true, .swizzle = over32, .box_width = 16},
      {.what = "a box of 8 bytes", .right = false, .swizzle = none, .box_width = 4},
      {.what = "a box of 24 bytes", .right = false, .swizzle = none, .box_width = 12},
      {.what = "an address that is a multiple of 8", .right = false, .offset = 8},
      {.what = "an address that is a multiple of 16", .right = true, .offset = 16},
      {.what = "a stride of 520 bytes", .right = false, .stride = 520},
      {.what = "a stride of 528 bytes", .right = true, .stride = 528},
      {.what = "rows that overlap", .right = true, .stride = 256},
      {.what = "a stride of 0", .right = true, .stride = 0},
      {.what = "a stride of 2^40", .right = false, .height = 2, .stride = 1ULL << 40, .box_height = 1},
      {.what = "a stride just below 2^40", .right = true, .height = 2, .stride = (1ULL << 40) - 16, .box_height = 1},
      {.what = "a box of 256 rows", .right = true, .box_height = 256},
      {.what = "a box of 257 rows", .right = false, .box_height = 257},
      {.what = "a box of no row", .right = false, .box_height = 0},
      {.what = "a box larger than the tensor", .right = true, .width = 32, .height = 32, .stride = 64},
      {.what = "a tensor without columns", .right = false, .width = 0},
      {.what = "2^32 columns", .right = true, .width = 1ULL << 32, .height = 32, .stride = 1ULL << 33},
      {.what = "2^32 + 1 columns", .right = false, .width = (1ULL << 32) + 1, .height = 32, .stride = 1ULL << 34},
      {.what = "257 columns", .right = true, .width = 257, .stride = 528},
      {.what = "packed FP4", .right = true, .type = fp4, .stride = 128, .box_width = 256},
      {.what = "packed FP4 of 257 columns", .right = false, .type = fp4, .width = 257, .stride = 144},
      {.what = "packed FP4, a box of 288",
       .right = false,
       .type = fp4,
       .swizzle = none,
       .stride = 128,
       .box_width = 288},
      {.what = "FP4 in bytes", .right = true, .type = fp4_in_bytes, .stride = 128, .box_width = 128},
      {.what = "FP4 in bytes, a box of 64", .right = false, .type = fp4_in_bytes, .stride = 128, .box_width = 64},
      {.what = "FP4 in bytes, 192 columns", .right = false, .type = fp4_in_bytes, .width = 192, .box_width = 128},
      {.what = "FP4 in bytes, a stride of 144", .right = false, .type = fp4_in_bytes, .stride = 144, .box_width = 128},
      {.what = "FP4 in bytes at 16",
       .right = false,
       .type = fp4_in_bytes,
       .stride = 128,
       .box_width = 128,
       .offset = 16},
      {.what = "FP4 in bytes swizzled over 64",
       .right = false,
       .type = fp4_in_bytes,
       .swizzle = over64,
       .stride = 128,
       .box_width = 128},
      {.what = "FP6 in bytes", .right = true, .type = fp6_in_bytes, .stride = 192, .box_width = 128},
      {.what = "rank 0", .right = false, .rank = 0},
      {.what = "rank 1", .right = true, .rank = 1},
      {.what = "rank 6", .right = false, .rank = 6},
      {.what = "rank 1, and no strides", .right = false, .rank = 1, .strides = false},
  };

  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
  char* memory;
  CHECK(cudaMalloc(&memory, 1 << 20));
  bool all = true;
  for (const Case& c : cases) {
    alignas(64) CUtensorMap map;
    const cuuint64_t size[5] = {c.width, c.height, 1, 1, 1}, stride[4] = {c.stride, c.stride, c.stride, c.stride};
    const cuuint32_t box[5] = {c.box_width, c.box_height, 1, 1, 1}, step[5] = {1, 1, 1, 1, 1};
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
        &map, c.type, c.rank, memory + c.offset, size, c.strides ? stride : nullptr, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    const CUresult expected = c.right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (result == expected) continue;
    std::printf("%s: got %d, expected %d\n", c.what, int(result), int(expected));
    all = false;
  }
  return all ? passed() : 1;
}
