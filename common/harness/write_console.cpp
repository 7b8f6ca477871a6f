#include "common/harness/write_console.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "common/text.h"

namespace ladder {
namespace {

/// `member` of `part` by `format`; "-" where it is not known.
template <class Part, class Member>
std::string text(fmt::string_view format, const std::optional<Part>& part, Member member) {
  if (!part) return "-";
  const std::optional<double> value = (*part).*member;
  return value ? vformatted(format, fmt::make_format_args(*value)) : "-";
}

struct Heading {
  const char* name;
  int width;
};
const std::vector<Heading> simulated = {{"loaded", 10},    {"stored", 10},    {"wavefronts", 11},
                                        {"conflicts", 10}, {"instr/FMA", 10}, {"error/bound", 18}};
const std::vector<Heading> checked = {{"error", 11}, {"bound", 10}};
const std::vector<Heading> timed = {{"ms", 10},    {"GFLOP/s", 9}, {"x cuBLAS", 9},
                                    {"x best", 8}, {"ceiling", 8}, {"error/bound", 18}};

const std::vector<Heading>& headings(const Conditions& conditions) {
  return conditions.device.simulated ? simulated : conditions.options.check_only ? checked : timed;
}

/// What global loads and stores move, in whole sectors; wavefronts, and of them those beyond the fewest that could hold the
/// bytes; instructions per FMA.
std::vector<std::string> counts_text(const Result& result) {
  if (!result.counts) return std::vector<std::string>(5, "-");
  const CudaSimCounts& counts = *result.counts;
  const auto megabytes = [](uint64_t sectors) { return formatted("{:.4g} MB", static_cast<double>(sectors) * 32e-6); };
  const auto& [m, n, k] = result.cell.shape;
  const double fmas = static_cast<double>(m) * n * k;
  return {megabytes(counts.global_load_sectors), megabytes(counts.global_store_sectors),
          std::to_string(counts.shared_wavefronts), std::to_string(counts.shared_wavefronts - counts.shared_ideal),
          formatted("{:.2f}", static_cast<double>(counts.warp_instructions) * 32 / fmas)};
}

/// What the tensor cores of sm_100 did; it has a line of its own.
std::string tensor_text(const CudaSimCounts& counts) {
  const auto megabytes = [](uint64_t bytes) { return formatted("{:.4g} MB", static_cast<double>(bytes) * 1e-6); };
  return formatted("  {} tcgen05.mma read {} of shared memory; tensor memory: {} loaded, {} stored\n",
                   counts.tensor_products, megabytes(counts.tensor_operand_bytes), megabytes(counts.tensor_load_bytes),
                   megabytes(counts.tensor_store_bytes));
}

}  // namespace

Console::Console(const Conditions& conditions, const std::vector<Cell>& cells) : conditions_(conditions) {
  for (const Cell& cell : cells) name_width_ = std::max(name_width_, cell.rung->stem().size());
}

/// `fields`: name, type, shape, and one per heading.
std::string Console::line(const std::vector<std::string>& fields, const std::string& status) const {
  std::string text = formatted("{:{}} {:5} {:>18}", fields[0], name_width_, fields[1], fields[2]);
  const std::vector<Heading>& columns = headings(conditions_);
  for (size_t i = 0; i < columns.size(); ++i) text += formatted(" {:>{}}", fields[3 + i], columns[i].width);
  return text + "  " + status + "\n";
}

void Console::header() const {
  std::vector<std::string> fields = {"kernel", "type", "shape"};
  for (const Heading& heading : headings(conditions_)) fields.emplace_back(heading.name);
  print(stdout, "{}", line(fields, "status"));
}

void Console::row(const Result& r) const {
  const std::string error = text("{:.1e}", r.checked, &Checked::max_error);
  const std::string bound = text("{:.1e}", r.checked, &Checked::bound);
  std::vector<std::string> fields;
  if (conditions_.device.simulated) {
    fields = counts_text(r);
    fields.push_back(error + "/" + bound);
  } else if (conditions_.options.check_only) {
    fields = {error, bound};
  } else {
    fields = {text("{:.4f}", r.timing, &Timing::median_ms),
              text("{:.0f}", r.timing, &Timing::gflops),
              r.timing ? text("{:.3f}", r.timing->cublas, &Baseline::ratio) : "-",
              text("{:.3f}", r.timing, &Timing::ratio_best),
              text("{:.3f}", r.timing, &Timing::ceiling_fraction),
              error + "/" + bound};
  }
  fields.insert(fields.begin(), {r.cell.rung->stem(), name(r.cell.type), r.cell.shape.str()});
  std::string status = r.reason.empty() ? name(r.status) : formatted("{}: {}", name(r.status), r.reason);
  if (r.footprint && r.footprint->plan) status += formatted(", {}", *r.footprint->plan);
  print(stdout, "{}", line(fields, status));
  if (r.counts && r.counts->tensor_products) print(stdout, "{}", tensor_text(*r.counts));
  std::fflush(stdout);
}

void Console::progress(size_t done, size_t total, const Result& r) const {
  if (total < 2 || (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  print(stderr, "[{}/{}] {} {} {}{}; about {:.0f} s left\n", done, total, r.cell.rung->stem(), r.cell.shape.str(),
        name(r.status), r.timing ? formatted(" {:.0f} GFLOP/s", r.timing->gflops) : "",
        seconds / static_cast<double>(done) * static_cast<double>(total - done));
}

}  // namespace ladder
