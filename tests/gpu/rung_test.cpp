// Every rung, every shape of tests/shapes/odd.txt, with different paddings, factors and data. On the simulator: of small.txt,
// and at each shape a quarter of the cases, another one at the next. Where a rung has several plans: each of them over a few shapes.
#include "common/rung.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "common/harness/blas.h"
#include "common/harness/check/check.h"
#include "common/harness/cli/options.h"
#include "common/scales.h"
#include "common/text.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

struct Case {
  int ld_pad;
  float alpha, beta;
  Init init;
};

/// All of alpha and beta in 0, 1, -1.5 and random, over aligned, padded and plain rows and all kinds of data.
std::vector<Case> cases(const Rung& rung) {
  std::mt19937 random(rung.number[1]);
  std::uniform_real_distribution<float> any(-2.0F, 2.0F);
  const float r = any(random), s = any(random);
  std::vector<Case> result = {{ld_align, 1.0F, 0.0F, Init::normal},
                              {ld_align, -1.5F, 1.0F, Init::normal},
                              {ld_align, r, s, Init::uniform},
                              {ld_align, 0.0F, 0.0F, Init::normal},
                              {ld_align, 0.0F, -1.5F, Init::normal},
                              {ld_align, 1.0F, 1.0F, Init::integer},
                              {4, s, -1.5F, Init::normal},
                              {0, 1.0F, 0.0F, Init::zeros},
                              {0, -1.5F, r, Init::normal}};
  if (rung.row_align_bytes <= 4) result.push_back({3, r, 1.0F, Init::normal});
  return result;
}

/// Each of them with all scales that the rung takes.
std::vector<std::pair<Case, Scales>> scaled(const std::vector<Case>& cases, const Rung& rung) {
  std::vector<std::pair<Case, Scales>> result;
  for (const Scales scales : rung.scales)
    for (const Case& c : cases) result.emplace_back(c, scales);
  return result;
}

/// Every type of operands, each with every type of result.
std::vector<std::pair<Type, Out>> types(const Rung& rung) {
  std::vector<std::pair<Type, Out>> result;
  for (const Type type : rung.types) {
    result.emplace_back(type, Out::f32);
    if (result_bytes(type, Out::same) != result_bytes(type, Out::f32)) result.emplace_back(type, Out::same);
  }
  return result;
}

/// How A and B may be stored.
std::vector<std::pair<MatrixLayout, MatrixLayout>> layouts(const Rung& rung) {
  if (!rung.any_layout) return {{MatrixLayout::row_major, rung.layout_b}};
  std::vector<std::pair<MatrixLayout, MatrixLayout>> all;
  for (const MatrixLayout a : {MatrixLayout::row_major, MatrixLayout::col_major})
    for (const MatrixLayout b : {MatrixLayout::row_major, MatrixLayout::col_major}) all.emplace_back(a, b);
  return all;
}

class EveryRung : public GpuTest, public testing::WithParamInterface<size_t> {};

TEST_P(EveryRung, IsRightOverOddShapes) {
  const Rung& rung = rungs()[GetParam()];
  if (const std::string reason = why_not_on(rung.arch, device_->sm); !reason.empty()) GTEST_SKIP() << reason;
  const OperandSpec whole{{256, 256, 256}, rung.types.front(), Out::f32,     MatrixLayout::row_major,
                          rung.layout_b,   ld_align,           Init::normal, 1};
  if (const std::string reason = rung.refuses(whole.problem(1.0F, 0.0F)); reason.starts_with("needs CUTLASS"))
    GTEST_SKIP() << reason;
  size_t checked = 0, turn = 0;
  uint64_t seed = 100;
  const std::vector<Shape> shapes =
      parse_shapes(formatted("{}/tests/shapes/{}.txt", GEMM_LADDER_SOURCE, device_->simulated ? "small" : "odd"));
  for (const Shape& shape : shapes)
    for (const auto& [layout_a, layout_b] : layouts(rung))
      for (const auto& [type, out] : types(rung))
        for (const auto& [c, scales] : scaled(cases(rung), rung)) {
          if (device_->simulated && turn++ % 4 != 0) continue;
          const int share = facts(type).per_byte;  // so many elements have a byte: K is a multiple of them
          const Shape whole_bytes{shape.m, shape.n, ceil_div(shape.k, share) * share};
          const OperandSpec spec{whole_bytes, type, out, layout_a, layout_b, c.ld_pad, c.init, ++seed, scales};
          const bool aligned = operand_bytes(type, spec.lda()) % rung.row_align_bytes == 0 &&
                               operand_bytes(type, spec.ldb()) % rung.row_align_bytes == 0 &&
                               (spec.ldc() * result_bytes(type, out)) % rung.row_align_bytes == 0;
          if (!aligned || !rung.refuses(spec.problem(c.alpha, c.beta)).empty()) continue;
          Operands operands(spec, 1);
          Checker checker(operands, c.alpha, c.beta, CheckMode::full, blas_.get(), nullptr);
          const Workspace workspace(rung.resources(spec.problem(c.alpha, c.beta)));
          const CheckResult result = checker.check(rung.launch, workspace, sum_on(rung, type, device_->sm, scales));
          EXPECT_TRUE(result.passed) << formatted("{} {}{} {} {} {} ld_pad {} alpha {} beta {} {} scales {}: {}",
                                                  rung.stem(), layout_a == MatrixLayout::row_major ? 'n' : 't',
                                                  layout_b == MatrixLayout::row_major ? 'n' : 't', name(type),
                                                  name(out), whole_bytes.str(), c.ld_pad, c.alpha, c.beta, name(c.init),
                                                  name(scales), result.message);
          ++checked;
        }
  EXPECT_GE(checked, device_->simulated ? shapes.size() : 40 * 6) << "too few cases were within the rung's alignment";
}

/// Every epilogue that it does not refuse.
TEST_P(EveryRung, AppliesEpilogues) {
  const Rung& rung = rungs()[GetParam()];
  if (!rung.epilogues) GTEST_SKIP() << "has no epilogues";
  if (const std::string reason = why_not_on(rung.arch, device_->sm); !reason.empty()) GTEST_SKIP() << reason;
  size_t checked = 0;
  uint64_t seed = 300;
  const std::vector<Shape> shapes =
      device_->simulated ? std::vector<Shape>{{1, 7, 5}, {131, 200, 136}, {67, 400, 72}}
                         : std::vector<Shape>{{1, 7, 5}, {131, 200, 136}, {1031, 1040, 520}, {300, 2056, 1000}};
  for (const bool bias : {false, true})
    for (const Activation activation : {Activation::none, Activation::gelu, Activation::silu})
      for (const bool gate : {false, true})
        for (const bool quantise : {false, true})
          for (const auto& [type, out] : types(rung))
            for (const Shape& shape : shapes) {
              OperandSpec spec{shape,         type,     out,          MatrixLayout::row_major,
                               rung.layout_b, ld_align, Init::normal, ++seed};
              spec.epilogue = {bias, activation, gate, quantise};
              const float beta = quantise || shape.m == 1 ? 0.0F : -0.5F;
              if (!rung.refuses(spec.problem(1.25F, beta)).empty()) continue;
              Operands operands(spec, 1);
              Checker checker(operands, 1.25F, beta, CheckMode::full, blas_.get(), nullptr);
              const CheckResult result = checker.check(rung.launch, Workspace(), sum_on(rung, type, device_->sm));
              EXPECT_TRUE(result.passed) << formatted("{} {} {} {} {}: {}", rung.stem(), name(spec.epilogue),
                                                      name(type), name(out), shape.str(), result.message);
              ++checked;
            }
  EXPECT_GE(checked, shapes.size() * types(rung).size() * 2) << "too few epilogues";
}

/// C after each of `launches` launches.
std::vector<std::vector<char>> results(const Rung& rung, const OperandSpec& spec, int launches) {
  Operands operands(spec, 1);
  const Workspace workspace(rung.resources(spec.problem(1.0F, 0.0F)));
  const Problem p = workspace.lend(operands.problem(0, 1.0F, 0.0F, nullptr));
  std::vector<std::vector<char>> found;
  for (int i = 0; i < launches; ++i) {
    operands.fill_c(0, true, nullptr);
    rung.launch(p);
    found.emplace_back(static_cast<size_t>(p.m) * p.ldc * sizeof(float));
    cuda_check(cudaMemcpy(found.back().data(), p.c, found.back().size(), cudaMemcpyDeviceToHost));
  }
  return found;
}

TEST_P(EveryRung, GivesTheSameBitsEveryTime) {
  const Rung& rung = rungs()[GetParam()];
  if (const std::string reason = why_not_on(rung.arch, device_->sm); !reason.empty()) GTEST_SKIP() << reason;
  if (rung.resources({.m = 256, .n = 256, .k = 256, .type = rung.types.front()}).kernel == nullptr)
    GTEST_SKIP() << "not built here";
  const auto spec_of = [&](const Shape& shape) {
    return OperandSpec{shape,    rung.types.front(), Out::f32, MatrixLayout::row_major, rung.layout_b,
                       ld_align, Init::normal,       5,        rung.scales.front()};
  };
  // Few tiles and a long K, which is where blocks share a tile; and the first of some shapes for which they wait for one another.
  // In the simulator's two, of 36 and of 37, blocks compute whole tiles, too, and K is short.
  std::vector<Shape> shapes = {{136, 264, 2056}};
  std::vector<Shape> waiting = {{900, 1016, 712}, {1152, 1408, 136}, {1024, 2176, 1160}};
  if (device_->simulated) waiting.insert(waiting.begin(), {{1800, 2088, 72}, {2160, 72, 392}});
  for (const Shape& shape : waiting)
    if (shapes.size() == 1 && rung.resources(spec_of(shape).problem(1.0F, 0.0F)).locks > 0) shapes.push_back(shape);
  for (const Shape& shape : shapes) {
    const OperandSpec spec = spec_of(shape);
    const std::vector<std::vector<char>> all = results(rung, spec, device_->simulated ? 2 : 20);
    for (size_t i = 1; i < all.size(); ++i) EXPECT_TRUE(all[i] == all[0]) << shape.str() << ", launch " << i + 1;
  }
}

TEST_P(EveryRung, StatesWhatItTakes) {
  const Rung& rung = rungs()[GetParam()];
  for (const Type type : rung.types) {
    const Resources resources = rung.resources({.m = 256, .n = 256, .k = 256, .type = type});
    EXPECT_GT(resources.threads, 0);
    EXPECT_EQ(resources.threads % 32, 0);
    EXPECT_GT(resources.tile.m * resources.tile.n * resources.tile.k, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, EveryRung, testing::Range<size_t>(0, rungs().size()),
                         [](const auto& info) { return rungs()[info.param].stem(); });

/// Places of the rungs that have several plans.
std::vector<size_t> with_plans() {
  std::vector<size_t> found;
  for (size_t i = 0; i < rungs().size(); ++i)
    if (rungs()[i].plans) found.push_back(i);
  return found;
}

class EveryPlan : public GpuTest, public testing::WithParamInterface<size_t> {};

// The tests above launch one plan per problem. The others are for --tune and --plans, which check what they chose, and for other cards.
TEST_P(EveryPlan, IsRightOverAFewShapes) {
  const Rung& rung = rungs()[GetParam()];
  if (const std::string reason = why_not_on(rung.arch, device_->sm); !reason.empty()) GTEST_SKIP() << reason;
  struct Few {
    Type type;
    Out out;
    float alpha, beta;
    std::vector<Shape> shapes;
  };
  // Less than a tile, a few tiles, several clusters, a K for splits, and for the smaller tiles several of them per block.
  std::vector<Few> all = {{Type::bf16,
                           Out::same,
                           1.0F,
                           0.0F,
                           {{1, 1, 1}, {100, 136, 200}, {300, 520, 264}, {72, 200, 1032}, {1000, 1016, 72}}},
                          {Type::tf32, Out::f32, -1.5F, 0.5F, {{100, 136, 200}, {136, 72, 520}}},
                          {Type::f16, Out::f32, 0.75F, -1.0F, {{300, 200, 136}}},
                          {Type::e4m3, Out::same, 1.0F, 0.0F, {{1, 1, 1}, {300, 520, 264}, {72, 200, 2064}}},
                          {Type::e4m3, Out::f32, -1.5F, 0.5F, {{100, 136, 200}, {1000, 1016, 72}}},
                          {Type::e5m2, Out::same, 1.0F, 0.5F, {{1, 1, 1}, {300, 520, 264}, {72, 200, 2064}}}};
  // Of rungs that cut tiles of the last wave in parts: as many tiles as a wave has, and a few.
  if (std::any_of(rung.constants.begin(), rung.constants.end(), [](const Constants& group) {
        return std::any_of(group.values.begin(), group.values.end(),
                           [](const auto& value) { return std::string(value.first) == "part"; });
      }))
    all.push_back({Type::e4m3, Out::same, -1.5F, 0.5F, {{2304, 1527, 136}, {2170, 1024, 264}}});
  if (!device_->simulated)  // likewise for the larger ones
    for (Few& few : all) few.shapes.insert(few.shapes.end(), {{2000, 3000, 200}, {3001, 1999, 72}, {900, 1016, 712}});
  std::set<std::string> names, launched;
  uint64_t seed = 500;
  for (const auto& [type, out, alpha, beta, shapes] : all) {
    if (std::find(rung.types.begin(), rung.types.end(), type) == rung.types.end()) continue;
    for (const Shape& shape : shapes)
      for (const auto& [layout_a, layout_b] : layouts(rung)) {
        // Each of its scales over some of the shapes.
        const Scales scales = rung.scales[seed % rung.scales.size()];
        const OperandSpec spec{shape, type, out, layout_a, layout_b, ld_align, Init::normal, ++seed, scales};
        Operands operands(spec, 1);
        Checker checker(operands, alpha, beta, CheckMode::full, blas_.get(), nullptr);
        const std::vector<Plan> plans = rung.plans(spec.problem(alpha, beta));
        EXPECT_TRUE(std::is_sorted(plans.begin(), plans.end(),
                                   [](const Plan& a, const Plan& b) { return a.microseconds < b.microseconds; }));
        for (const Plan& plan : plans) {
          const CheckResult result =
              checker.check(plan.launch, Workspace(plan.resources), sum_on(rung, type, device_->sm, scales));
          EXPECT_TRUE(result.passed) << formatted(
              "{} {}{} {} {} {} alpha {} beta {} scales {}, plan {}: {}", rung.stem(),
              layout_a == MatrixLayout::row_major ? 'n' : 't', layout_b == MatrixLayout::row_major ? 'n' : 't',
              name(type), name(out), shape.str(), alpha, beta, name(scales), plan.name, result.message);
          launched.insert(plan.name);
        }
      }
  }
  // What the rung states of each plan, a group of constants: no plan may have been left out for all shapes.
  for (const Constants& group : rung.constants)
    if (group.of != "cost") names.insert(group.of);
  EXPECT_EQ(launched, names);
}

INSTANTIATE_TEST_SUITE_P(Ladder, EveryPlan, testing::ValuesIn(with_plans()),
                         [](const auto& info) { return rungs()[info.param].stem(); });

}  // namespace
}  // namespace ladder
