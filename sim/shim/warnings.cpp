#include "shim/warnings.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "executor/executor.h"
#include "text.h"

namespace sim {
namespace {

/// By kernel, place and check. Never destroyed: it is written when all else is gone.
std::map<std::tuple<std::string, std::string, Check>, uint64_t>& gathered() {
  static auto* const times = new std::map<std::tuple<std::string, std::string, Check>, uint64_t>;
  return *times;
}
uint64_t errors = 0;

std::string number_of(uint64_t n, const char* what) { return formatted("{} {}{}", n, what, n == 1 ? "" : "s"); }

void print_sums() {
  std::fflush(stdout);
  print(stderr, "simulator: {}, {}\n", number_of(gathered().size(), "warning"), number_of(errors, "error"));
  for (const auto& [key, times] : gathered()) {
    const auto& [kernel, place, check] = key;
    print(stderr, "  {} at {}: {}\n", name(check), place, number_of(times, "time"));
  }
}

[[noreturn]] void refuse(const char* variable, const std::string& why) {
  print(stderr, "simulator: {}: {}\n", variable, why);
  std::exit(2);
}

}  // namespace

const Checks& checks() {
  static const Checks read = [] {
    constexpr const char* variable = "GEMM_LADDER_SIM_CHECKS";
    Checks checks;
    const char* const list = std::getenv(variable);
    if (!list || !*list) return checks;
    if (const std::string wrong = checks.change(list); !wrong.empty()) refuse(variable, wrong);
    return checks;
  }();
  return read;
}

uint64_t instruction_limit() {
  static const uint64_t read = [] {
    constexpr const char* variable = "GEMM_LADDER_SIM_LIMIT";
    const char* const text = std::getenv(variable);
    if (!text || !*text) return default_limit;
    char* end;
    errno = 0;
    const uint64_t limit = std::strtoull(text, &end, 10);
    if (*end || *text == '-' || errno) refuse(variable, formatted("'{}' is no whole number", text));
    return limit ? limit : UINT64_MAX;
  }();
  return read;
}

void add_warnings(const std::string& kernel, const Warnings& warnings) {
  if (warnings.found().empty()) return;
  if (gathered().empty()) std::atexit(print_sums);
  std::fflush(stdout);
  for (const auto& [key, warning] : warnings.found()) {
    uint64_t& times = gathered()[{kernel, warning.place, key.second}];
    if (!times) print(stderr, "simulator: warning: {} [{}]\n", warning.text, name(key.second));
    times += warning.times;
  }
}

void count_error() { ++errors; }

}  // namespace sim
