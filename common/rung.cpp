#include "common/rung.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace ladder {
namespace {

std::vector<Rung>& registry() {
  static std::vector<Rung> all;  // constructed at the first registration, whatever the order of translation units
  return all;
}

}  // namespace

const char* name(MathInstruction instruction) {
  switch (instruction) {
    case MathInstruction::ffma:
      return "FFMA";
    case MathInstruction::mma_sync:
      return "mma.sync";
    case MathInstruction::wgmma:
      return "wgmma";
    case MathInstruction::tcgen05:
      return "tcgen05.mma";
  }
  throw std::logic_error("no such instruction");
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::step:
      return "step";
    case Kind::variant:
      return "variant";
    case Kind::counter_example:
      return "counter-example";
    case Kind::fp32_form:
      return "FP32 form";
  }
  throw std::logic_error("no such kind");
}

Registration::Registration(Rung rung, const char* variant, std::source_location where) {
  if (variant) rung.name = variant;
  rung.source = where.file_name();
  std::vector<Rung>& all = registry();
  const auto before = [](const Rung& a, const Rung& b) { return std::string_view(a.number) < b.number; };
  all.insert(std::upper_bound(all.begin(), all.end(), rung, before), std::move(rung));
}

const std::vector<Rung>& rungs() { return registry(); }

Arch parse_arch(const std::string& text) {
  Arch arch{};
  const char* const end = text.data() + text.size();
  const auto number = text.starts_with("sm_") ? std::from_chars(text.data() + 3, end, arch.sm)
                                              : std::from_chars_result{end, std::errc::invalid_argument};
  arch.exact = std::string_view(number.ptr, end) == "a";
  if (number.ec != std::errc() || (!arch.exact && number.ptr != end))
    throw std::invalid_argument("'" + text + "' is no architecture such as sm_80 or sm_90a");
  return arch;
}

std::string why_not_on(const std::string& arch, int sm) {
  const Arch needed = parse_arch(arch);
  if (needed.exact ? sm == needed.sm : sm >= needed.sm) return "";
  return std::string(needed.exact ? "needs exactly " : "needs ") + arch + ", this is sm_" + std::to_string(sm);
}

}  // namespace ladder
