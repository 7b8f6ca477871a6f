// The checks by name, and what a finding of each one does: an error ends the launch, a warning is counted and the kernel
// goes on. --sim-checks and GEMM_LADDER_SIM_CHECKS change that:
//
//   race=warn,uninitialised=off     all=warn     all=error,warp-race=off
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace sim {

enum class Severity : uint8_t { off, warning, error };

/// Checks after whose findings a kernel can go on. All others are errors, always.
enum class Check : uint8_t {
  bounds,                ///< an access outside of every allocation, or of shared memory
  misaligned,            ///< an address that is no multiple of the access's size
  uninitialised,         ///< a read of shared memory that nobody in the block has written
  race,                  ///< of two warps, in shared memory
  same_value,            ///< such a race of two writes that write the same value
  warp_race,             ///< of two lanes of a warp, in shared memory: no __syncwarp between
  copy,                  ///< an access to what an asynchronous copy still reads or writes
  proxy,                 ///< no fence.proxy.async between a write and the asynchronous proxy's read, or for an mbarrier
  ended,                 ///< an access to the shared memory of a block that has ended
  shuffle,               ///< a value from a lane that does not take part
  member_mask,           ///< a lane that is not in its own member mask
  divergent,             ///< lanes of a warp that wait at different barriers of the block
  exited,                ///< a barrier of the block without the lanes of a warp that have exited
  global_uninitialised,  ///< a read of global memory that nobody has written
  read_only,             ///< ld.global.nc (__ldg) of memory that the same launch has written
  global_race,           ///< of two warps, in global memory
  tensor_fence,          ///< what the ISA asks of tcgen05 and a B200 forgives: its fences, lanes below 128
  phase,                 ///< an mbarrier has gone on by two phases before a warp looked, which waits by parity
  swizzle,               ///< a descriptor's swizzling mode is not that of the tensor copy which wrote the operand
};
constexpr int check_count = 19;

struct CheckName {
  Check check;
  const char* name;
  Severity severity;  ///< if not changed
};
constexpr std::array<CheckName, check_count> check_names = {{
    {Check::bounds, "bounds", Severity::error},
    {Check::misaligned, "misaligned", Severity::error},
    {Check::uninitialised, "uninitialised", Severity::warning},
    {Check::race, "race", Severity::error},
    {Check::same_value, "same-value", Severity::warning},
    {Check::warp_race, "warp-race", Severity::warning},
    {Check::copy, "copy", Severity::error},
    {Check::proxy, "proxy", Severity::warning},
    {Check::ended, "ended", Severity::warning},
    {Check::shuffle, "shuffle", Severity::error},
    {Check::member_mask, "member-mask", Severity::warning},
    {Check::divergent, "divergent", Severity::error},
    {Check::exited, "exited", Severity::off},
    {Check::global_uninitialised, "global-uninitialised", Severity::warning},
    {Check::read_only, "read-only", Severity::warning},
    {Check::global_race, "global-race", Severity::off},
    {Check::tensor_fence, "tcgen05", Severity::warning},
    {Check::phase, "phase", Severity::error},
    {Check::swizzle, "swizzle", Severity::error},
}};
constexpr const char* name(Check check) { return check_names[static_cast<size_t>(check)].name; }

/// What a finding of each check does.
class Checks {
 public:
  constexpr Checks() {
    for (const CheckName& one : check_names) severity_[static_cast<size_t>(one.check)] = one.severity;
  }
  constexpr Severity operator[](Check check) const { return severity_[static_cast<size_t>(check)]; }

  /// Changes what `list` names, the last word on a check counts. "" or, in one line, what is wrong with the list.
  std::string change(const std::string& list) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string item = list.substr(begin, end - begin);
      begin = end + 1;
      const size_t equals = std::min(item.find('='), item.size());
      const std::string check = item.substr(0, equals), value = item.substr(std::min(equals + 1, item.size()));
      Severity severity;
      if (value == "off")
        severity = Severity::off;
      else if (value == "warn")
        severity = Severity::warning;
      else if (value == "error")
        severity = Severity::error;
      else
        return "'" + item + "' is not CHECK=off, CHECK=warn or CHECK=error";
      bool known = false;
      for (const CheckName& one : check_names) {
        if (check != one.name && check != "all") continue;
        known = true;
        if (check == one.name || one.check != Check::global_race || severity == Severity::off)
          severity_[static_cast<size_t>(one.check)] = severity;
      }
      if (!known) return "there is no check '" + check + "'; there are all, " + names();
    }
    return "";
  }

  static std::string names() {
    std::string all;
    for (const CheckName& one : check_names) all += (all.empty() ? "" : ", ") + std::string(one.name);
    return all;
  }

 private:
  std::array<Severity, check_count> severity_{};
};

}  // namespace sim
