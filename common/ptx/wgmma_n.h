// wgmma of any width: sm_90a, PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions". N, the columns of the result, may be
// any multiple of 8 to 256; here are those that tiles of 26 use. wgmma.h has the fences and groups, and says what holds between.
#pragma once

#include <cstdint>

#include "common/types.h"

namespace ladder {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 d, a, b, accumulate, 1, 1, 0, 0; with f16 likewise; m64nNk8 and no
/// transpositions (0, 0) with tf32.
/// D (64 x N, FP32) = A (64 x 32 bytes) * B (32 bytes x N), added to D where `accumulate` is not 0: A and B by descriptors of tiles in
/// shared memory whose rows lie along k. d: mma_c() for every 8 columns, of the 16 rows of this warp.
template <Type type, int N>
__device__ __forceinline__ void wgmma(float (&d)[N / 8][4], uint64_t a, uint64_t b, int accumulate);

// The registers of d, eight columns at a time: as operands, and as their numbers in the instruction.
#define LADDER_D8(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define LADDER_D32(j) LADDER_D8(j), LADDER_D8((j) + 1), LADDER_D8((j) + 2), LADDER_D8((j) + 3)
#define LADDER_D64(j) LADDER_D32(j), LADDER_D32((j) + 4)
#define LADDER_NUMBERS_64                                                \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LADDER_NUMBERS_96 \
  LADDER_NUMBERS_64       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LADDER_NUMBERS_128 \
  LADDER_NUMBERS_96        \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LADDER_NUMBERS_160 \
  LADDER_NUMBERS_128       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define LADDER_NUMBERS_176 \
  LADDER_NUMBERS_160       \
  ", %80, %81, %82, %83, %84, %85, %86, %87"
#define LADDER_NUMBERS_192 \
  LADDER_NUMBERS_176       \
  ", %88, %89, %90, %91, %92, %93, %94, %95"
#define LADDER_NUMBERS_256                                                                       \
  LADDER_NUMBERS_192                                                                             \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define LADDER_WGMMA(type, N, shape, transposed, a_number, b_number, flag, ...)                                     \
  template <>                                                                                                       \
  __device__ __forceinline__ void wgmma<type, N>(float(&d)[N / 8][4], uint64_t a, uint64_t b, int accumulate) {     \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " flag                                                           \
                 ", 0;\n"                                                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #N shape " {" LADDER_NUMBERS_##N "}, " a_number ", " b_number  \
                                                                                      ", p, 1, 1" transposed ";\n}" \
                 : __VA_ARGS__                                                                                      \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                \
  }
LADDER_WGMMA(Type::bf16, 64, "k16.f32.bf16.bf16", ", 0, 0", "%32", "%33", "%34", LADDER_D64(0))
LADDER_WGMMA(Type::f16, 64, "k16.f32.f16.f16", ", 0, 0", "%32", "%33", "%34", LADDER_D64(0))
LADDER_WGMMA(Type::tf32, 64, "k8.f32.tf32.tf32", "", "%32", "%33", "%34", LADDER_D64(0))
LADDER_WGMMA(Type::bf16, 96, "k16.f32.bf16.bf16", ", 0, 0", "%48", "%49", "%50", LADDER_D64(0), LADDER_D32(8))
LADDER_WGMMA(Type::f16, 96, "k16.f32.f16.f16", ", 0, 0", "%48", "%49", "%50", LADDER_D64(0), LADDER_D32(8))
LADDER_WGMMA(Type::tf32, 96, "k8.f32.tf32.tf32", "", "%48", "%49", "%50", LADDER_D64(0), LADDER_D32(8))
LADDER_WGMMA(Type::bf16, 128, "k16.f32.bf16.bf16", ", 0, 0", "%64", "%65", "%66", LADDER_D64(0), LADDER_D64(8))
LADDER_WGMMA(Type::f16, 128, "k16.f32.f16.f16", ", 0, 0", "%64", "%65", "%66", LADDER_D64(0), LADDER_D64(8))
LADDER_WGMMA(Type::tf32, 128, "k8.f32.tf32.tf32", "", "%64", "%65", "%66", LADDER_D64(0), LADDER_D64(8))
LADDER_WGMMA(Type::bf16, 160, "k16.f32.bf16.bf16", ", 0, 0", "%80", "%81", "%82", LADDER_D64(0), LADDER_D64(8),
             LADDER_D32(16))
LADDER_WGMMA(Type::f16, 160, "k16.f32.f16.f16", ", 0, 0", "%80", "%81", "%82", LADDER_D64(0), LADDER_D64(8),
             LADDER_D32(16))
LADDER_WGMMA(Type::tf32, 160, "k8.f32.tf32.tf32", "", "%80", "%81", "%82", LADDER_D64(0), LADDER_D64(8), LADDER_D32(16))
LADDER_WGMMA(Type::bf16, 176, "k16.f32.bf16.bf16", ", 0, 0", "%88", "%89", "%90", LADDER_D64(0), LADDER_D64(8),
             LADDER_D32(16), LADDER_D8(20), LADDER_D8(21))
LADDER_WGMMA(Type::f16, 176, "k16.f32.f16.f16", ", 0, 0", "%88", "%89", "%90", LADDER_D64(0), LADDER_D64(8),
             LADDER_D32(16), LADDER_D8(20), LADDER_D8(21))
LADDER_WGMMA(Type::tf32, 176, "k8.f32.tf32.tf32", "", "%88", "%89", "%90", LADDER_D64(0), LADDER_D64(8), LADDER_D32(16),
             LADDER_D8(20), LADDER_D8(21))
LADDER_WGMMA(Type::bf16, 192, "k16.f32.bf16.bf16", ", 0, 0", "%96", "%97", "%98", LADDER_D64(0), LADDER_D64(8),
             LADDER_D64(16))
LADDER_WGMMA(Type::f16, 192, "k16.f32.f16.f16", ", 0, 0", "%96", "%97", "%98", LADDER_D64(0), LADDER_D64(8),
             LADDER_D64(16))
LADDER_WGMMA(Type::tf32, 192, "k8.f32.tf32.tf32", "", "%96", "%97", "%98", LADDER_D64(0), LADDER_D64(8), LADDER_D64(16))
LADDER_WGMMA(Type::bf16, 256, "k16.f32.bf16.bf16", ", 0, 0", "%128", "%129", "%130", LADDER_D64(0), LADDER_D64(8),
             LADDER_D64(16), LADDER_D64(24))
LADDER_WGMMA(Type::f16, 256, "k16.f32.f16.f16", ", 0, 0", "%128", "%129", "%130", LADDER_D64(0), LADDER_D64(8),
             LADDER_D64(16), LADDER_D64(24))
LADDER_WGMMA(Type::tf32, 256, "k8.f32.tf32.tf32", "", "%128", "%129", "%130", LADDER_D64(0), LADDER_D64(8),
             LADDER_D64(16), LADDER_D64(24))
#undef LADDER_WGMMA
#undef LADDER_NUMBERS_64
#undef LADDER_NUMBERS_96
#undef LADDER_NUMBERS_128
#undef LADDER_NUMBERS_160
#undef LADDER_NUMBERS_176
#undef LADDER_NUMBERS_192
#undef LADDER_NUMBERS_256
#undef LADDER_D64
#undef LADDER_D32
#undef LADDER_D8

}  // namespace ladder
