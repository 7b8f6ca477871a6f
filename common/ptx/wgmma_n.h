// wgmma of any width: sm_90a, PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions". N, the columns of the result, may be
// any multiple of 8 to 256; here are those that the rungs from 27 on use. wgmma.h has the fences and groups, and says what holds between.
#pragma once

#include <cstdint>

#include "common/types.h"

namespace ladder {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 d, a, b, accumulate, 1, 1, imm-trans-a, imm-trans-b; with f16 likewise; m64nNk8 and
/// no transpositions with tf32, m64nNk32 and none with e4m3.e4m3 and e5m2.e4m3.
/// D (64 x N, FP32) = A (64 x 32 bytes) * B (32 bytes x N), added to D where `accumulate` is not 0: A and B by descriptors of tiles in
/// shared memory whose rows lie along k; those of A along m with TRANSPOSE_A, those of B along n with TRANSPOSE_B.
/// d: mma_c() for every 8 columns, of the 16 rows of this warp.
template <Type type, int N, bool TRANSPOSE_A = false, bool TRANSPOSE_B = false>
__device__ __forceinline__ void wgmma(float (&d)[N / 8][4], uint64_t a, uint64_t b, int accumulate);

// The registers of d, eight columns at a time: as operands, and as their numbers in the instruction.
#define LADDER_D8(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define LADDER_D16(j) LADDER_D8(j), LADDER_D8((j) + 1)
#define LADDER_D_16 LADDER_D16(0)
#define LADDER_D_32 LADDER_D_16, LADDER_D16(2)
#define LADDER_D_48 LADDER_D_32, LADDER_D16(4)
#define LADDER_D_64 LADDER_D_48, LADDER_D16(6)
#define LADDER_D_80 LADDER_D_64, LADDER_D16(8)
#define LADDER_D_96 LADDER_D_80, LADDER_D16(10)
#define LADDER_D_112 LADDER_D_96, LADDER_D16(12)
#define LADDER_D_128 LADDER_D_112, LADDER_D16(14)
#define LADDER_D_144 LADDER_D_128, LADDER_D16(16)
#define LADDER_D_160 LADDER_D_144, LADDER_D16(18)
#define LADDER_D_176 LADDER_D_160, LADDER_D16(20)
#define LADDER_D_192 LADDER_D_176, LADDER_D16(22)
#define LADDER_D_208 LADDER_D_192, LADDER_D16(24)
#define LADDER_D_224 LADDER_D_208, LADDER_D16(26)
#define LADDER_D_240 LADDER_D_224, LADDER_D16(28)
#define LADDER_D_256 LADDER_D_240, LADDER_D16(30)
#define LADDER_NUMBERS_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LADDER_NUMBERS_32 LADDER_NUMBERS_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define LADDER_NUMBERS_48 LADDER_NUMBERS_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define LADDER_NUMBERS_64 LADDER_NUMBERS_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define LADDER_NUMBERS_80 LADDER_NUMBERS_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define LADDER_NUMBERS_96 LADDER_NUMBERS_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define LADDER_NUMBERS_112 LADDER_NUMBERS_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define LADDER_NUMBERS_128 LADDER_NUMBERS_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define LADDER_NUMBERS_144 LADDER_NUMBERS_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define LADDER_NUMBERS_160 LADDER_NUMBERS_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define LADDER_NUMBERS_176 LADDER_NUMBERS_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define LADDER_NUMBERS_192 LADDER_NUMBERS_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define LADDER_NUMBERS_208 LADDER_NUMBERS_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define LADDER_NUMBERS_224 LADDER_NUMBERS_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define LADDER_NUMBERS_240 LADDER_NUMBERS_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define LADDER_NUMBERS_256 LADDER_NUMBERS_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define LADDER_WGMMA(TYPE, COLUMNS, shape, transposed, a_number, b_number, flag)                                \
  template <Type type, int N, bool TRANSPOSE_A = false, bool TRANSPOSE_B = false>                               \
  requires(type == TYPE && N == COLUMNS) __device__ __forceinline__ void wgmma(float(&d)[N / 8][4], uint64_t a, \
                                                                               uint64_t b, int accumulate) {    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " flag                                                       \
                 ", 0;\n"                                                                                       \
                 "wgmma.mma_async.sync.aligned.m64n" #COLUMNS shape " {" LADDER_NUMBERS_##COLUMNS               \
                 "}, " a_number ", " b_number ", p, 1, 1" transposed ";\n}"                                     \
                 : LADDER_D_##COLUMNS                                                                           \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANSPOSE_A), "n"(TRANSPOSE_B));                        \
  }
#define LADDER_WGMMA_TYPES(N, a_number, b_number, flag, transposed)                      \
  LADDER_WGMMA(Type::bf16, N, "k16.f32.bf16.bf16", transposed, a_number, b_number, flag) \
  LADDER_WGMMA(Type::f16, N, "k16.f32.f16.f16", transposed, a_number, b_number, flag)    \
  LADDER_WGMMA(Type::tf32, N, "k8.f32.tf32.tf32", "", a_number, b_number, flag)          \
  LADDER_WGMMA(Type::e5m2, N, "k32.f32.e5m2.e4m3", "", a_number, b_number, flag)         \
  LADDER_WGMMA(Type::e4m3, N, "k32.f32.e4m3.e4m3", "", a_number, b_number, flag)
// N, and the numbers of the operands after the N / 2 registers of d
LADDER_WGMMA_TYPES(16, "%8", "%9", "%10", ", %11, %12")
LADDER_WGMMA_TYPES(32, "%16", "%17", "%18", ", %19, %20")
LADDER_WGMMA_TYPES(48, "%24", "%25", "%26", ", %27, %28")
LADDER_WGMMA_TYPES(64, "%32", "%33", "%34", ", %35, %36")
LADDER_WGMMA_TYPES(80, "%40", "%41", "%42", ", %43, %44")
LADDER_WGMMA_TYPES(96, "%48", "%49", "%50", ", %51, %52")
LADDER_WGMMA_TYPES(112, "%56", "%57", "%58", ", %59, %60")
LADDER_WGMMA_TYPES(128, "%64", "%65", "%66", ", %67, %68")
LADDER_WGMMA_TYPES(144, "%72", "%73", "%74", ", %75, %76")
LADDER_WGMMA_TYPES(160, "%80", "%81", "%82", ", %83, %84")
LADDER_WGMMA_TYPES(176, "%88", "%89", "%90", ", %91, %92")
LADDER_WGMMA_TYPES(192, "%96", "%97", "%98", ", %99, %100")
LADDER_WGMMA_TYPES(208, "%104", "%105", "%106", ", %107, %108")
LADDER_WGMMA_TYPES(224, "%112", "%113", "%114", ", %115, %116")
LADDER_WGMMA_TYPES(240, "%120", "%121", "%122", ", %123, %124")
LADDER_WGMMA_TYPES(256, "%128", "%129", "%130", ", %131, %132")
#undef LADDER_WGMMA_TYPES
#undef LADDER_WGMMA
#undef LADDER_NUMBERS_256
#undef LADDER_NUMBERS_240
#undef LADDER_NUMBERS_224
#undef LADDER_NUMBERS_208
#undef LADDER_NUMBERS_192
#undef LADDER_NUMBERS_176
#undef LADDER_NUMBERS_160
#undef LADDER_NUMBERS_144
#undef LADDER_NUMBERS_128
#undef LADDER_NUMBERS_112
#undef LADDER_NUMBERS_96
#undef LADDER_NUMBERS_80
#undef LADDER_NUMBERS_64
#undef LADDER_NUMBERS_48
#undef LADDER_NUMBERS_32
#undef LADDER_NUMBERS_16
#undef LADDER_D_256
#undef LADDER_D_240
#undef LADDER_D_224
#undef LADDER_D_208
#undef LADDER_D_192
#undef LADDER_D_176
#undef LADDER_D_160
#undef LADDER_D_144
#undef LADDER_D_128
#undef LADDER_D_112
#undef LADDER_D_96
#undef LADDER_D_80
#undef LADDER_D_64
#undef LADDER_D_48
#undef LADDER_D_32
#undef LADDER_D_16
#undef LADDER_D16
#undef LADDER_D8

}  // namespace ladder
