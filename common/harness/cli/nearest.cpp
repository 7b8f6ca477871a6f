#include "common/harness/cli/nearest.h"

#include <algorithm>
#include <string_view>

#include "common/text.h"

namespace ladder {
namespace {

constexpr double alike = 0.6;

std::string_view without_dashes(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

/// The length of the longest common subsequence, one row at a time.
size_t shared_letters(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (const char letter : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = letter == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

/// 0 for words without a letter in common, 1 for the same word.
double likeness(std::string_view a, std::string_view b) {
  a = without_dashes(a);
  b = without_dashes(b);
  return 2.0 * double(shared_letters(a, b)) / double(std::max<size_t>(a.size() + b.size(), 1));
}

}  // namespace

std::string hint(const std::string& word, const std::vector<std::string>& candidates, const std::string& otherwise) {
  double most = 0;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : candidates) {
    const double like = likeness(word, candidate);
    if (like >= alike && like > most) {
      most = like;
      nearest = &candidate;
    }
  }
  return nearest ? formatted("; the nearest is {}", *nearest) : otherwise;
}

}  // namespace ladder
