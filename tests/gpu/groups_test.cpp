// Every rung that takes groups: of no rows, of one, of as many as a tile has and one more or less; all distributions, several factors. No
// result is stored twice.
#include <utility>

#include "common/harness/check/check.h"
#include "common/harness/cli/options.h"
#include "common/harness/simulator.h"
#include "common/text.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

struct Groups {
  Shape shape;
  int groups;
  GroupRows rows;
};

class Grouped : public GpuTest, public testing::WithParamInterface<Groups> {};

TEST_P(Grouped, AreRight) {
  const auto& [shape, groups, rows] = GetParam();
  uint64_t seed = 1;
  for (const Rung& rung : rungs()) {
    if (!rung.grouped || !why_not_on(rung.arch, device_->sm).empty()) continue;
    for (const Type type : rung.types)
      for (const Out out : {Out::same, Out::f32})
        for (const auto& [alpha, beta] : {std::pair(1.0F, 0.0F), std::pair(-1.5F, 0.5F)}) {
          const OperandSpec spec{.shape = shape,
                                 .type = type,
                                 .out = out,
                                 .layout_a = MatrixLayout::row_major,
                                 .layout_b = rung.layout_b,
                                 .ld_pad = ld_align,
                                 .init = Init::normal,
                                 .seed = ++seed,
                                 .scales = rung.scales.front(),
                                 .groups = groups,
                                 .group_rows = rows};
          if (!rung.refuses(spec.problem(alpha, beta)).empty()) continue;
          Operands operands(spec, 1);
          Checker checker(operands, alpha, beta, CheckMode::full, blas_.get(), nullptr);
          const Workspace workspace(rung.resources(spec.problem(alpha, beta)));
          uint64_t stored = static_cast<uint64_t>(shape.m) * shape.n * spec.c_bytes();
          const auto launch = [&](const Problem& p) {
            if (device_->simulated)
              stored = count_launches([&] { rung.launch(p); }).global_store_bytes;
            else
              rung.launch(p);
          };
          const CheckResult result = checker.check(launch, workspace, sum_on(rung, type, device_->sm, spec.scales));
          EXPECT_TRUE(result.passed) << formatted("{} {} {} {} groups {} {} alpha {} beta {}: {}", rung.stem(),
                                                  name(type), name(out), groups, name(rows), shape.str(), alpha, beta,
                                                  result.message);
          // Rows past a group's end may be right all the same, where the next group's tile is stored later. Each draw of a tile adds to a
          // counter of 4 bytes, and the last block clears it: fewer bytes than a part of a row.
          const uint64_t results = static_cast<uint64_t>(shape.m) * shape.n * spec.c_bytes();
          const uint64_t most_tiles = static_cast<uint64_t>(groups + shape.m / 32) * ceil_div(shape.n, 128);
          EXPECT_GE(stored, results) << rung.stem();
          EXPECT_LE(stored, results + (device_->simulated ? 4 * (most_tiles + 1) : 0)) << rung.stem();
        }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Grouped,
    testing::Values(Groups{{1, 24, 40}, 1, GroupRows::one}, Groups{{3, 136, 72}, 40, GroupRows::random},
                    Groups{{33, 40, 64}, 33, GroupRows::equal}, Groups{{257, 136, 200}, 5, GroupRows::one},
                    Groups{{256 * 3, 72, 64}, 3, GroupRows::equal}, Groups{{256 * 3 + 2, 72, 64}, 3, GroupRows::equal},
                    Groups{{32 * 4 - 2, 264, 136}, 4, GroupRows::equal}, Groups{{700, 136, 328}, 9, GroupRows::random},
                    Groups{{600, 1288, 72}, 40, GroupRows::random}));  // more tiles than SMs

}  // namespace
}  // namespace ladder
