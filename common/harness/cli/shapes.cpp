#include "common/harness/cli/shapes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/harness/cli/nearest.h"
#include "common/harness/error.h"
#include "common/text.h"

namespace ladder {
namespace {

constexpr long long max_size = 2'000'000'000;  // leaves room above for tile arithmetic in int

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// "4096x4096x4096" or "4096 4096 4096".
Shape parse_shape(const std::string& text) {
  std::string words = text;
  std::replace(words.begin(), words.end(), 'x', ' ');
  std::stringstream stream(words);
  std::vector<std::string> sizes;
  for (std::string size; stream >> size;) sizes.push_back(size);
  if (sizes.size() != 3) throw UsageError(formatted("a shape is MxNxK, got '{}'", text));
  return {parse_size(sizes[0], "M"), parse_size(sizes[1], "N"), parse_size(sizes[2], "K")};
}

std::vector<Shape> read_shapes_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError(formatted("--shapes: cannot read '{}'", path));
  std::vector<Shape> shapes;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      shapes.push_back(parse_shape(line));
    } catch (const UsageError& error) {
      throw UsageError(formatted("{}:{}: {}", path, number, error.what()));
    }
  }
  if (shapes.empty()) throw UsageError(formatted("--shapes: '{}' holds no shape", path));
  return shapes;
}

}  // namespace

std::string Shape::str() const { return formatted("{}x{}x{}", m, n, k); }

int parse_size(const std::string& text, const std::string& name) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > max_size)
    throw UsageError(formatted("{} must be a whole number from 1 to {}, got '{}'", name, max_size, text));
  return static_cast<int>(value);
}

std::vector<Shape> parse_shapes(const std::string& text) {
  std::vector<std::string> family_names;
  for (const ShapeFamily& family : shape_families()) family_names.push_back(family.name);

  std::vector<Shape> shapes;
  for (const std::string& part : split(text, ',')) {
    std::vector<Shape> more;
    const auto family = std::find(family_names.begin(), family_names.end(), part);
    if (family != family_names.end())
      more = shape_families()[family - family_names.begin()].shapes;
    else if (std::filesystem::is_regular_file(part))
      more = read_shapes_file(part);
    else if (!part.empty() && part.find_first_not_of("0123456789xXeE+-.") == std::string::npos)
      more = {parse_shape(part)};
    else
      throw UsageError(formatted("--shapes takes MxNxK, a family ({}) or a file, got '{}'{}",
                                 joined(family_names, ", "), part, hint(part, family_names)));
    for (const Shape& shape : more)
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  if (shapes.empty()) throw UsageError("--shapes takes MxNxK, a family or a file, got nothing");
  return shapes;
}

}  // namespace ladder
