// Rows of results: what is written of them, and which of them --resume takes as done.
#include "common/harness/write_csv.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "common/harness/error.h"

namespace ladder {
namespace {

using testing::HasSubstr;

class Rows : public testing::Test {
 protected:
  Rows() {
    std::filesystem::remove(path_);
    device_.name = "NVIDIA Test";
    device_.sm = 90;
  }
  Cell cell(const std::string& rung, int size, int sitting = 1) const {
    return {select_rungs(rung, rungs())[0], Type::f32, {size, size, size}, sitting};
  }
  Result result(const Cell& cell, Status status) const {
    Result result{cell};
    result.status = status;
    if (status != Status::ok) result.reason = "because";
    return result;
  }
  void write(const std::vector<Result>& results) {
    ResultsCsv csv(path_);
    for (const Result& result : results) csv.append(conditions_, result);
  }
  bool holds(const Cell& cell) { return ResultsCsv(path_).holds(conditions_, cell); }
  /// The last row, by column.
  std::map<std::string, std::string> last() const {
    std::ifstream file(path_);
    std::string header, line, row;
    std::getline(file, header);
    while (std::getline(file, line)) row = line;
    const std::vector<std::string> names = split_csv_line(header), fields = split_csv_line(row);
    std::map<std::string, std::string> found;
    for (size_t i = 0; i < names.size(); ++i) found[names[i]] = fields[i];
    return found;
  }

  const std::string path_ = testing::TempDir() + "results.csv";
  Options options_;
  Device device_;
  Conditions conditions_{options_, device_};
};

TEST_F(Rows, LeaveOutWhatIsNotKnown) {
  write({result(cell("01", 8), Status::waived)});
  auto row = last();
  EXPECT_EQ(row["kernel"], "01_naive");
  EXPECT_EQ(row["status"], "waived");
  EXPECT_EQ(row["reason"], "because");
  EXPECT_EQ(row["unit"], "FFMA");
  EXPECT_EQ(row["sitting"], "1");
  for (const char* column :
       {"max_error", "median_ms", "cublas_ms", "cublaslt_ms", "cutlass_ms", "cutlass_kernel", "ratio_clk", "tile",
        "registers", "waves", "plan", "power_w", "throttle", "ceiling", "sim_barriers"})
    EXPECT_EQ(row[column], "") << column;
}

TEST_F(Rows, HoldEveryNumber) {
  Result r = result(cell("05", 4096, 2), Status::ok);
  r.checked = Checked{1e-7, 6e-5};
  r.footprint = Footprint{{128, 128, 16}, 16384, 128, 2, 3.8787878};
  r.timing = Timing{.rounds = 6,
                    .median_ms = 3.0,
                    .p10_ms = 2.9,
                    .p90_ms = 3.25,
                    .gflops = 45812.98,
                    .cublas = Baseline{2.7, 50903.3, 0.9, 1700.0, 0.9125},
                    .cublaslt = Baseline{2.6, 52861.1, 0.8667, 1705.0, 0.88},
                    .cutlass = Baseline{2.8, 49000.5, 0.9333, 1710.0, 0.95},
                    .cutlass_kernel = "sm90 pingpong",
                    .ratio_best = 0.8667,
                    .ceiling = "fp32_fma",
                    .ceiling_fraction = 0.75,
                    .clock_mhz = 1680.0,
                    .flop_clk_sm = 206.5,
                    .gpu = GpuState{512.5, 55, 0x4},
                    .samples = {}};
  write({r});
  auto row = last();
  const std::map<std::string, std::string> expected = {{"type", "f32"},
                                                       {"m", "4096"},
                                                       {"sitting", "2"},
                                                       {"rounds", "6"},
                                                       {"median_ms", "3"},
                                                       {"p10_ms", "2.9"},
                                                       {"p90_ms", "3.25"},
                                                       {"gflops", "45813"},
                                                       {"cublas_ms", "2.7"},
                                                       {"cublas_gflops", "50903.3"},
                                                       {"cublas_clock_mhz", "1700"},
                                                       {"cublaslt_ms", "2.6"},
                                                       {"cutlass_ms", "2.8"},
                                                       {"cutlass_gflops", "49000.5"},
                                                       {"cutlass_kernel", "sm90 pingpong"},
                                                       {"ratio_cutlass", "0.9333"},
                                                       {"ratio_cublas", "0.9"},
                                                       {"ratio_best", "0.8667"},
                                                       {"ratio_clk", "0.9125"},
                                                       {"ceiling", "fp32_fma"},
                                                       {"ceiling_fraction", "0.75"},
                                                       {"clock_mhz", "1680"},
                                                       {"flop_clk_sm", "206.5"},
                                                       {"max_error", "1e-07"},
                                                       {"bound", "6e-05"},
                                                       {"status", "ok"},
                                                       {"reason", ""},
                                                       {"registers", "128"},
                                                       {"smem_bytes", "16384"},
                                                       {"blocks_per_sm", "2"},
                                                       {"tile", "128x128x16"},
                                                       {"waves", "3.87879"},
                                                       {"power_w", "512.5"},
                                                       {"temperature_c", "55"},
                                                       {"throttle", "sw_power_cap"},
                                                       {"gpu", "NVIDIA Test"},
                                                       {"sm", "90"},
                                                       {"sim_flops", ""}};
  for (const auto& [column, value] : expected) EXPECT_EQ(row[column], value) << column;
}

TEST_F(Rows, NameThePlanOfARungThatHasSome) {
  Result r = result(cell("05", 4096), Status::ok);
  r.footprint = Footprint{{128, 128, 16}, 16384, 128, 2, 3.8787878};
  write({r});
  EXPECT_EQ(last()["plan"], "");
  r.footprint->plan = "c128x128, predicted";
  write({r});
  EXPECT_EQ(last()["plan"], "c128x128, predicted");
}

TEST_F(Rows, AreKnownOnlyWhereTheyWereRightOrWaived) {
  write({result(cell("01", 8), Status::ok), result(cell("02", 8), Status::wrong), result(cell("03", 8), Status::failed),
         result(cell("04", 8), Status::waived)});
  EXPECT_TRUE(holds(cell("01", 8)));
  EXPECT_FALSE(holds(cell("02", 8))) << "a wrong result must be looked at again";
  EXPECT_FALSE(holds(cell("03", 8)));
  EXPECT_TRUE(holds(cell("04", 8)));
  EXPECT_FALSE(holds(cell("01", 9)));
  EXPECT_FALSE(holds(cell("05", 8)));
}

TEST_F(Rows, OfOneSittingAreNoneOfAnother) {
  write({result(cell("01", 8), Status::ok), result(cell("02", 8), Status::waived)});
  EXPECT_FALSE(holds(cell("01", 8, 2)));
  EXPECT_TRUE(holds(cell("02", 8, 2))) << "what is waived is waived in every sitting";
}

TEST_F(Rows, MeasuredOtherwiseAreNotKnown) {
  write({result(cell("01", 8), Status::ok)});
  const Options before = options_;
  const auto known_with = [&](auto change) {
    options_ = before;
    change(options_);
    return holds(cell("01", 8));
  };
  EXPECT_TRUE(known_with([](Options&) {}));
  EXPECT_TRUE(known_with([](Options& o) { o.rounds = 7; }));
  EXPECT_FALSE(known_with([](Options& o) { o.alpha = 2.0F; }));
  EXPECT_FALSE(known_with([](Options& o) { o.beta = 1.0F; }));
  EXPECT_FALSE(known_with([](Options& o) { o.out = Out::same; }));
  EXPECT_FALSE(known_with([](Options& o) { o.scales = Scales::rows; }));
  EXPECT_FALSE(known_with([](Options& o) { o.groups = 4; }));
  EXPECT_FALSE(known_with([](Options& o) { o.ld_pad = 4; }));
  EXPECT_FALSE(known_with([](Options& o) { o.init = Init::zeros; }));
  EXPECT_FALSE(known_with([](Options& o) { o.cold = false; }));
  EXPECT_FALSE(known_with([](Options& o) { o.protocol = Protocol::steady; }));
  EXPECT_FALSE(known_with([](Options& o) { o.check_only = true; }));
}

TEST_F(Rows, OfAnotherGpuAreRefused) {
  write({result(cell("01", 8), Status::ok)});
  const ResultsCsv csv(path_);
  EXPECT_NO_THROW(csv.refuse_other_gpu(device_));
  Device other;
  other.name = "NVIDIA Other";
  try {
    csv.refuse_other_gpu(other);
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds results of NVIDIA Test, this is NVIDIA Other"));
  }
}

TEST_F(Rows, OfSamplesAreOnePerContenderAndRound) {
  const std::string path = testing::TempDir() + "samples.csv";
  std::filesystem::remove(path);
  Result r = result(cell("01", 8), Status::ok);
  SamplesCsv csv(path);
  csv.append(conditions_, r);  // not timed: nothing
  r.timing = Timing{};
  r.timing->samples = {{"kernel", {1.5, 1.25}}, {"cublas", {1.0, 1.0}}};
  csv.append(conditions_, r);
  std::ifstream file(path);
  std::string line;
  std::vector<std::string> lines;
  while (std::getline(file, line)) lines.push_back(line);
  EXPECT_THAT(lines, testing::ElementsAre("kernel,type,out,m,n,k,protocol,sitting,round,which,ms",
                                          "01_naive,f32,f32,8,8,8,rounds,1,0,kernel,1.5",
                                          "01_naive,f32,f32,8,8,8,rounds,1,1,kernel,1.25",
                                          "01_naive,f32,f32,8,8,8,rounds,1,0,cublas,1",
                                          "01_naive,f32,f32,8,8,8,rounds,1,1,cublas,1"));
}

}  // namespace
}  // namespace ladder
