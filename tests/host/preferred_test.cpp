#include "common/preferred.h"

#include <gtest/gtest.h>

namespace ladder {
namespace {

Problem problem() {
  return {.m = 64, .n = 32, .k = 16, .type = Type::bf16, .out = Out::same, .lda = 16, .ldb = 16, .ldc = 32};
}

TEST(Preferred, IsEmptyWhereNothingWasMeasured) { EXPECT_EQ(preferred("90a", problem()), ""); }

TEST(Preferred, IsTheLastOneOfARungAndAProblem) {
  prefer("90b", problem(), "first");
  prefer("90b", problem(), "second");
  EXPECT_EQ(preferred("90b", problem()), "second");
  EXPECT_EQ(preferred("90c", problem()), "") << "another rung";
  Problem scaled = problem();
  scaled.alpha = 2.0F, scaled.beta = 0.5F;
  EXPECT_EQ(preferred("90b", scaled), "second") << "neither factor matters";
}

TEST(Preferred, TellsProblemsApart) {
  prefer("90d", problem(), "known");
  const auto with = [](auto change) {
    Problem p = problem();
    change(p);
    return preferred("90d", p);
  };
  EXPECT_EQ(with([](Problem&) {}), "known");
  EXPECT_EQ(with([](Problem& p) { ++p.m; }), "");
  EXPECT_EQ(with([](Problem& p) { ++p.n; }), "");
  EXPECT_EQ(with([](Problem& p) { ++p.k; }), "");
  EXPECT_EQ(with([](Problem& p) { ++p.lda; }), "");
  EXPECT_EQ(with([](Problem& p) { ++p.ldb; }), "");
  EXPECT_EQ(with([](Problem& p) { ++p.ldc; }), "");
  EXPECT_EQ(with([](Problem& p) { p.type = Type::f16; }), "");
  EXPECT_EQ(with([](Problem& p) { p.out = Out::f32; }), "");
}

}  // namespace
}  // namespace ladder
