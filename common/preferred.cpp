#include "common/preferred.h"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>

namespace ladder {
namespace {

using Key = std::tuple<std::string, int, int, int, Type, Out, int, int, int>;

Key key(const std::string& rung, const Problem& p) { return {rung, p.m, p.n, p.k, p.type, p.out, p.lda, p.ldb, p.ldc}; }

std::shared_mutex mutex;

std::map<Key, std::string>& plans() {
  static std::map<Key, std::string> plans;
  return plans;
}

}  // namespace

void prefer(const std::string& rung, const Problem& p, const std::string& plan) {
  const std::unique_lock lock(mutex);
  plans()[key(rung, p)] = plan;
}

std::string preferred(const std::string& rung, const Problem& p) {
  const std::shared_lock lock(mutex);
  const auto found = plans().find(key(rung, p));
  return found == plans().end() ? "" : found->second;
}

std::string in_layout(const std::string& rung, const Problem& p) {
  return rung + (p.layout_a == MatrixLayout::row_major ? " n" : " t") +
         (p.layout_b == MatrixLayout::row_major ? "n" : "t");
}

}  // namespace ladder
