// Named sets of shapes for --shapes.
#pragma once

#include <string>
#include <vector>

#include "common/harness/cli/shapes.h"

namespace ladder {

struct ShapeFamily {
  std::string name;
  std::vector<Shape> shapes;
};

const std::vector<ShapeFamily>& shape_families();

}  // namespace ladder
