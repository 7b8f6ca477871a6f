// Every scale has its own place, inside what is allocated, and the block layouts are those of cuBLASLt.
#include "common/scales.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "common/rung.h"

namespace ladder {
namespace {

TEST(Scales, HaveAPlaceForEachThatDiffers) {
  for (const auto& [m, k] : {std::pair(1, 1), std::pair(3, 128), std::pair(130, 129), std::pair(8, 1000)})
    for (const Scales scales : {Scales::tensor, Scales::rows, Scales::blocks, Scales::mx, Scales::nv}) {
      std::set<size_t> of_a, of_b;  // of B: m columns
      for (int at = 0; at < m; ++at)
        for (int i = 0; i < k; ++i) {
          of_a.insert(scale_index_a(scales, m, k, at, i));
          of_b.insert(scale_index_b(scales, k, at, i));
        }
      const int vector = scale_vector(scales);
      const size_t along_k = ceil_div(k, vector ? vector : 128), per_float = vector ? 4 : 1;
      EXPECT_EQ(of_a.size(), scales == Scales::tensor ? 1 : scales == Scales::rows ? m : m * along_k);
      EXPECT_EQ(of_b.size(), scales == Scales::tensor ? 1
                             : scales == Scales::rows ? m
                             : vector                 ? m * along_k
                                                      : ceil_div(m, 128) * along_k);
      EXPECT_LT(*of_a.rbegin(), scale_floats_a(scales, m, k) * per_float);
      EXPECT_LT(*of_b.rbegin(), scale_floats_b(scales, m, k) * per_float);
    }
  EXPECT_EQ(scale_floats_a(Scales::none, 8, 8) + scale_floats_b(Scales::none, 8, 8), 0);
}

TEST(Scales, OfBlocksHaveRowsOfWhole16Bytes) {
  // A, 6 x 300: rows of 8 floats, one for each 128 of k.
  EXPECT_EQ(scale_index_a(Scales::blocks, 6, 300, 5, 127), 5);
  EXPECT_EQ(scale_index_a(Scales::blocks, 6, 300, 0, 128), 8);
  EXPECT_EQ(scale_index_a(Scales::blocks, 6, 300, 5, 299), 21);
  EXPECT_EQ(scale_floats_a(Scales::blocks, 6, 300), 24);
  // B, 300 x 200: rows of 4 floats, one for each 128 columns.
  EXPECT_EQ(scale_index_b(Scales::blocks, 300, 127, 299), 2);
  EXPECT_EQ(scale_index_b(Scales::blocks, 300, 128, 0), 4);
  EXPECT_EQ(scale_floats_b(Scales::blocks, 200, 300), 8);
}

TEST(Scales, OfVectorsLieAsTensorMemoryTakesThem) {
  // 200 x 300: two times three atoms of 512 bytes.
  EXPECT_EQ(scale_floats_a(Scales::mx, 200, 300), 6 * 128);
  EXPECT_EQ(scale_index_vector(32, 300, 0, 32), 1);
  EXPECT_EQ(scale_index_vector(32, 300, 1, 0), 16);
  EXPECT_EQ(scale_index_vector(32, 300, 32, 0), 4);
  EXPECT_EQ(scale_index_vector(32, 300, 0, 128), 512);
  EXPECT_EQ(scale_index_vector(32, 300, 128, 0), 3 * 512);
  EXPECT_EQ(scale_floats_b(Scales::nv, 200, 300), 10 * 128);
  EXPECT_EQ(scale_index_vector(16, 300, 0, 64), 512);
  const unsigned char bytes[4] = {127, 0x38, 126, 130};
  EXPECT_EQ(scale_at(Scales::mx, reinterpret_cast<const float*>(bytes), 2), 0.5F);
  EXPECT_EQ(scale_at(Scales::mx, reinterpret_cast<const float*>(bytes), 3), 8.0F);
  EXPECT_EQ(scale_at(Scales::nv, reinterpret_cast<const float*>(bytes), 1), 1.0F);
}

TEST(Scales, OfGroupsLieOneAfterAnother) {
  for (const Scales scales : {Scales::rows, Scales::blocks}) {
    EXPECT_EQ(scale_stride_b(scales, 200, 300), scale_floats_b(scales, 200, 300));
    EXPECT_GT(scale_stride_b(scales, 200, 300), scale_index_b(scales, 300, 199, 299));
  }
  EXPECT_EQ(scale_stride_b(Scales::tensor, 200, 300), 0);
  EXPECT_EQ(scale_stride_b(Scales::none, 200, 300), 0);
}

}  // namespace
}  // namespace ladder
