// Tables of the names of types and special registers; look-ups in a module.
#include "ptx/names.h"

#include <iterator>

namespace sim::ptx {
namespace {

struct TypeName {
  std::string_view name;
  uint32_t bytes;
};

// In the order of enum Type.
constexpr TypeName types[] = {
    {"", 0},    {"pred", 0}, {"b8", 1},    {"b16", 2},  {"b32", 4},    {"b64", 8}, {"b128", 16},
    {"u8", 1},  {"u16", 2},  {"u32", 4},   {"u64", 8},  {"s8", 1},     {"s16", 2}, {"s32", 4},
    {"s64", 8}, {"f16", 2},  {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4}, {"f32", 4}, {"f64", 8},
};
static_assert(std::size(types) == static_cast<size_t>(Type::f64) + 1, "one name for each type");

// In the order of enum Special.
// clang-format off
constexpr std::string_view specials[] = {
    "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
    "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
    "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "WARP_SZ",
    "%clusterid.x", "%clusterid.y", "%clusterid.z", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z",
    "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z",
    "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z",
    "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster",
    "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
    "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
    "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap", "%reserved_smem_offset_0",
    "%reserved_smem_offset_1", "%current_graph_exec",
    "%envreg0", "%envreg1", "%envreg2", "%envreg3", "%envreg4", "%envreg5", "%envreg6", "%envreg7",
    "%envreg8", "%envreg9", "%envreg10", "%envreg11", "%envreg12", "%envreg13", "%envreg14", "%envreg15",
    "%envreg16", "%envreg17", "%envreg18", "%envreg19", "%envreg20", "%envreg21", "%envreg22", "%envreg23",
    "%envreg24", "%envreg25", "%envreg26", "%envreg27", "%envreg28", "%envreg29", "%envreg30", "%envreg31",
};
// clang-format on
static_assert(std::size(specials) == static_cast<size_t>(Special::envreg31) + 1, "one name for each special register");

}  // namespace

uint32_t size_of(Type type) { return types[static_cast<size_t>(type)].bytes; }
std::string_view name_of(Type type) { return types[static_cast<size_t>(type)].name; }
std::string_view name_of(Special special) { return specials[static_cast<size_t>(special)]; }

std::optional<Type> type_named(std::string_view name) {
  for (size_t i = 1; i < std::size(types); ++i)
    if (types[i].name == name) return static_cast<Type>(i);
  return std::nullopt;
}

std::optional<Special> special_named(std::string_view name) {
  for (size_t i = 0; i < std::size(specials); ++i)
    if (specials[i] == name) return static_cast<Special>(i);
  return std::nullopt;
}

const Function* Module::find_function(std::string_view name) const {
  for (const Function& function : functions)
    if (function.name == name) return &function;
  return nullptr;
}

const Variable* Module::find_variable(std::string_view name) const {
  for (const Variable& variable : variables)
    if (variable.name == name) return &variable;
  return nullptr;
}

std::string Module::source_of(const Function& function, const Instruction& instruction) const {
  std::string text;
  for (int32_t i = instruction.location; i >= 0; i = function.locations[i].inlined_at) {
    const SourceLocation& location = function.locations[i];
    const auto file = files.find(location.file);
    const std::string path = file == files.end() ? "file " + std::to_string(location.file) : file->second;
    if (!text.empty()) text += ", inlined into ";
    text += path + ":" + std::to_string(location.line);
  }
  return text;
}

}  // namespace sim::ptx
