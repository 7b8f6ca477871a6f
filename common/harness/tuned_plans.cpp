#include "common/harness/tuned_plans.h"

#include <algorithm>
#include <charconv>

#include "common/harness/cli/options.h"
#include "common/harness/error.h"
#include "common/preferred.h"
#include "common/text.h"
#include "common/types.h"

namespace ladder {
namespace {

const std::vector<std::string> columns = {"gpu", "rung", "type", "out",          "m",         "n",  "k", "lda",
                                          "ldb", "ldc",  "plan", "microseconds", "predicted", "utc"};
constexpr size_t sizes_from = 4, plan = 10, microseconds = 11, utc = 13;

/// A whole field as a number. Throws UsageError where it is none.
template <class T>
T number(const std::string& path, const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(formatted("--plans: '{}' has '{}' where a number should be", path, text));
  return value;
}

/// The one of this name. Throws UsageError where there is none.
template <class T, size_t N>
T named(const std::string& path, const std::string& text, const T (&all)[N]) {
  const auto found = std::find_if(std::begin(all), std::end(all), [&](T one) { return name(one) == text; });
  if (found == std::end(all)) throw UsageError(formatted("--plans: '{}' has '{}' where a type should be", path, text));
  return *found;
}

/// Prefers the fastest plan of each problem, of those that were timed together last.
void prefer_fastest(const std::string& path, const std::vector<std::vector<std::string>>& rows) {
  constexpr Out outs[] = {Out::f32, Out::same};
  std::map<std::vector<std::string>, const std::vector<std::string>*> fastest;  // by all columns before the plan's
  for (const std::vector<std::string>& row : rows) {
    const std::vector<std::string>*& best = fastest[{row.begin(), row.begin() + plan}];
    const double time = number<double>(path, row[microseconds]);
    if (!best || (*best)[utc] != row[utc] || time < number<double>(path, (*best)[microseconds])) best = &row;
  }
  for (const auto& [key, row] : fastest) {
    Problem p;
    p.type = named(path, key[2], AllTypes::list), p.out = named(path, key[3], outs);
    int* const sizes[] = {&p.m, &p.n, &p.k, &p.lda, &p.ldb, &p.ldc};
    for (size_t i = 0; i < std::size(sizes); ++i) *sizes[i] = number<int>(path, key[sizes_from + i]);
    prefer(key[1], p, (*row)[plan]);
  }
}

}  // namespace

TunedPlans::TunedPlans(const std::string& path, const Device& device) : gpu_(device.name), file_(path, columns) {
  std::vector<std::vector<std::string>> rows = file_.rows();
  std::erase_if(rows, [&](const std::vector<std::string>& row) { return row[0] != gpu_; });
  prefer_fastest(path, rows);
}

void TunedPlans::add(const Rung& rung, const Problem& p, const std::vector<Plan>& plans,
                     const std::vector<double>& times) {
  const std::string now = utc_now(), number = rung.any_layout ? in_layout(rung.number, p) : rung.number;
  for (size_t i = 0; i < plans.size(); ++i) {
    std::vector<std::string> row = {gpu_, number, name(p.type), name(p.out)};
    for (const int size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) row.push_back(std::to_string(size));
    row.insert(row.end(),
               {plans[i].name, formatted("{:.4g}", times[i]), formatted("{:.4g}", plans[i].microseconds), now});
    file_.append(row);
  }
  const size_t best = std::min_element(times.begin(), times.end()) - times.begin();
  prefer(number, p, plans[best].name);
}

}  // namespace ladder
