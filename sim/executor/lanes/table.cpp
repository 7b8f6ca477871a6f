#include "executor/lanes/table.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace sim {
namespace {

const LaneTable& table() {
  static const LaneTable table = [] {
    LaneTable t;
    for (const auto add_section :
         {add_integer, add_extended, add_floating_point, add_half, add_comparison, add_logic, add_move, add_conversion})
      add_section(t);
    return t;
  }();
  return table;
}

}  // namespace

void LaneTable::add(std::initializer_list<std::string_view> name, const LaneInstruction& instruction) {
  std::string whole;
  for (const std::string_view part : name) whole += part;
  if (!instructions_.emplace(whole, instruction).second)
    throw std::logic_error(whole + " is twice in the table of arithmetic instructions");
}

namespace {

template <class T>
void merge(std::byte* d, const std::byte* values, Mask mask) {
  T* const to = reinterpret_cast<T*>(d);
  const T* const from = reinterpret_cast<const T*>(values);
#pragma GCC ivdep
  for (int l = 0; l < warp_size; ++l) to[l] = mask >> l & 1 ? from[l] : to[l];
}

}  // namespace

void merge(std::byte* d, const std::byte* values, size_t bytes, Mask mask) {
  if (bytes == 4) return merge<uint32_t>(d, values, mask);
  if (bytes == 8) return merge<uint64_t>(d, values, mask);
  for (int l = 0; l < warp_size; ++l)
    if (mask >> l & 1) std::memcpy(d + l * bytes, values + l * bytes, bytes);
}

const LaneInstruction* find_lane_instruction(const std::string& mnemonic) {
  const auto found = table().all().find(mnemonic);
  return found == table().all().end() ? nullptr : &found->second;
}

std::vector<std::string> lane_instructions() {
  std::vector<std::string> names;
  for (const auto& [name, instruction] : table().all()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sim
