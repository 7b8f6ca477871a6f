#include "common/harness/cli/nearest.h"

#include <gtest/gtest.h>

namespace ladder {
namespace {

TEST(Hint, NamesTheMostAlike) {
  EXPECT_EQ(hint("--kernles", {"--seed", "--kernels", "--shapes"}), "; the nearest is --kernels");
  EXPECT_EQ(hint("06c", {"01", "06", "06_bank_conflict_free"}), "; the nearest is 06");
  EXPECT_EQ(hint("bank_conflict", {"06", "06_bank_conflict_free", "06b_padded"}),
            "; the nearest is 06_bank_conflict_free");
  EXPECT_EQ(hint("f23", {"f32", "f16"}), "; the nearest is f32");
}

TEST(Hint, NamesNothingWhereNothingIsLikeIt) {
  EXPECT_EQ(hint("-M", {"--l2", "--list", "--sim"}), "");
  EXPECT_EQ(hint("-M", {"--l2"}, "; --help lists all"), "; --help lists all");
  EXPECT_EQ(hint("zzz", {"01_naive", "06"}), "");
  EXPECT_EQ(hint("99", {"09", "09_wmma"}), "") << "half of the letters";
  EXPECT_EQ(hint("--", {"--sim"}), "") << "dashes are no letters";
  EXPECT_EQ(hint("word", {}), "");
}

}  // namespace
}  // namespace ladder
