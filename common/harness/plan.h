// Which cells a run consists of, and in which order.
#pragma once

#include <vector>

#include "common/harness/cli/shapes.h"
#include "common/rung.h"

namespace ladder {

struct Options;

/// One rung on one shape, in one sitting.
struct Cell {
  const Rung* rung;
  Type type;
  Shape shape;
  int sitting = 1;

  /// The same rung on the same shape, in whatever sitting.
  bool same_problem(const Cell& other) const {
    return rung == other.rung && type == other.type && shape == other.shape;
  }
};

/// All cells, sitting by sitting; within a sitting those that share operands (shape, type, layout of B) follow one another. A
/// single sitting has them as they were asked for; of several, each has its own random order of the groups and within them.
std::vector<Cell> plan(const Options& options);

}  // namespace ladder
