// Problem sizes: from the command line, from a family, from a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ladder {

struct Shape {
  int m, n, k;
  bool operator==(const Shape&) const = default;
  std::string str() const;  ///< "4096x4096x4096"
};

/// One size: a whole number from 1 to 2,000,000,000. `name` is what an error calls it ("M"). Throws UsageError.
int parse_size(const std::string& text, const std::string& name);

/// A named set of shapes for --shapes.
struct ShapeFamily {
  std::string name;
  std::vector<Shape> shapes;
};

/// Defined in shape_families.cpp, which holds their sizes.
const std::vector<ShapeFamily>& shape_families();

/// "4096x4096x4096,square,shapes.txt": shapes, families and files, in any mix and order,
/// each shape once. A file holds one shape per line, "M N K" or "MxNxK"; blank lines and what follows # are skipped.
/// Throws UsageError, which names the file and line, or what it takes.
std::vector<Shape> parse_shapes(const std::string& text);

}  // namespace ladder
