#include "common/harness/write_csv.h"

#include <algorithm>
#include <functional>

#include "common/harness/error.h"
#include "common/harness/timing/nvml.h"
#include "common/scales.h"
#include "common/text.h"

namespace ladder {
namespace {

using C = Conditions;
using R = Result;

// How a value is written; what is not known stays empty.
std::string written(double value) { return formatted("{:.6g}", value); }
std::string written(int value) { return std::to_string(value); }
std::string written(size_t value) { return std::to_string(value); }
std::string written(const std::string& value) { return value; }
std::string written(const TileShape& tile) { return formatted("{}x{}x{}", tile.m, tile.n, tile.k); }
template <class T>
std::string written(const std::optional<T>& value) {
  return value ? written(*value) : "";
}

/// A member of `part`, where there is such a part.
template <class Part, class Member>
std::string of(const std::optional<Part>& part, Member member) {
  return part ? written(std::invoke(member, *part)) : "";
}
template <auto member>
std::string checked(const C&, const R& r) {
  return of(r.checked, member);
}
template <auto member>
std::string footprint(const C&, const R& r) {
  return of(r.footprint, member);
}
template <auto member>
std::string timing(const C&, const R& r) {
  return of(r.timing, member);
}
template <auto member>
std::string cublas(const C&, const R& r) {
  return r.timing ? of(r.timing->cublas, member) : "";
}
template <auto member>
std::string cublaslt(const C&, const R& r) {
  return r.timing ? of(r.timing->cublaslt, member) : "";
}
template <auto member>
std::string cutlass(const C&, const R& r) {
  return r.timing ? of(r.timing->cutlass, member) : "";
}
template <auto member>
std::string gpu_state(const C&, const R& r) {
  return r.timing ? of(r.timing->gpu, member) : "";
}
template <auto member>
std::string counted(const C&, const R& r) {
  return of(r.counts, member);
}
template <auto member>
std::string device(const C& c, const R&) {
  return written(std::invoke(member, c.device));
}

struct Column {
  const char* name;
  std::string (*text)(const C&, const R&);
  bool key = false;  ///< two rows with the same values in all of these columns measured the same thing
};
constexpr bool key = true;

const Column columns[] = {
    {"kernel", [](const C&, const R& r) { return r.cell.rung->stem(); }, key},
    {"type", [](const C&, const R& r) { return name(r.cell.type); }, key},
    {"out", [](const C& c, const R&) { return name(c.options.out); }, key},
    {"scales", [](const C& c, const R&) { return std::string(name(c.options.scales)); }, key},
    {"m", [](const C&, const R& r) { return written(r.cell.shape.m); }, key},
    {"n", [](const C&, const R& r) { return written(r.cell.shape.n); }, key},
    {"k", [](const C&, const R& r) { return written(r.cell.shape.k); }, key},
    {"alpha", [](const C& c, const R&) { return written(c.options.alpha); }, key},
    {"beta", [](const C& c, const R&) { return written(c.options.beta); }, key},
    {"epilogue", [](const C& c, const R&) { return name(c.options.epilogue); }, key},
    {"layout",
     [](const C& c, const R& r) {
       return name(c.options.layouts.value_or(Layouts{MatrixLayout::row_major, r.cell.rung->layout_b}));
     },
     key},
    {"groups",
     [](const C& c, const R&) {
       return c.options.groups == 0 ? "" : formatted("{} {}", c.options.groups, name(c.options.group_rows));
     },
     key},
    {"ld_pad", [](const C& c, const R&) { return c.options.ld_pad == ld_align ? "align" : written(c.options.ld_pad); },
     key},
    {"init", [](const C& c, const R&) { return name(c.options.init); }, key},
    {"l2", [](const C& c, const R&) { return std::string(c.options.cold ? "cold" : "warm"); }, key},
    {"protocol",
     [](const C& c, const R&) { return c.options.check_only ? std::string("check") : name(c.options.protocol); }, key},
    {"sitting", [](const C&, const R& r) { return written(r.cell.sitting); }, key},
    {"rounds", timing<&Timing::rounds>},
    {"median_ms", timing<&Timing::median_ms>},
    {"p10_ms", timing<&Timing::p10_ms>},
    {"p90_ms", timing<&Timing::p90_ms>},
    {"gflops", timing<&Timing::gflops>},
    {"cublas_ms", cublas<&Baseline::ms>},
    {"cublas_gflops", cublas<&Baseline::gflops>},
    {"cublas_clock_mhz", cublas<&Baseline::clock_mhz>},
    {"cublaslt_ms", cublaslt<&Baseline::ms>},
    {"cublaslt_gflops", cublaslt<&Baseline::gflops>},
    {"cutlass_ms", cutlass<&Baseline::ms>},
    {"cutlass_gflops", cutlass<&Baseline::gflops>},
    {"cutlass_kernel", timing<&Timing::cutlass_kernel>},
    {"ratio_cublas", cublas<&Baseline::ratio>},
    {"ratio_cutlass", cutlass<&Baseline::ratio>},
    {"ratio_best", timing<&Timing::ratio_best>},
    {"ratio_clk", cublas<&Baseline::ratio_clk>},
    {"ceiling_fraction", timing<&Timing::ceiling_fraction>},
    {"ceiling", timing<&Timing::ceiling>},
    {"flop_clk_sm", timing<&Timing::flop_clk_sm>},
    {"max_error", checked<&Checked::max_error>},
    {"bound", checked<&Checked::bound>},
    {"status", [](const C&, const R& r) { return std::string(name(r.status)); }},
    {"reason", [](const C&, const R& r) { return r.reason; }},
    {"unit", [](const C&, const R& r) { return std::string(name(r.cell.rung->instruction)); }},
    {"registers", footprint<&Footprint::registers>},
    {"smem_bytes", footprint<&Footprint::smem_bytes>},
    {"blocks_per_sm", footprint<&Footprint::blocks_per_sm>},
    {"tile", footprint<&Footprint::tile>},
    {"waves", footprint<&Footprint::waves>},
    {"plan", footprint<&Footprint::plan>},
    {"clock_mhz", timing<&Timing::clock_mhz>},
    {"power_w", gpu_state<&GpuState::power_w>},
    {"temperature_c", gpu_state<&GpuState::temperature>},
    {"throttle",
     [](const C&, const R& r) {
       return r.timing && r.timing->gpu ? throttle_names(r.timing->gpu->throttle_bits) : std::string();
     }},
    {"gpu", device<&Device::name>},
    {"sm", device<&Device::sm>},
    {"driver", device<&Device::driver>},
    {"cuda", device<&Device::cuda>},
    {"cublas", device<&Device::cublas>},
    {"commit", [](const C&, const R&) { return std::string(build_commit()); }, key},
    {"utc", [](const C&, const R& r) { return r.utc; }},
    {"sim_warp_instructions", counted<&CudaSimCounts::warp_instructions>},
    {"sim_flops", counted<&CudaSimCounts::flops>},
    {"sim_global_load_sectors", counted<&CudaSimCounts::global_load_sectors>},
    {"sim_global_load_bytes", counted<&CudaSimCounts::global_load_bytes>},
    {"sim_global_store_sectors", counted<&CudaSimCounts::global_store_sectors>},
    {"sim_global_store_bytes", counted<&CudaSimCounts::global_store_bytes>},
    {"sim_shared_wavefronts", counted<&CudaSimCounts::shared_wavefronts>},
    {"sim_shared_ideal", counted<&CudaSimCounts::shared_ideal>},
    {"sim_barriers", counted<&CudaSimCounts::barriers>},
};

size_t index_of(std::string_view name) {
  return std::find_if(std::begin(columns), std::end(columns), [&](const Column& c) { return c.name == name; }) -
         std::begin(columns);
}

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const Column& column : columns) names.emplace_back(column.name);
  return names;
}

}  // namespace

ResultsCsv::ResultsCsv(const std::string& path) : path_(path), file_(path, column_names()) {}

void ResultsCsv::refuse_other_gpu(const Device& device) const {
  for (const std::vector<std::string>& row : file_.rows())
    if (const std::string& gpu = row[index_of("gpu")]; gpu != device.name)
      throw UsageError(
          formatted("--csv: '{}' holds results of {}, this is {}; choose another file", path_, gpu, device.name));
}

bool ResultsCsv::holds(const Conditions& conditions, const Cell& cell) const {
  const Result asked{cell};
  return std::any_of(file_.rows().begin(), file_.rows().end(), [&](const std::vector<std::string>& row) {
    const std::string& status = row[index_of("status")];
    const bool waived = status == name(Status::waived);
    if (!waived && status != name(Status::ok)) return false;
    for (size_t i = 0; i < std::size(columns); ++i) {
      if (!columns[i].key || (waived && i == index_of("sitting"))) continue;
      if (row[i] != columns[i].text(conditions, asked)) return false;
    }
    return true;
  });
}

void ResultsCsv::append(const Conditions& conditions, const Result& result) {
  std::vector<std::string> fields;
  for (const Column& column : columns) fields.push_back(column.text(conditions, result));
  file_.append(fields);
}

SamplesCsv::SamplesCsv(const std::string& path)
    : file_(path, {"kernel", "type", "out", "m", "n", "k", "protocol", "sitting", "round", "which", "ms"}) {}

void SamplesCsv::append(const Conditions& conditions, const Result& result) {
  if (!result.timing) return;
  const auto& [rung, type, shape, sitting] = result.cell;
  for (const auto& [contender, times] : result.timing->samples)
    for (size_t round = 0; round < times.size(); ++round)
      file_.append({rung->stem(), name(type), name(conditions.options.out), written(shape.m), written(shape.n),
                    written(shape.k), name(conditions.options.protocol), written(sitting), written(round), contender,
                    written(times[round])});
}

}  // namespace ladder
