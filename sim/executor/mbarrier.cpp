#include "executor/mbarrier.h"

#include <algorithm>

#include "text.h"

namespace sim {

bool Mbarrier::advance() {
  if (pending || tx_count) return false;
  ++phase;
  pending = expected;
  arrived.resize(arriving.size());
  for (size_t i = 0; i < arriving.size(); ++i) arrived[i] = std::max(arrived[i], arriving[i]);
  arriving.clear();
  return true;
}

std::string Mbarrier::describe() const {
  std::string text = formatted("in phase {}, {} of {} arrivals pending", phase, pending, expected);
  if (tx_count > 0) text += formatted(", {} bytes missing", tx_count);
  if (tx_count < 0) text += formatted(", {} bytes more than it was told to expect", -tx_count);
  return text;
}

}  // namespace sim
