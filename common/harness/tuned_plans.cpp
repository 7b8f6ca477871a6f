#include "common/harness/tuned_plans.h"

#include <charconv>

#include "common/harness/cli/options.h"

#include "common/harness/error.h"
#include "common/preferred.h"
#include "common/text.h"
#include "common/types.h"

namespace ladder {
namespace {

const std::vector<std::string> columns = {"gpu", "rung", "type", "out",          "m",        "n", "k", "lda",
                                          "ldb", "ldc",  "plan", "microseconds", "predicted"};

/// Of the row's column; throws UsageError where it is no number.
int number(const std::string& path, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(formatted("--plans: '{}' has '{}' where a size should be", path, text));
  return value;
}

template <class T, size_t N>
T named(const std::string& path, const std::string& text, const T (&all)[N]) {
  for (const T one : all)
    if (name(one) == text) return one;
  throw UsageError(formatted("--plans: '{}' has '{}' where a type should be", path, text));
}

}  // namespace

TunedPlans::TunedPlans(const std::string& path, const Device& device) : gpu_(device.name), file_(path, columns) {
  constexpr Type types[] = {Type::f32, Type::tf32, Type::bf16, Type::f16};
  constexpr Out outs[] = {Out::f32, Out::same};
  for (const std::vector<std::string>& row : file_.rows()) {
    if (row[0] != gpu_) continue;
    Problem p;
    p.type = named(path, row[2], types), p.out = named(path, row[3], outs);
    int* const sizes[] = {&p.m, &p.n, &p.k, &p.lda, &p.ldb, &p.ldc};
    for (size_t i = 0; i < std::size(sizes); ++i) *sizes[i] = number(path, row[4 + i]);
    prefer(row[1], p, row[10]);
  }
}

void TunedPlans::add(const std::string& rung, const Problem& p, const std::string& plan, double microseconds,
                     double predicted) {
  std::vector<std::string> row = {gpu_, rung, name(p.type), name(p.out)};
  for (const int size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) row.push_back(std::to_string(size));
  row.insert(row.end(), {plan, formatted("{:.4g}", microseconds), formatted("{:.4g}", predicted)});
  file_.append(row);
  prefer(rung, p, plan);
}

}  // namespace ladder
