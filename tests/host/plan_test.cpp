#include "common/harness/plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "common/harness/cli/options.h"

namespace ladder {
namespace {

using testing::ElementsAre;

Options asked(const std::string& rungs_text, std::vector<Shape> shapes, int sittings = 1) {
  Options options;
  options.rungs = select_rungs(rungs_text, rungs());
  options.shapes = std::move(shapes);
  options.sittings = sittings;
  return options;
}

std::vector<std::string> texts(const std::vector<Cell>& cells) {
  std::vector<std::string> all;
  for (const Cell& cell : cells) all.push_back(std::string(cell.rung->number) + " " + cell.shape.str());
  return all;
}

TEST(Plan, GoesShapeByShapeAndKeepsSharedOperandsTogether) {
  EXPECT_THAT(texts(plan(asked("10,01,02", {{8, 8, 8}, {4, 4, 4}}))),
              ElementsAre("01 8x8x8", "02 8x8x8", "10 8x8x8", "01 4x4x4", "02 4x4x4", "10 4x4x4"));
}

TEST(Plan, TakesTheTypeAskedForOrEachRungsFirst) {
  Options options = asked("01,10", {{8, 8, 8}});
  EXPECT_EQ(plan(options)[0].type, Type::f32);
  EXPECT_EQ(plan(options)[1].type, Type::bf16);
  options.type = Type::tf32;
  for (const Cell& cell : plan(options)) EXPECT_EQ(cell.type, Type::tf32);
}

TEST(Plan, GivesEachSittingAnOrderOfItsOwnInUnbrokenGroups) {
  const Options options = asked("01-05,10,12", {{8, 8, 8}, {4, 4, 4}, {2, 2, 2}}, 3);
  const std::vector<Cell> cells = plan(options);
  const size_t each = cells.size() / 3;
  ASSERT_EQ(each, 3 * options.rungs.size());
  std::set<std::vector<std::string>> orders;
  for (size_t first = 0; first < cells.size(); first += each) {
    const std::vector<Cell> sitting(cells.begin() + first, cells.begin() + first + each);
    int changes = 0;
    for (size_t i = 0; i < each; ++i) {
      EXPECT_EQ(sitting[i].sitting, static_cast<int>(first / each) + 1);
      changes += i > 0 && (sitting[i].shape != sitting[i - 1].shape ||
                           sitting[i].rung->layout_b != sitting[i - 1].rung->layout_b);
    }
    EXPECT_EQ(changes, 3 * 2 - 1) << "a group is broken";
    std::vector<std::string> order = texts(sitting);
    orders.insert(order);
    std::vector<std::string> listed = texts(plan(asked("01-05,10,12", options.shapes)));
    std::sort(order.begin(), order.end());
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(order, listed) << "a sitting holds every cell once";
  }
  EXPECT_EQ(orders.size(), 3U);
  EXPECT_EQ(texts(cells), texts(plan(options))) << "the orders are the same in every run, so that --resume finds them";

  Options two = options;
  two.until_sitting = 2;
  const std::vector<std::string> all = texts(cells);
  EXPECT_EQ(texts(plan(two)), std::vector<std::string>(all.begin(), all.begin() + 2 * each)) << "the rest comes later";
}

}  // namespace
}  // namespace ladder
