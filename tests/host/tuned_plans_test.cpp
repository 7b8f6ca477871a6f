#include "common/harness/tuned_plans.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/harness/error.h"
#include "common/preferred.h"

namespace ladder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string header = "gpu,rung,type,out,m,n,k,lda,ldb,ldc,plan,microseconds,predicted,utc\n";

// Each test has a rung of its own: what is preferred holds for the whole program.
class Plans : public testing::Test {
 protected:
  Plans() {
    std::filesystem::remove(path_);
    device_.name = "NVIDIA Test";
  }
  void read(const std::string& rows) const {
    std::ofstream(path_) << header << rows;
    TunedPlans(path_, device_);
  }
  std::string error_of(const std::string& rows) const {
    try {
      read(rows);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
  std::vector<std::vector<std::string>> written() const {
    std::ifstream file(path_);
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) rows.push_back(split_csv_line(line));
    return rows;
  }
  static Problem problem(int m) {
    return {.m = m, .n = 32, .k = 16, .type = Type::bf16, .out = Out::same, .lda = 16, .ldb = 24, .ldc = 32};
  }

  const std::string path_ = testing::TempDir() + "plans.csv";
  Device device_;
};

TEST_F(Plans, OfAFileAreThoseOfTheFastest) {
  read(
      "NVIDIA Test,91a,bf16,same,64,32,16,16,24,32,slow,9.5,7,2026-01-01T00:00:00Z\n"
      "NVIDIA Test,91a,bf16,same,64,32,16,16,24,32,fast,8.25,9,2026-01-01T00:00:00Z\n"
      "NVIDIA Test,91a,bf16,same,64,32,16,16,24,32,middle,10.5,8,2026-01-01T00:00:00Z\n"
      "NVIDIA Test,91a,bf16,same,65,32,16,16,24,32,only,12,12,2026-01-01T00:00:01Z\n");
  EXPECT_EQ(preferred("91a", problem(64)), "fast");
  EXPECT_EQ(preferred("91a", problem(65)), "only");
  EXPECT_EQ(preferred("91a", problem(66)), "");
}

TEST_F(Plans, OfTheLastTimingCountAlone) {
  read(
      "NVIDIA Test,91b,bf16,same,64,32,16,16,24,32,old,1,1,2026-01-01T00:00:00Z\n"
      "NVIDIA Test,91b,bf16,same,64,32,16,16,24,32,older,2,1,2026-01-01T00:00:00Z\n"
      "NVIDIA Test,91b,bf16,same,64,32,16,16,24,32,slow,4,1,2026-01-02T00:00:00Z\n"
      "NVIDIA Test,91b,bf16,same,64,32,16,16,24,32,new,3,1,2026-01-02T00:00:00Z\n");
  EXPECT_EQ(preferred("91b", problem(64)), "new");
}

TEST_F(Plans, OfARungOfAnyLayoutAreKeptByLayout) {
  read(
      "NVIDIA Test,91l tn,bf16,same,64,32,16,16,24,32,turned,1,1,2026-01-01T00:00:00Z\n"
      "NVIDIA Test,91l nt,bf16,same,64,32,16,16,24,32,plain,1,1,2026-01-01T00:00:00Z\n");
  Problem p = problem(64);
  p.layout_b = MatrixLayout::col_major;
  EXPECT_EQ(preferred(in_layout("91l", p), p), "plain");
  p.layout_a = MatrixLayout::col_major, p.layout_b = MatrixLayout::row_major;
  EXPECT_EQ(preferred(in_layout("91l", p), p), "turned");
  Rung rung{};
  rung.number = "91m", rung.any_layout = true;
  TunedPlans(path_, device_).add(rung, p, {{"a", 2, {}, {}}, {"b", 3, {}, {}}}, {7, 6});
  EXPECT_EQ(preferred("91m tn", p), "b");
  EXPECT_EQ(written().back()[1], "91m tn");
}

TEST_F(Plans, OfOtherGpusAreLeftAlone) {
  read(
      "NVIDIA Other,91c,bf16,same,64,32,16,16,24,32,theirs,1,1,2026-01-01T00:00:00Z\n"
      "NVIDIA Other,91c,f8,same,many,32,16,16,24,32,theirs,1,1,2026-01-01T00:00:00Z\n");
  EXPECT_EQ(preferred("91c", problem(64)), "");
}

TEST_F(Plans, ThatCannotBeReadAreOneLine) {
  const std::string last = ",1,2026-01-01T00:00:00Z\n";
  EXPECT_EQ(error_of("NVIDIA Test,91d,f8,same,64,32,16,16,24,32,a,1" + last),
            "--plans: '" + path_ + "' has 'f8' where a type should be");
  EXPECT_THAT(error_of("NVIDIA Test,91d,bf16,f64,64,32,16,16,24,32,a,1" + last), HasSubstr("has 'f64' where a type"));
  EXPECT_EQ(error_of("NVIDIA Test,91d,bf16,same,64,32,16k,16,24,32,a,1" + last),
            "--plans: '" + path_ + "' has '16k' where a number should be");
  EXPECT_THAT(error_of("NVIDIA Test,91d,bf16,same,64,32,16,16,24,32,a,fast" + last),
              HasSubstr("has 'fast' where a number should be"));
  std::ofstream(path_) << "kernel,ms\n01,1\n";
  EXPECT_THROW(TunedPlans(path_, device_), UsageError);
  EXPECT_THROW(TunedPlans("/proc/no/such.csv", device_), UsageError);
}

TEST_F(Plans, ThatWereTimedAreAppendedAndPreferred) {
  Rung rung = rungs().front();
  rung.number = "91e";
  TunedPlans plans(path_, device_);
  plans.add(rung, problem(64), {{"model's", 6.125, {}, {}}, {"other", 7.5, {}, {}}}, {8.71828, 6.5});
  EXPECT_EQ(preferred("91e", problem(64)), "other");
  plans.add(rung, problem(65), {{"model's", 6.25, {}, {}}}, {6.0});
  EXPECT_EQ(preferred("91e", problem(65)), "model's");
  const auto rows = written();  // before the file is closed
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(std::vector(rows[1].begin(), rows[1].end() - 1),
              ElementsAre("NVIDIA Test", "91e", "bf16", "same", "64", "32", "16", "16", "24", "32", "model's", "8.718",
                          "6.125"));
  EXPECT_EQ(rows[1].back(), rows[2].back()) << "times of one timing have one time of day";
  EXPECT_EQ(rows[2][10], "other");
  EXPECT_EQ(rows[3][4], "65");

  prefer("91e", problem(64), "");
  const TunedPlans again(path_, device_);
  EXPECT_EQ(preferred("91e", problem(64)), "other") << "what was written is read";
}

}  // namespace
}  // namespace ladder
