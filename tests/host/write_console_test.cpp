#include "common/harness/write_console.h"

#include <gmock/gmock.h>

#include <sstream>

namespace ladder {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class Table : public testing::Test {
 protected:
  std::vector<std::string> printed(const std::vector<Result>& results) {
    std::vector<Cell> cells;
    for (const Result& result : results) cells.push_back(result.cell);
    testing::internal::CaptureStdout();
    const Console console({options_, device_}, cells);
    console.header();
    for (const Result& result : results) console.row(result);
    std::stringstream text(testing::internal::GetCapturedStdout());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  Rung named(const char* name) const {
    Rung rung = rungs()[0];
    rung.name = name;
    return rung;
  }
  Options options_;
  Device device_;
};

TEST_F(Table, IsAsWideAsTheLongestName) {
  const Rung short_name = named("a"), long_name = named("a_name_of_more_than_four_and_twenty_characters");
  const auto lines = printed({Result{{&short_name, Type::f32, {8, 8, 8}}}, Result{{&long_name, Type::f32, {8, 8, 8}}}});
  ASSERT_EQ(lines.size(), 3U);
  const size_t at = lines[0].find("type");
  EXPECT_EQ(lines[1].find("f32"), at);
  EXPECT_EQ(lines[2].find("f32"), at);
  EXPECT_EQ(lines[1].size(), lines[2].size());
}

TEST_F(Table, HasADashForWhatIsNotKnown) {
  Result timed{{&rungs()[0], Type::f32, {8, 8, 8}}};
  timed.timing = Timing{};
  timed.timing->median_ms = 1.23456;
  timed.timing->gflops = 1234.5;
  timed.timing->cublas = Baseline{};
  timed.timing->cublas->ratio = 0.8125;
  timed.checked = Checked{1e-6, 5e-5};
  Result waived{{&rungs()[0], Type::f32, {8, 8, 8}}};
  waived.status = Status::waived;
  waived.reason = "needs sm_80, this is sm_75";
  const auto lines = printed({timed, waived});
  EXPECT_THAT(lines[1], HasSubstr("1.2346      1234     0.812"));
  EXPECT_THAT(lines[1], EndsWith("       -    1.0e-06/5.0e-05  ok")) << "no ceiling";
  EXPECT_THAT(lines[2], EndsWith(" -/-  waived: needs sm_80, this is sm_75"));
}

TEST_F(Table, NamesThePlanOfARungThatHasSome) {
  Result result{{&rungs()[0], Type::f32, {8, 8, 8}}};
  result.footprint = Footprint{{128, 128, 16}, 16384, 128, 2, 1.5};
  EXPECT_THAT(printed({result})[1], EndsWith("  ok"));
  result.footprint->plan = "p64x128, tuned";
  EXPECT_THAT(printed({result})[1], EndsWith("  ok, p64x128, tuned"));
}

TEST_F(Table, CountsOnTheSimulator) {
  device_.simulated = true;
  Result counted{{&rungs()[0], Type::f32, {32, 32, 32}}};
  counted.counts = CudaSimCounts{};
  counted.counts->warp_instructions = 2048;
  counted.counts->global_load_sectors = 1'000'000;
  counted.counts->shared_wavefronts = 300;
  counted.counts->shared_ideal = 100;
  const auto lines = printed({counted});
  EXPECT_THAT(lines[0], HasSubstr("wavefronts  conflicts  instr/FMA"));
  EXPECT_THAT(lines[1], HasSubstr("     32 MB       0 MB         300        200       2.00"));
  counted.counts->tensor_products = 512;
  counted.counts->tensor_operand_bytes = 4'194'304;
  counted.counts->tensor_load_bytes = 131'072;
  EXPECT_EQ(printed({counted})[2],
            "  512 tcgen05.mma read 4.194 MB of shared memory; tensor memory: 0.1311 MB loaded, 0 MB stored");
}

}  // namespace
}  // namespace ladder
