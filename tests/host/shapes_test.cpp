#include "common/harness/cli/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/harness/error.h"

namespace ladder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

template <class Call>
std::string usage_error(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseSize, TakesWholeNumbersFromOne) {
  EXPECT_EQ(parse_size("1", "M"), 1);
  EXPECT_EQ(parse_size("2000000000", "M"), 2'000'000'000);
}

TEST(ParseSize, NamesWhatIsWrong) {
  for (const char* text : {"0", "-1", "", "abc", "1e30", "12.5", "2000000001", "99999999999999999999", " 4", "4 "})
    EXPECT_THAT(usage_error([&] { parse_size(text, "N"); }),
                testing::AllOf(HasSubstr("N must be a whole number from 1 to 2000000000"), HasSubstr(text)));
}

TEST(ParseShapes, TakesListsFamiliesAndFiles) {
  EXPECT_THAT(parse_shapes("1x2x3,4x5x6"), ElementsAre(Shape{1, 2, 3}, Shape{4, 5, 6}));
  const std::string path = write("shapes.txt", "# sizes\n7 8 9   # a comment\n\n  10x11x12\r\n7 8 9\n");
  EXPECT_THAT(parse_shapes(path), ElementsAre(Shape{7, 8, 9}, Shape{10, 11, 12}));
  EXPECT_EQ(parse_shapes("square").size(), shape_families()[0].shapes.size());
}

TEST(ParseShapes, KeepsEachShapeOnce) {
  EXPECT_THAT(parse_shapes("4x4x4,1x1x1,4x4x4"), ElementsAre(Shape{4, 4, 4}, Shape{1, 1, 1}));
}

TEST(ParseShapes, NamesFileAndLine) {
  const std::string path = write("bad.txt", "1 2 3\n# fine\n4 five 6\n");
  EXPECT_THAT(usage_error([&] { parse_shapes(path); }),
              testing::AllOf(HasSubstr("bad.txt:3:"), HasSubstr("N must be"), HasSubstr("'five'")));
  EXPECT_THAT(usage_error([&] { parse_shapes(write("two.txt", "1 2\n")); }), HasSubstr("two.txt:1: a shape is MxNxK"));
  EXPECT_THAT(usage_error([&] { parse_shapes(write("none.txt", "# nothing\n")); }), HasSubstr("holds no shape"));
}

TEST(ParseShapes, NamesTheNearestFamily) {
  EXPECT_THAT(usage_error([] { parse_shapes("skiny"); }), HasSubstr("; the nearest is skinny"));
  EXPECT_THAT(usage_error([] { parse_shapes("4x4"); }), HasSubstr("a shape is MxNxK"));
  EXPECT_THAT(usage_error([] { parse_shapes(","); }), HasSubstr("--shapes takes"));
}

TEST(ShapeFamilies, HoldNoShapeTwiceAndMultiplesOfFourWhereRowsNeedThem) {
  for (const ShapeFamily& family : shape_families()) {
    EXPECT_EQ(parse_shapes(family.name).size(), family.shapes.size()) << family.name;
    for (const Shape& shape : family.shapes) {
      EXPECT_EQ(shape.n % 4, 0) << family.name << " " << shape.str();
      EXPECT_EQ(shape.k % 4, 0) << family.name << " " << shape.str();
    }
  }
}

TEST(OddShapes, AreAtLeastSixty) { EXPECT_GE(parse_shapes(GEMM_LADDER_SOURCE "/tests/shapes/odd.txt").size(), 60U); }

}  // namespace
}  // namespace ladder
