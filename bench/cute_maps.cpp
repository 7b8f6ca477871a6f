// Prints CuTe's layouts as 19 and 20 use them, as bench/maps.cpp does those of common/layout.h: the same CSV, the same maps, so
// that the figures of 10, 12 and 13 can be drawn of CuTe, too. CuTe evaluates them on the CPU. tests/kernels/test_cute_maps.py
// compares both. Where there are no headers of CUTLASS, CMake leaves this program out. So what it prints, all but the map C, is
// kept in bench/cute_maps.csv, from which `python3 -m plots maps` draws the figures. After a change:
//     build/bin/cute_maps | grep -v ^C, >bench/cute_maps.csv
//
//   offset     tensor: element of a tensor of 8 x 16 in rows of 20, with its offset (word)
//              local_tile: the same in the tiles of 4 x 4 that local_tile makes of rows 4 to 7; the thread is the number of the tile
//   row_place  rung 20: chunk of 16 bytes of Swizzled128's eight rows, with the place where it lies
//   swizzled   BMS_COLUMNS, such as 333_64: the same for Swizzle<B, M, S> of 16 rows of 64 or 32 elements of 16 bits
//   bits       BMS: to which offset (word) Swizzle<B, M, S> sends the offset that has only the bit that is the thread
//   a, b, c    type cute: element of a fragment of the mma atom, with the lane that holds it
//   tiled_a, tiled_b, tiled_c
//              pair of elements of A's 64 x 16, B's 32 x 16 (row: column of B) and C's 64 x 32, each with a thread that holds it
//              after one step of the TiledMMA, and which of this thread's pairs it is (word)
//   copy       rung 20: chunk of 16 bytes that a thread copies first, with the place in shared memory; rung 20_37: all chunks of A
//              that thread 37 copies
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

void print_offsets() {
  const Tensor offsets = make_tensor(counting_iterator<int>{0}, make_shape(8, 16), make_stride(20, _1{}));
  const Tensor tiles = local_tile(offsets, Shape<_4, _4>{}, make_coord(1, _));
  for (int row = 0; row < size<0>(offsets); ++row)
    for (int col = 0; col < size<1>(offsets); ++col)
      std::printf("offset,tensor,,%d,%d,%d,,\n", row, col, int(offsets(row, col)));
  for (int tile = 0; tile < size<2>(tiles); ++tile)
    for (int row = 0; row < size<0>(tiles); ++row)
      for (int col = 0; col < size<1>(tiles); ++col)
        std::printf("offset,local_tile,%d,%d,%d,%d,,\n", tile, row, col, int(tiles(row, col, tile)));
}

template <int B, int M, int S>
void print_bits() {
  for (int bit = 0; bit < 10; ++bit)
    std::printf("bits,%d%d%d,%d,,,%d,,\n", B, M, S, bit, int(Swizzle<B, M, S>{}(1 << bit)));
}

template <int B, int M, int S, int COLUMNS>
void print_swizzled() {
  const auto place = composition(Swizzle<B, M, S>{}, Layout<Shape<_16, Int<COLUMNS>>, Stride<Int<COLUMNS>, _1>>{});
  for (int row = 0; row < 16; ++row)
    for (int chunk = 0; chunk < COLUMNS / 8; ++chunk) {
      const int word = place(row, chunk * 8) / 2;
      std::printf("swizzled,%d%d%d_%d,,%d,%d,%d,%d,\n", B, M, S, COLUMNS, row, chunk, word, word % 32);
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

/// Neighbouring elements, which lie in one register of 32 bits if they have 16 bits: of A and B along k, of C along a row.
template <class Tensor>
void print_pairs(const char* map, int thread, const Tensor& places) {
  for (int i = 0; i < size(places); i += 2)
    std::printf("%s,cute,%d,%d,%d,%d,,\n", map, thread, int(get<0>(places(i))), int(get<1>(places(i))), i / 2);
}

template <class Mma>
void print_tiled(const Mma& mma) {
  for (int thread = 0; thread < size(mma); ++thread) {
    const auto slice = mma.get_slice(thread);
    print_pairs("tiled_a", thread, slice.partition_A(make_identity_tensor(Shape<_64, _16>{})));
    print_pairs("tiled_b", thread, slice.partition_B(make_identity_tensor(Shape<_32, _16>{})));
    print_pairs("tiled_c", thread, slice.partition_C(make_identity_tensor(Shape<_64, _32>{})));
  }
}

template <class Layout>
void print_copy(const Layout& layout_a) {
  const auto print = [&](const char* rung, int thread, const auto& place, int i) {
    const int row = get<0>(place), col = get<1>(place), word = layout_a(row, col, 0) / 2;
    std::printf("copy,%s,%d,%d,%d,%d,%d,%d\n", rung, thread, row, col / 8, word, word % 32, i);
  };
  const ladder::CuteCopy<bfloat16_t> copy;
  for (int thread = 0; thread < size(copy); ++thread) {
    const Tensor chunks = copy.get_slice(thread).partition_S(make_identity_tensor(Shape<_256, _64>{}));
    print("20", thread, chunks(0, 0, 0), 0);
    for (int i = 0; thread == 37 && i < size<1>(chunks); ++i) print("20_37", thread, chunks(0, i, 0), i);
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
  print_offsets();
  print_rows("20", ladder::Swizzled128{});
  print_swizzled<0, 3, 3, 64>();
  print_swizzled<3, 3, 3, 64>();
  print_swizzled<3, 4, 3, 64>();
  print_swizzled<0, 3, 3, 32>();
  print_swizzled<2, 3, 3, 32>();
  print_swizzled<3, 3, 3, 32>();
  print_bits<3, 3, 3>();
  print_bits<2, 3, 3>();
  print_bits<3, 4, 3>();
  print_bits<2, 3, 2>();
  print_fragments();
  print_tiled(mma);
  print_ldmatrix("ldsm_a", ldsm_a, Shape<_64, _16>{});
  print_ldmatrix("ldsm_b", ldsm_b, Shape<_32, _16>{});
  print_results("19", mma, Shape<_128, _128>{});
  print_results("20", mma, Shape<_256, _128>{});

  const auto layout_a = tile_to_shape(ladder::Swizzled128{}, Shape<_256, _64, _3>{});
  print_copy(layout_a);
  const Tensor sA = make_tensor(make_smem_ptr(static_cast<T*>(nullptr)), layout_a);
  const Tensor rA = mma.get_slice(0).partition_fragment_A(sA(_, _, 0));
  using Atom = MMA_Traits<ladder::CuteOperand<ladder::Type::bf16>::Mma>;
  print_layout_of("A of the atom", Atom::ALayout{});
  print_layout_of("B of the atom", Atom::BLayout{});
  print_layout_of("C of the atom", Atom::CLayout{});
  print_layout_of("warps of the TiledMMA", mma.get_thr_layout_vmnk());
  print_layout_of("Swizzled128", ladder::Swizzled128{});
  print_layout_of("sA of 20", layout_a);
  print_layout_of("rA of 20", rA.layout());
  print_layout_of("sums of 20", partition_fragment_C(mma, Shape<_256, _128>{}).layout());
  print_layout_of("rA as ldmatrix fills it", ldsm_a.get_slice(0).retile_D(rA).layout());
  print_layout_of("sA as thread 37 reads it", ldsm_a.get_slice(37).partition_S(sA).layout());
}
