// Prints CuTe's layouts as 19 and 20 use them, as bench/maps.cpp does those of common/layout.h: the same CSV, the same maps, so
// that the figures of 10, 12 and 13 can be drawn of CuTe, too. CuTe evaluates them on the CPU. tests/kernels/test_cute_maps.py
// compares both. Where there are no headers of CUTLASS, CMake leaves this program out.
//
//   row_place  rung 20: chunk of 16 bytes of Swizzled128's eight rows, with the place where it lies
//   a, b, c    type cute: element of a fragment of the mma atom, with the lane that holds it
//   ldsm_a, ldsm_b
//              rung 20: row of 16 bytes that a lane of the first warp names to ldmatrix, k step 0
//   C          rung 19 and 20: result in a block's tile of C, with the thread that owns it
//   layout     not CSV but a comment: the layout as CuTe prints it, after its name
#include "common/cute_types.h"

#include <cstdio>

using namespace cute;

namespace {

template <class Place>
void print_rows(const char* rung, const Place& place) {
  for (int i = 0; i < 64; ++i) {
    const int row = i / 8, chunk = i % 8, word = place(row, chunk * 8) / 2;
    std::printf("row_place,%s,%d,%d,%d,%d,%d,\n", rung, i % 32, row, chunk, word, word % 32);
  }
}

/// Two elements per word of A and B, along k.
void print_fragments() {
  const auto mma = make_tiled_mma(ladder::CuteOperand<ladder::Type::bf16>::Mma{});
  for (int lane = 0; lane < 32; ++lane) {
    const auto thread = mma.get_slice(lane);
    const Tensor a = thread.partition_A(make_identity_tensor(Shape<_16, _16>{}));
    const Tensor b = thread.partition_B(make_identity_tensor(Shape<_8, _16>{}));
    const Tensor c = thread.partition_C(make_identity_tensor(Shape<_16, _8>{}));
    for (int i = 0; i < 8; ++i)
      std::printf("a,cute,%d,%d,%d,%d,,\n", lane, int(get<0>(a(i))), int(get<1>(a(i))), i / 2);
    for (int i = 0; i < 4; ++i)
      std::printf("b,cute,%d,%d,%d,%d,,\n", lane, int(get<1>(b(i))), int(get<0>(b(i))), i / 2);
    for (int i = 0; i < 4; ++i) std::printf("c,cute,%d,%d,%d,%d,,\n", lane, int(get<0>(c(i))), int(get<1>(c(i))), i);
  }
}

template <class Copy, class Shape>
void print_ldmatrix(const char* map, const Copy& copy, const Shape& tile) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto first = copy.get_slice(lane).partition_S(make_identity_tensor(tile))(0);
    std::printf("%s,20,%d,%d,%d,%d,,\n", map, lane, int(get<0>(first)), int(get<1>(first)) / 8, lane / 8);
  }
}

template <class Mma, class Shape>
void print_results(const char* rung, const Mma& mma, const Shape& tile) {
  for (int thread = 0; thread < size(mma); ++thread) {
    const Tensor c = mma.get_slice(thread).partition_C(make_identity_tensor(tile));
    for (int i = 0; i < size(c); ++i)
      std::printf("C,%s,%d,%d,%d,,,\n", rung, thread, int(get<0>(c(i))), int(get<1>(c(i))));
  }
}

template <class Layout>
void print_layout_of(const char* name, const Layout& layout) {
  std::printf("# %s  ", name);
  print(layout);
  std::puts("");
}

}  // namespace

int main() {
  using T = bfloat16_t;
  const ladder::CuteMma<ladder::Type::bf16, 4, 2> mma;  // that of 19, and of 20's tile for 144 KB of shared memory
  const Copy_Atom<SM75_U32x4_LDSM_N, T> ldsm;
  const auto ldsm_a = make_tiled_copy_A(ldsm, mma);
  const auto ldsm_b = make_tiled_copy_B(ldsm, mma);
  std::puts("map,rung,thread,row,col,word,bank,wavefront");
  print_rows("20", ladder::Swizzled128{});
  print_fragments();
  print_ldmatrix("ldsm_a", ldsm_a, Shape<_64, _16>{});
  print_ldmatrix("ldsm_b", ldsm_b, Shape<_32, _16>{});
  print_results("19", mma, Shape<_128, _128>{});
  print_results("20", mma, Shape<_256, _128>{});

  const auto layout_a = tile_to_shape(ladder::Swizzled128{}, Shape<_256, _64, _3>{});
  const Tensor sA = make_tensor(make_smem_ptr(static_cast<T*>(nullptr)), layout_a);
  const Tensor rA = mma.get_slice(0).partition_fragment_A(sA(_, _, 0));
  print_layout_of("Swizzled128", ladder::Swizzled128{});
  print_layout_of("sA of 20", layout_a);
  print_layout_of("rA of 20", rA.layout());
  print_layout_of("rA as ldmatrix fills it", ldsm_a.get_slice(0).retile_D(rA).layout());
  print_layout_of("sA as thread 37 reads it", ldsm_a.get_slice(37).partition_S(sA).layout());
}
