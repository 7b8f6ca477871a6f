#include "common/harness/cli/options.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "common/harness/error.h"

namespace ladder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ladder");
  bool finished = false;
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), finished);
}

std::string error_of(const std::vector<const char*>& arguments) {
  try {
    parse(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> numbers(const std::vector<const Rung*>& rungs) {
  std::vector<std::string> result;
  for (const Rung* rung : rungs) result.push_back(rung->number);
  return result;
}

TEST(Options, HaveDefaults) {
  const Options options = parse({});
  EXPECT_THAT(options.shapes, ElementsAre(Shape{4096, 4096, 4096}));
  EXPECT_EQ(options.rungs.size(), rungs().size());
  EXPECT_EQ(options.alpha, 1.0F);
  EXPECT_EQ(options.beta, 0.0F);
  EXPECT_TRUE(options.cold);
  EXPECT_EQ(options.check, CheckMode::full);
  EXPECT_EQ(options.protocol, Protocol::rounds);
  EXPECT_FALSE(options.type.has_value());
}

TEST(Options, TakeValues) {
  const Options options =
      parse({"64",     "32",      "16",     "--alpha", "-1.5", "--beta", "2e-1",       "--ld-pad",  "4",
             "--init", "integer", "--seed", "9",       "--l2", "warm",   "--protocol", "steady",    "--rounds",
             "3",      "--check", "sample", "--type",  "bf16", "--out",  "same",       "--kernels", "05-06"});
  EXPECT_THAT(options.shapes, ElementsAre(Shape{64, 32, 16}));
  EXPECT_EQ(options.alpha, -1.5F);
  EXPECT_EQ(options.beta, 0.2F);
  EXPECT_EQ(options.ld_pad, 4);
  EXPECT_EQ(options.init, Init::integer);
  EXPECT_EQ(options.seed, 9U);
  EXPECT_FALSE(options.cold);
  EXPECT_EQ(options.protocol, Protocol::steady);
  EXPECT_EQ(options.rounds, 3);
  EXPECT_EQ(options.check, CheckMode::sample);
  EXPECT_EQ(options.type, Type::bf16);
  EXPECT_EQ(options.out, Out::same);
  EXPECT_THAT(numbers(options.rungs), ElementsAre("05", "06", "06b"));
  EXPECT_EQ(parse({"--ld-pad", "align"}).ld_pad, ld_align);
  EXPECT_EQ(parse({}).scales, Scales::none);
  EXPECT_EQ(parse({"--scales", "rows"}).scales, Scales::rows);
  EXPECT_EQ(parse({"--groups", "8"}).groups, 8);
  EXPECT_EQ(parse({"--groups", "8"}).group_rows, GroupRows::equal);
  EXPECT_EQ(parse({"--groups", "8", "--group-rows", "random"}).group_rows, GroupRows::random);
  EXPECT_EQ(parse({}).epilogue, Epilogue{});
  EXPECT_EQ(parse({"--epilogue", "none"}).epilogue, Epilogue{});
  EXPECT_EQ(parse({"--epilogue", "gelu,bias"}).epilogue, (Epilogue{.bias = true, .activation = Activation::gelu}));
  EXPECT_EQ(name(parse({"--epilogue", "quantise,gate,silu"}).epilogue), "silu,gate,quantise");
  EXPECT_EQ(parse({"--sittings", "5"}).sittings, 5);
  EXPECT_EQ(parse({"--sittings", "2/5"}).sittings, 5);
  EXPECT_EQ(parse({"--sittings", "2/5"}).until_sitting, 2);
  EXPECT_EQ(parse({"--sim-gpu", "a100"}).sim_gpu, "a100");
  EXPECT_FALSE(parse({"--plans", "plans.csv"}).tune);
  EXPECT_TRUE(parse({"--tune", "--plans", "plans.csv"}).tune);
  EXPECT_EQ(parse({"--tune", "--plans", "plans.csv"}).plans, "plans.csv");
}

TEST(Options, NameWhatTheyTake) {
  EXPECT_THAT(error_of({"--type", "f23"}),
              HasSubstr("--type takes f32, tf32, bf16, f16, e4m3, e5m2, e2m1, got 'f23'; the nearest is f32"));
  EXPECT_THAT(error_of({"--init", "ones"}), HasSubstr("--init takes normal, uniform, integer, zeros, got 'ones'"));
  EXPECT_THAT(error_of({"--alpha", "two"}), HasSubstr("--alpha takes a finite number, got 'two'"));
  EXPECT_THAT(error_of({"--beta", "nan"}), HasSubstr("--beta takes a finite number"));
  EXPECT_THAT(error_of({"--alpha", "1e99"}), HasSubstr("--alpha takes a finite number"));
  EXPECT_THAT(error_of({"--rounds", "0"}), HasSubstr("--rounds takes a whole number from 1 to 10000, got '0'"));
  EXPECT_THAT(error_of({"--epilogue", "gelo"}), HasSubstr("got 'gelo'; the nearest is gelu"));
  EXPECT_THAT(error_of({"--epilogue", "gelu,silu"}), HasSubstr("--epilogue takes one activation, got 'gelu,silu'"));
  EXPECT_THAT(error_of({"--epilogue", "quantise", "--beta", "1"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error_of({"--epilogue", "quantise", "--check", "sample"}), HasSubstr("needs --check full"));
  EXPECT_THAT(error_of({"--sittings", "6/5"}), HasSubstr("--sittings takes a whole number from 1 to 5, got '6'"));
  EXPECT_THAT(error_of({"--sittings", "0"}), HasSubstr("--sittings takes a whole number from 1 to 100, got '0'"));
  EXPECT_THAT(
      error_of({"--sim-gpu", "a10"}),
      HasSubstr("--sim-gpu takes h200, h100, b200, a100, rtx4090, rtx5090, t4, got 'a10'; the nearest is a100"));
  EXPECT_THAT(error_of({"--ld-pad", "-1"}), HasSubstr("--ld-pad takes a whole number"));
  EXPECT_THAT(error_of({"--device", "x"}), HasSubstr("--device takes a whole number"));
  EXPECT_THAT(error_of({"--out", "f16"}), HasSubstr("--out takes f32, same, got 'f16'"));
  EXPECT_THAT(error_of({"--l2", "hot"}), HasSubstr("--l2 takes cold, warm, got 'hot'"));
  EXPECT_THAT(error_of({"--protocol", "round"}), HasSubstr("the nearest is rounds"));
  EXPECT_THAT(error_of({"--check", "some"}), HasSubstr("--check takes full, sample, off, got 'some'"));
}

TEST(Options, RefuseSizes) {
  EXPECT_THAT(error_of({"0", "1", "1"}), HasSubstr("M must be a whole number from 1"));
  EXPECT_THAT(error_of({"1", "-3", "1"}), HasSubstr("N must be a whole number from 1"));
  EXPECT_THAT(error_of({"1", "1", "many"}), HasSubstr("K must be a whole number from 1"));
  EXPECT_THAT(error_of({"64", "64"}), HasSubstr("M, N and K are three numbers, got 2"));
  EXPECT_THAT(error_of({"1", "2", "3", "4"}), HasSubstr("M, N and K are three numbers, got 4: 1 2 3 4"));
  EXPECT_THAT(error_of({"1", "2", "3", "--shapes", "square"}), HasSubstr("not both"));
}

TEST(Options, NameTheNearestOption) {
  EXPECT_THAT(error_of({"--shape", "square"}), HasSubstr("there is no option '--shape'; the nearest is --shapes"));
  EXPECT_EQ(error_of({"-M", "4096"}), "there is no option '-M'; --help lists all");
  EXPECT_EQ(error_of({"--zzz"}), "there is no option '--zzz'; --help lists all");
  EXPECT_THAT(error_of({"--size", "64"}), Not(HasSubstr("nearest"))) << "the sizes are no option";
}

TEST(Options, ExcludeContradictions) {
  EXPECT_THAT(error_of({"--check-only", "--check", "off"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error_of({"--resume"}), HasSubstr("--resume needs --csv"));
  EXPECT_THAT(error_of({"--json"}), HasSubstr("--json belongs to --list"));
  EXPECT_EQ(error_of({"--tune"}), "--tune needs --plans, the file to keep what it finds");
  EXPECT_EQ(error_of({"--tune", "--plans", "plans.csv", "--check-only"}), "--check-only and --tune exclude each other");
}

TEST(Options, TellSpelledOutSizesFromFamilies) {
  EXPECT_TRUE(parse({"8", "8", "8"}).shapes_are_explicit);
  EXPECT_TRUE(parse({"--shapes", "8x8x8,9x9x9"}).shapes_are_explicit);
  EXPECT_FALSE(parse({"--shapes", "square"}).shapes_are_explicit);
}

TEST(Options, TypeAloneChoosesTheRungsThatComputeIt) {
  std::vector<std::string> computing;
  for (const Rung& rung : rungs())
    if (std::count(rung.types.begin(), rung.types.end(), Type::f32)) computing.emplace_back(rung.number);
  EXPECT_GE(computing.size(), 10U);
  EXPECT_EQ(numbers(parse({"--type", "f32"}).rungs), computing);
  EXPECT_EQ(numbers(parse({"--type", "bf16"}).rungs).front(), "09");
  EXPECT_THAT(numbers(parse({"--type", "bf16", "--kernels", "01"}).rungs), ElementsAre("01"));
}

TEST(SelectRungs, TakesNumbersNamesAndRanges) {
  EXPECT_THAT(numbers(select_rungs("6", rungs())), ElementsAre("06"));
  EXPECT_THAT(numbers(select_rungs("6b,02", rungs())), ElementsAre("02", "06b"));
  EXPECT_THAT(numbers(select_rungs("05_float4,naive", rungs())), ElementsAre("01", "05"));
  EXPECT_THAT(numbers(select_rungs("01-02", rungs())), ElementsAre("01", "01b", "02"));
}

TEST(SelectRungs, NamesTheNearest) {
  const auto error = [](const std::string& text) {
    try {
      select_rungs(text, rungs());
    } catch (const UsageError& usage) {
      return std::string(usage.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("06_bank_conflict"), HasSubstr("the nearest is 06_bank_conflict_free"));
  EXPECT_EQ(error("01-99"), "there is no rung '99'; --list lists all");
  EXPECT_THAT(error("04-02"), HasSubstr("from low to high"));
  EXPECT_THAT(error(","), HasSubstr("--kernels takes rungs such as 05,07-09,12b, got ','"));
}

}  // namespace
}  // namespace ladder
