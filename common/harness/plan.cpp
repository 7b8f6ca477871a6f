#include "common/harness/plan.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "common/harness/cli/options.h"

namespace ladder {
namespace {

using Group = std::vector<Cell>;  // cells that share operands

std::vector<Group> groups(const Options& options) {
  std::vector<Group> all;
  for (const Shape& shape : options.shapes) {
    Group cells;
    for (const Rung* rung : options.rungs) cells.push_back({rung, options.type.value_or(rung->types.front()), shape});
    const auto operands = [](const Cell& cell) { return std::tuple(cell.type, cell.rung->layout_b); };
    std::stable_sort(cells.begin(), cells.end(),
                     [&](const Cell& x, const Cell& y) { return operands(x) < operands(y); });
    for (const Cell& cell : cells) {
      if (&cell == &cells.front() || operands(cell) != operands(all.back().back())) all.emplace_back();
      all.back().push_back(cell);
    }
  }
  return all;
}

}  // namespace

std::vector<Cell> plan(const Options& options) {
  const std::vector<Group> asked = groups(options);
  std::vector<Cell> cells;
  const int last = options.until_sitting > 0 ? options.until_sitting : options.sittings;
  for (int sitting = 1; sitting <= last; ++sitting) {
    std::vector<Group> order = asked;
    if (options.sittings > 1) {
      std::mt19937 random(sitting);
      std::shuffle(order.begin(), order.end(), random);
      for (Group& group : order) std::shuffle(group.begin(), group.end(), random);
    }
    for (const Group& group : order)
      for (Cell cell : group) {
        cell.sitting = sitting;
        cells.push_back(cell);
      }
  }
  return cells;
}

}  // namespace ladder
