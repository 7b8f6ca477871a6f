#include "common/harness/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/harness/error.h"

namespace ladder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> columns = {"kernel", "ms", "reason"};

std::string fresh(const std::string& name) {
  const std::string path = testing::TempDir() + name;
  std::filesystem::remove(path);
  return path;
}
std::string content(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
std::string error_of(const std::string& path) {
  try {
    CsvFile file(path, columns);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SplitCsvLine, KnowsQuotes) {
  EXPECT_THAT(split_csv_line("a,,\"b, c\",\"say \"\"x\"\"\"\r"), ElementsAre("a", "", "b, c", "say \"x\""));
}

TEST(CsvFile, WritesEachRowAtOnceAndReadsItBack) {
  const std::string path = fresh("rows.csv");
  CsvFile file(path, columns);
  file.append({"01", "", "odd, \"quoted\"\nlines"});
  EXPECT_EQ(content(path), "kernel,ms,reason\n01,,\"odd, \"\"quoted\"\" lines\"\n");  // before the file is closed
  const CsvFile again(path, columns);
  ASSERT_EQ(again.rows().size(), 1U);
  EXPECT_THAT(again.rows()[0], ElementsAre("01", "", "odd, \"quoted\" lines"));
  EXPECT_THROW(file.append({"02", ""}), std::logic_error);
}

TEST(CsvFile, AppendsAndKeepsWhatIsThere) {
  const std::string path = fresh("append.csv");
  CsvFile(path, columns).append({"01", "1", ""});
  CsvFile(path, columns).append({"02", "2", ""});
  EXPECT_EQ(content(path), "kernel,ms,reason\n01,1,\n02,2,\n");
}

TEST(CsvFile, DropsOnlyTheRowThatAKilledRunLeftHalf) {
  const std::string path = fresh("killed.csv");
  std::ofstream(path) << "kernel,ms,reason\n01,1,\n02,";
  CsvFile(path, columns).append({"03", "", ""});
  EXPECT_EQ(content(path), "kernel,ms,reason\n01,1,\n03,,\n");
}

TEST(CsvFile, MakesFolders) {
  const std::string folder = testing::TempDir() + "made/by/csv";
  std::filesystem::remove_all(testing::TempDir() + "made");
  const CsvFile file(folder + "/x.csv", columns);
  EXPECT_TRUE(std::filesystem::exists(folder + "/x.csv"));
}

TEST(CsvFile, RefusesWhatItCannotUse) {
  const std::string other = fresh("other.csv");
  std::ofstream(other) << "kernel,seconds\n01,1\n";
  EXPECT_THAT(error_of(other), HasSubstr("holds other columns"));
  EXPECT_EQ(content(other), "kernel,seconds\n01,1\n");
  const std::string bad = fresh("bad.csv");
  std::ofstream(bad) << "kernel,ms,reason\n01,1\n";
  EXPECT_THAT(error_of(bad), HasSubstr("a line of 2 fields where 3 belong"));
  EXPECT_THAT(error_of("/proc/no/such.csv"), HasSubstr("cannot write '/proc/no/such.csv'"));
  EXPECT_THAT(error_of(testing::TempDir()), HasSubstr("cannot write"));
}

}  // namespace
}  // namespace ladder
