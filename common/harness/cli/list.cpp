#include "common/harness/cli/list.h"

#include <algorithm>
#include <source_location>

#include "common/harness/cli/shapes.h"
#include "common/harness/json.h"
#include "common/harness/timing/ceilings.h"
#include "common/text.h"
#include "common/types.h"

namespace ladder {
namespace {

/// Of a type whose sums are not FP32, with them: "f16 (FP16 sums)".
std::vector<std::string> type_names(const Rung& rung) {
  std::vector<std::string> names;
  for (const Type type : rung.types)
    names.push_back(rung.sum(type) == Sum::fp16 ? name(type) + " (FP16 sums)" : name(type));
  return names;
}

/// `path` relative to the project, where it lies inside. The compiler was given this file's path and a rung's alike.
std::string relative_to_project(const std::string& path) {
  const std::string here = std::source_location::current().file_name();
  const std::string root = here.substr(0, here.size() - std::string("common/harness/cli/list.cpp").size());
  return path.starts_with(root) ? path.substr(root.size()) : path;
}

std::string constants_json(const Constants& constants) {
  std::vector<std::string> values;
  for (const auto& [name, value] : constants.values) values.push_back(formatted("{}:{}", json_string(name), value));
  return formatted("{}:{{{}}}", json_string(constants.of), joined(values, ","));
}

std::string rung_json(const Rung& rung) {
  std::vector<std::string> types, ceilings, sums, constants;
  for (const Constants& group : rung.constants) constants.push_back(constants_json(group));
  for (const Type type : rung.types) {
    types.push_back(json_string(name(type)));
    ceilings.push_back(json_string(name(type)) + ":" + json_string(ceiling_name(rung.instruction, type)));
    sums.push_back(json_string(name(type)) + ":" + json_string(rung.sum(type) == Sum::fp16 ? "f16" : "f32"));
  }
  return formatted(
      R"({{"number":{},"name":{},"stem":{},"idea":{},"predecessor":{},"kind":{},"types":[{}],"arch":{},"instruction":{},"layout_b":{},)"
      R"("row_align_bytes":{},"plans":{},"sums":{{{}}},"ceilings":{{{}}},"constants":{{{}}},"source":{}}})",
      json_string(rung.number), json_string(rung.name), json_string(rung.stem()), json_string(rung.idea),
      json_string(rung.predecessor), json_string(name(rung.kind)), joined(types, ","), json_string(rung.arch),
      json_string(name(rung.instruction)),
      json_string(rung.layout_b == MatrixLayout::row_major ? "row_major" : "col_major"), rung.row_align_bytes,
      rung.explain ? "true" : "false", joined(sums, ","), joined(ceilings, ","), joined(constants, ","),
      json_string(relative_to_project(rung.source)));
}

std::string family_json(const ShapeFamily& family) {
  std::vector<std::string> shapes;
  for (const Shape& shape : family.shapes) shapes.push_back(formatted("[{},{},{}]", shape.m, shape.n, shape.k));
  return formatted("{}:[{}]", json_string(family.name), joined(shapes, ","));
}

}  // namespace

std::string list_text(const std::vector<const Rung*>& rungs) {
  size_t name_width = 4, idea_width = 4, types_width = 5;
  for (const Rung* rung : rungs) {
    name_width = std::max(name_width, std::string(rung->name).size());
    idea_width = std::max(idea_width, std::string(rung->idea).size());
    types_width = std::max(types_width, joined(type_names(*rung), " ").size());
  }
  const auto line = [&](const char* number, const char* name, const char* kind, const char* idea,
                        const std::string& types, const char* instruction, const char* arch) {
    return formatted("{:5} {:{}}  {:15}  {:{}}  {:{}}  {:11} {}\n", number, name, name_width, kind, idea, idea_width,
                     types, types_width, instruction, arch);
  };
  std::string text = line("rung", "name", "kind", "idea", "types", "instruction", "needs");
  for (const Rung* rung : rungs)
    text += line(rung->number, rung->name, name(rung->kind), rung->idea, joined(type_names(*rung), " "),
                 name(rung->instruction), rung->arch);
  return text;
}

std::string list_json(const std::vector<const Rung*>& rungs) {
  std::vector<std::string> types, families, lines;
  for (const Type type : AllTypes::list)
    types.push_back(formatted(R"({{"name":{},"bytes":{},"result_bytes":{{"f32":{},"same":{}}}}})",
                              json_string(name(type)), operand_bytes(type, 2) / 2.0, result_bytes(type, Out::f32),
                              result_bytes(type, Out::same)));
  for (const ShapeFamily& family : shape_families()) families.push_back(family_json(family));
  for (const Rung* rung : rungs) lines.push_back(rung_json(*rung));
  return formatted("{{\"types\":[{}],\n\"families\":{{{}}},\n\"rungs\":[\n{}\n]}}\n", joined(types, ","),
                   joined(families, ","), joined(lines, ",\n"));
}

}  // namespace ladder
