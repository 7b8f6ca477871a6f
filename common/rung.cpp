#include "common/rung.h"

#include <algorithm>
#include <string_view>

namespace ladder {
namespace {

std::vector<Rung>& registry() {
  static std::vector<Rung> all;  // constructed at the first registration, whatever the order of translation units
  return all;
}

}  // namespace

Registration::Registration(Rung rung) {
  std::vector<Rung>& all = registry();
  const auto before = [](const Rung& a, const Rung& b) { return std::string_view(a.number) < b.number; };
  all.insert(std::upper_bound(all.begin(), all.end(), rung, before), std::move(rung));
}

const std::vector<Rung>& rungs() { return registry(); }

}  // namespace ladder
