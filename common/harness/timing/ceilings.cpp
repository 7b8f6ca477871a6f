#include "common/harness/timing/ceilings.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "common/harness/csv.h"
#include "common/harness/error.h"
#include "common/types.h"

namespace ladder {
namespace {

const Ceiling* find(const std::vector<Ceiling>& ceilings, const std::string& name) {
  const auto found = std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceiling& c) { return c.name == name; });
  return found == ceilings.end() ? nullptr : &*found;
}

}  // namespace

std::string ceiling_name(MathInstruction instruction, Type type) {
  switch (instruction) {
    case MathInstruction::ffma:
      return "fp32_fma";  // whatever the operands are: sums are FP32
    case MathInstruction::mma_sync:
      return "mma_" + name(type);
    case MathInstruction::wgmma:
      return "wgmma_" + name(type);
    case MathInstruction::tcgen05:
      return "tcgen05_" + name(type);
  }
  throw std::logic_error("no such instruction");
}

std::vector<std::string> ceiling_columns() { return {"name", "value", "unit", "gpu", "utc", "commit"}; }

std::vector<Ceiling> read_ceilings(const std::string& path, const Device& device,
                                   const std::vector<std::string>& wanted) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw UsageError("--ceilings: cannot read '" + path + "'");
  std::vector<Ceiling> ceilings;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = split_csv_line(line);
    if (fields.size() != ceiling_columns().size())
      throw UsageError("--ceilings: '" + path + "' is no table of ceilings: " + line);
    if (fields[3] != device.name)
      throw UsageError("--ceilings: '" + path + "' is of " + fields[3] + ", this is " + device.name);
    char* end = nullptr;
    const double value = std::strtod(fields[1].c_str(), &end);
    if (*end != '\0' || !(value > 0.0))
      throw UsageError("--ceilings: '" + path + "' has no positive number here: " + line);
    ceilings.push_back({fields[0], value, fields[2]});
  }
  std::vector<std::string> needed = wanted;
  needed.push_back("dram");
  for (const std::string& name : needed)
    if (!find(ceilings, name) && !name.starts_with("wgmma_") && !name.starts_with("tcgen05_"))
      throw UsageError("--ceilings: '" + path + "' lacks " + name +
                       "; measure them again with build/bin/ceilings --csv");
  return ceilings;
}

std::optional<Floor> time_floor(const std::vector<Ceiling>& ceilings, MathInstruction instruction, const Problem& p,
                                double matrices_b) {
  const double m = p.m, n = p.n, k = p.k;
  const double products_of = p.epilogue.gate ? 2.0 : 1.0;
  const double flops = products_of * 2.0 * m * n * k;
  const double c_bytes = p.epilogue.quantise ? 1.0 + 4.0 / 128 : result_bytes(p.type, p.out);
  const double bytes = (m * k + products_of * matrices_b * k * n) * facts(p.type).bytes / facts(p.type).per_byte +
                       m * n * c_bytes * (p.beta == 0.0F ? 1.0 : 2.0);
  const Ceiling *products = find(ceilings, ceiling_name(instruction, p.type)), *dram = find(ceilings, "dram");
  if (!products || !dram) return std::nullopt;
  const Floor compute{flops / products->value * 1e-6, products->name};
  const Floor memory{bytes / dram->value * 1e-6, dram->name};
  return compute.ms >= memory.ms ? compute : memory;
}

}  // namespace ladder
