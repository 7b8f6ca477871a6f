#include "common/harness/harness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

#include "bench/ceilings.h"
#include "common/harness/blas.h"
#include "common/harness/check.h"
#include "common/harness/cli/list.h"
#include "common/harness/csv.h"
#include "common/harness/device.h"
#include "common/harness/error.h"
#include "common/harness/measure.h"
#include "common/harness/nvml.h"
#include "common/harness/options.h"
#include "common/harness/simulator.h"

namespace ladder {
namespace {

const std::vector<std::string> row_columns = {"kernel",
                                              "type",
                                              "out",
                                              "m",
                                              "n",
                                              "k",
                                              "alpha",
                                              "beta",
                                              "ld_pad",
                                              "init",
                                              "l2",
                                              "protocol",
                                              "rounds",
                                              "median_ms",
                                              "p10_ms",
                                              "p90_ms",
                                              "gflops",
                                              "cublas_ms",
                                              "cublas_gflops",
                                              "cublaslt_ms",
                                              "cublaslt_gflops",
                                              "ratio_cublas",
                                              "ratio_best",
                                              "ceiling_fraction",
                                              "ceiling",
                                              "flop_clk_sm",
                                              "max_error",
                                              "bound",
                                              "status",
                                              "reason",
                                              "unit",
                                              "registers",
                                              "smem_bytes",
                                              "blocks_per_sm",
                                              "tile",
                                              "waves",
                                              "clock_mhz",
                                              "power_w",
                                              "temperature_c",
                                              "throttle",
                                              "gpu",
                                              "sm",
                                              "driver",
                                              "cuda",
                                              "cublas",
                                              "commit",
                                              "utc",
                                              "sim_warp_instructions",
                                              "sim_flops",
                                              "sim_global_load_sectors",
                                              "sim_global_load_bytes",
                                              "sim_global_store_sectors",
                                              "sim_global_store_bytes",
                                              "sim_shared_wavefronts",
                                              "sim_shared_ideal",
                                              "sim_barriers"};
const std::vector<std::string> sample_columns = {"kernel", "type",     "out",   "m",     "n",
                                                 "k",      "protocol", "round", "which", "ms"};
// Two rows with the same values here measured the same thing.
const std::vector<std::string> key_columns = {"kernel", "type",   "out",  "m",  "n",        "k",     "alpha",
                                              "beta",   "ld_pad", "init", "l2", "protocol", "commit"};

/// One rung on one shape.
struct Cell {
  const Rung* rung;
  Type type;
  Shape shape;
};

/// The program's parts that live as long as it does.
class Driver {
 public:
  explicit Driver(Options options)
      : options_(std::move(options)),
        csv_(options_.csv.empty() ? nullptr : std::make_unique<CsvFile>(options_.csv, row_columns)),
        samples_csv_(options_.samples_csv.empty() ? nullptr
                                                  : std::make_unique<CsvFile>(options_.samples_csv, sample_columns)),
        device_(open_device(options_.device)),
        nvml_(device_.pci_bus_id),
        blas_(device_.simulated ? nullptr : std::make_unique<Blas>()) {}

  int run();

 private:
  struct Group;  // what consecutive cells of one shape, type and layout share

  void refuse_other_gpu() const;
  std::vector<Cell> cells() const;
  std::vector<std::string> wanted_ceilings(const std::vector<Cell>& cells) const;
  std::string key(const Row& row) const;
  Row describe(const Cell& cell) const;
  OperandSpec operand_spec(const Cell& cell) const;
  std::string reason_to_waive(const Cell& cell) const;
  void require_memory(const OperandSpec& spec) const;
  void prepare(const Cell& cell);
  void run_cell(const Cell& cell, Row& row);
  void check_cell(const Cell& cell, Row& row);
  void describe_resources(const Cell& cell, Row& row) const;
  void time_cell(const Cell& cell, Row& row);
  void print_header() const;
  void print_row(const Row& row) const;
  void print_progress(size_t done, size_t total, const Row& row);

  Options options_;
  std::unique_ptr<CsvFile> csv_, samples_csv_;  // opened before anything is asked of the GPU
  Device device_;
  Nvml nvml_;
  std::unique_ptr<Blas> blas_;  // null on the simulator, where there is no driver for it
  std::vector<Ceiling> ceilings_;
  std::unique_ptr<Group> group_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Driver::Group {
  OperandSpec spec;
  std::unique_ptr<Operands> check_operands;  // one set
  std::unique_ptr<Checker> checker;
  std::unique_ptr<Operands> operands;  // sets to rotate over, for timing
  std::unique_ptr<BlasLt> blas_lt;
};

std::string size_text(double bytes) {
  return bytes >= 1 << 30 ? fmt::format("{:.1f} GiB", bytes / (1 << 30)) : fmt::format("{:.1f} MiB", bytes / (1 << 20));
}

std::string number(double value) { return fmt::format("{:.6g}", value); }

void write_counts(const CudaSimCounts& counts, Row& row) {
  row["sim_warp_instructions"] = fmt::to_string(counts.warp_instructions);
  row["sim_flops"] = fmt::to_string(counts.flops);
  row["sim_global_load_sectors"] = fmt::to_string(counts.global_load_sectors);
  row["sim_global_load_bytes"] = fmt::to_string(counts.global_load_bytes);
  row["sim_global_store_sectors"] = fmt::to_string(counts.global_store_sectors);
  row["sim_global_store_bytes"] = fmt::to_string(counts.global_store_bytes);
  row["sim_shared_wavefronts"] = fmt::to_string(counts.shared_wavefronts);
  row["sim_shared_ideal"] = fmt::to_string(counts.shared_ideal);
  row["sim_barriers"] = fmt::to_string(counts.barriers);
}

/// A file of results belongs to one GPU, or to the simulator.
void Driver::refuse_other_gpu() const {
  if (!csv_) return;
  for (const Row& row : csv_->rows())
    if (row.at("gpu") != device_.name)
      throw UsageError(fmt::format("--csv: '{}' holds results of {}, this is {}; choose another file", options_.csv,
                                   row.at("gpu"), device_.name));
}

/// Shape by shape, and within a shape the cells that share operands one after another.
std::vector<Cell> Driver::cells() const {
  std::vector<Cell> cells;
  for (const Shape& shape : options_.shapes)
    for (const Rung* rung : options_.rungs) {
      const Type type = options_.type.value_or(rung->types.front());
      cells.push_back({rung, type, shape});
    }
  const auto operands = [](const Cell& cell) { return std::pair(cell.type, cell.rung->layout_b); };
  for (auto first = cells.begin(); first != cells.end(); first += options_.rungs.size())
    std::stable_sort(first, first + options_.rungs.size(),
                     [&](const Cell& x, const Cell& y) { return operands(x) < operands(y); });
  return cells;
}

/// The ceilings of those of `cells` that this GPU has rungs for.
std::vector<std::string> Driver::wanted_ceilings(const std::vector<Cell>& cells) const {
  std::vector<std::string> names;
  for (const Cell& cell : cells)
    if (reason_to_waive(cell).empty()) names.push_back(ceiling_name(cell.rung->unit, cell.type));
  return names;
}

std::string Driver::key(const Row& row) const {
  std::string text;
  for (const std::string& column : key_columns) text += row.at(column) + '|';
  return text;
}

Row Driver::describe(const Cell& cell) const {
  return {{"kernel", cell.rung->stem()},
          {"unit", name(cell.rung->unit)},
          {"type", name(cell.type)},
          {"out", name(options_.out)},
          {"m", fmt::to_string(cell.shape.m)},
          {"n", fmt::to_string(cell.shape.n)},
          {"k", fmt::to_string(cell.shape.k)},
          {"alpha", number(options_.alpha)},
          {"beta", number(options_.beta)},
          {"ld_pad", options_.ld_pad == ld_align ? "align" : fmt::to_string(options_.ld_pad)},
          {"init", name(options_.init)},
          {"l2", options_.cold ? "cold" : "warm"},
          {"protocol", options_.check_only ? "check" : name(options_.protocol)},
          {"gpu", device_.name},
          {"sm", fmt::to_string(device_.sm)},
          {"driver", device_.driver},
          {"cuda", device_.cuda},
          {"cublas", device_.cublas},
          {"commit", build_commit()}};
}

OperandSpec Driver::operand_spec(const Cell& cell) const {
  return {cell.shape, cell.type, options_.out, cell.rung->layout_b, options_.ld_pad, options_.init, options_.seed};
}

/// Why this GPU or this shape cannot run this rung; empty where it can.
std::string Driver::reason_to_waive(const Cell& cell) const {
  const Rung& rung = *cell.rung;
  if (std::find(rung.types.begin(), rung.types.end(), cell.type) == rung.types.end()) {
    std::vector<std::string> names;
    for (const Type type : rung.types) names.push_back(name(type));
    return fmt::format("computes {}, not {}", fmt::join(names, ", "), name(cell.type));
  }
  if (const std::string reason = why_not_on(rung.arch, device_.sm); !reason.empty()) return reason;
  const OperandSpec spec = operand_spec(cell);
  const size_t operand = operand_bytes(cell.type), result = result_bytes(cell.type, options_.out);
  const std::tuple<const char*, int, size_t> rows[] = {
      {"lda", spec.lda(), operand}, {"ldb", spec.ldb(), operand}, {"ldc", spec.ldc(), result}};
  for (const auto& [leading_dimension, elements, bytes] : rows)
    if (elements * bytes % rung.row_align_bytes != 0)
      return fmt::format("needs {} to be a multiple of {} for {}-byte accesses, got {}", leading_dimension,
                         rung.row_align_bytes / bytes, rung.row_align_bytes, elements);
  const Problem p{.m = spec.shape.m,
                  .n = spec.shape.n,
                  .k = spec.shape.k,
                  .type = spec.type,
                  .out = spec.out,
                  .layout_b = spec.layout_b,
                  .alpha = options_.alpha,
                  .beta = options_.beta,
                  .lda = spec.lda(),
                  .ldb = spec.ldb(),
                  .ldc = spec.ldc()};
  if (const std::string reason = rung.refuses(p); !reason.empty()) return reason;
  const int smem_bytes = rung.resources(p).dynamic_smem_bytes;
  if (static_cast<size_t>(smem_bytes) > device_.smem_block_bytes)
    return fmt::format("needs {} bytes of shared memory per block, this GPU has {}", smem_bytes,
                       device_.smem_block_bytes);
  return "";
}

/// Throws where the operands, those of the check and one set to time, and what the check needs beside them do not fit.
void Driver::require_memory(const OperandSpec& spec) const {
  const size_t sets = (options_.check != CheckMode::off || options_.check_only) + !options_.check_only;
  const size_t need = Operands::bytes(spec, static_cast<int>(sets)) + Checker::bytes(spec, options_.check);
  const size_t free = free_memory();
  if (need <= free) return;
  const std::string message =
      fmt::format("{} in {} needs {} of GPU memory, {} of {} are free", spec.shape.str(), name(spec.type),
                  size_text(need), size_text(free), size_text(device_.memory_bytes));
  if (need > device_.memory_bytes && options_.shapes_are_explicit) throw UsageError(message);
  throw Waived(message);
}

/// Operands and reference of the cell's shape, kept from the cell before where they are the same.
void Driver::prepare(const Cell& cell) {
  const OperandSpec spec = operand_spec(cell);
  if (group_ && group_->spec == spec) return;
  group_.reset();
  require_memory(spec);
  auto group = std::make_unique<Group>();  // becomes group_ only when it is whole
  group->spec = spec;
  if (options_.check != CheckMode::off || options_.check_only) {
    group->check_operands = std::make_unique<Operands>(spec, 1);
    if (options_.check != CheckMode::off)
      group->checker = std::make_unique<Checker>(*group->check_operands, options_.alpha, options_.beta, options_.check,
                                                 blas_.get(), nullptr);
  }
  if (!options_.check_only) {
    const int sets = options_.cold ? cold_sets(spec, device_.l2_bytes, free_memory() / 2) : 1;
    group->operands = std::make_unique<Operands>(spec, sets);
    group->blas_lt = std::make_unique<BlasLt>(*group->operands, options_.alpha, options_.beta, nullptr);
  }
  group_ = std::move(group);
}

void Driver::run_cell(const Cell& cell, Row& row) {
  row["status"] = "waived";
  row["reason"] = reason_to_waive(cell);
  if (!row["reason"].empty()) return;
  prepare(cell);

  row["status"] = "ok";
  check_cell(cell, row);
  describe_resources(cell, row);
  if (!options_.check_only && row["status"] == "ok") time_cell(cell, row);
}

void Driver::check_cell(const Cell& cell, Row& row) {
  const auto launch = [&](const Problem& p) {
    if (device_.simulated)
      write_counts(count_launches([&] { cell.rung->launch(p); }), row);
    else
      cell.rung->launch(p);
  };
  if (group_->checker) {
    const CheckResult result = group_->checker->check(launch);
    row["max_error"] = number(result.max_error);
    row["bound"] = number(result.bound);
    if (!result.passed) {
      row["status"] = "wrong";
      row["reason"] = result.message;
    }
  } else if (device_.simulated) {
    launch(group_->check_operands->problem(0, options_.alpha, options_.beta, nullptr));  // counted, not checked
  }
}

void Driver::describe_resources(const Cell& cell, Row& row) const {
  const Problem p = (group_->operands ? *group_->operands : *group_->check_operands)
                        .problem(0, options_.alpha, options_.beta, nullptr);
  const Resources resources = cell.rung->resources(p);
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, resources.kernel));
  row["smem_bytes"] = fmt::to_string(attributes.sharedSizeBytes + resources.dynamic_smem_bytes);
  const TileShape tile = resources.tile;
  row["tile"] = fmt::format("{}x{}x{}", tile.m, tile.n, tile.k);
  if (attributes.numRegs == 0) return;  // the simulator knows only what ptxas said of machine code for its own GPU
  int blocks = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, resources.kernel, resources.threads,
                                                           resources.dynamic_smem_bytes));
  row["registers"] = fmt::to_string(attributes.numRegs);
  row["blocks_per_sm"] = fmt::to_string(blocks);
  const double tiles = static_cast<double>(ceil_div(p.m, tile.m)) * ceil_div(p.n, tile.n);
  row["waves"] = number(tiles / (static_cast<double>(blocks) * device_.sm_count));
}

void Driver::time_cell(const Cell& cell, Row& row) {
  std::vector<Contender> contenders = {{"kernel", cell.rung->launch},
                                       {"cublas", [this](const Problem& p) { blas_->gemm(p); }}};
  if (group_->blas_lt->available())
    contenders.push_back({"cublaslt", [this](const Problem& p) { group_->blas_lt->gemm(p); }});
  const Measurement measured = measure(contenders, *group_->operands, options_.alpha, options_.beta, options_.protocol,
                                       options_.rounds, nvml_, nullptr);

  const Problem p = group_->operands->problem(0, options_.alpha, options_.beta, nullptr);
  const double gflop = 2e-9 * p.m * p.n * p.k;
  const auto gflops = [&](double ms) { return number(gflop / (ms * 1e-3)); };
  const auto median = [&](size_t i) { return quantile(measured.ms[i], 0.5); };
  row["rounds"] = fmt::to_string(measured.ms[0].size());
  row["median_ms"] = number(median(0));
  row["p10_ms"] = number(quantile(measured.ms[0], 0.1));
  row["p90_ms"] = number(quantile(measured.ms[0], 0.9));
  row["gflops"] = gflops(median(0));
  double best_ratio = INFINITY;
  for (size_t i = 1; i < contenders.size(); ++i) {
    const double ratio = quantile(ratios(measured.ms[i], measured.ms[0]), 0.5);
    best_ratio = std::min(best_ratio, ratio);
    row[contenders[i].name + "_ms"] = number(median(i));
    row[contenders[i].name + "_gflops"] = gflops(median(i));
    if (i == 1) row["ratio_cublas"] = number(ratio);
  }
  row["ratio_best"] = number(best_ratio);

  if (const std::optional<Floor> floor = time_floor(ceilings_, cell.rung->unit, p)) {
    row["ceiling"] = floor->ceiling;
    row["ceiling_fraction"] = number(floor->ms / median(0));
  }
  if (const double mhz = measured.sm[0].mhz(); mhz > 0.0) {
    row["clock_mhz"] = number(mhz);
    row["flop_clk_sm"] = number(gflop * 1e6 / (median(0) * mhz * device_.sm_count));
  }
  if (measured.gpu) {
    row["power_w"] = number(measured.gpu->power_w);
    row["temperature_c"] = number(measured.gpu->temperature);
    row["throttle"] = throttle_names(measured.gpu->throttle_bits);
  }
  if (!samples_csv_) return;
  for (size_t i = 0; i < contenders.size(); ++i)
    for (size_t round = 0; round < measured.ms[i].size(); ++round) {
      Row sample = row;
      sample["round"] = fmt::to_string(round);
      sample["which"] = contenders[i].name;
      sample["ms"] = number(measured.ms[i][round]);
      samples_csv_->append(sample);
    }
}

/// The simulator does some 50 to 500 million FMAs a second.
void warn_of_long_work(const std::vector<Cell>& cells) {
  double fmas = 0;
  for (const Cell& cell : cells) fmas += static_cast<double>(cell.shape.m) * cell.shape.n * cell.shape.k;
  if (fmas > 20e9)
    fmt::print(stderr, "the simulator may take {:.0f} minutes and more for this; 256 256 256 shows as much\n",
               fmas / 20e9);
}

/// What global loads and stores move, in whole sectors; wavefronts, and of them those beyond the fewest that could hold the
/// bytes; instructions for each FMA.
std::string counts_text(const Row& row) {
  constexpr const char* columns = "{:>10} {:>10} {:>11} {:>10} {:>10}";
  if (!row.contains("sim_warp_instructions")) return fmt::format(columns, "-", "-", "-", "-", "-");
  const auto count = [&](const char* column) { return std::stod(row.at(column)); };
  const auto megabytes = [&](const char* sectors) { return fmt::format("{:.4g} MB", count(sectors) * 32e-6); };
  const double wavefronts = count("sim_shared_wavefronts"), fmas = count("m") * count("n") * count("k");
  return fmt::format(columns, megabytes("sim_global_load_sectors"), megabytes("sim_global_store_sectors"), wavefronts,
                     wavefronts - count("sim_shared_ideal"),
                     fmt::format("{:.2f}", count("sim_warp_instructions") * 32 / fmas));
}

void Driver::print_header() const {
  if (device_.simulated)
    fmt::print("{:24} {:5} {:>18} {:>10} {:>10} {:>11} {:>10} {:>10} {:>18}  status\n", "kernel", "type", "shape",
               "loaded", "stored", "wavefronts", "conflicts", "instr/FMA", "error/bound");
  else if (options_.check_only)
    fmt::print("{:24} {:5} {:>18}  {:>10} {:>10}  status\n", "kernel", "type", "shape", "error", "bound");
  else
    fmt::print("{:24} {:5} {:>18} {:>10} {:>9} {:>9} {:>8} {:>8} {:>18}  status\n", "kernel", "type", "shape", "ms",
               "GFLOP/s", "x cuBLAS", "x best", "ceiling", "error/bound");
}

void Driver::print_row(const Row& row) const {
  const auto field = [&](const char* column) {
    const auto found = row.find(column);
    return found == row.end() || found->second.empty() ? std::string("-") : found->second;
  };
  const auto rounded = [&](const char* column, const char* format) {
    const std::string text = field(column);
    return text == "-" ? text : fmt::format(fmt::runtime(format), std::stod(text));
  };
  const std::string shape = fmt::format("{}x{}x{}", field("m"), field("n"), field("k"));
  const std::string status =
      field("reason") == "-" ? field("status") : fmt::format("{}: {}", field("status"), field("reason"));
  const std::string error = rounded("max_error", "{:.1e}"), bound = rounded("bound", "{:.1e}");
  if (device_.simulated)
    fmt::print("{:24} {:5} {:>18} {} {:>18}  {}\n", field("kernel"), field("type"), shape, counts_text(row),
               error + "/" + bound, status);
  else if (options_.check_only)
    fmt::print("{:24} {:5} {:>18}  {:>10} {:>10}  {}\n", field("kernel"), field("type"), shape, error, bound, status);
  else
    fmt::print("{:24} {:5} {:>18} {:>10} {:>9} {:>9} {:>8} {:>8} {:>18}  {}\n", field("kernel"), field("type"), shape,
               rounded("median_ms", "{:.4f}"), rounded("gflops", "{:.0f}"), rounded("ratio_cublas", "{:.3f}"),
               rounded("ratio_best", "{:.3f}"), rounded("ceiling_fraction", "{:.3f}"), error + "/" + bound, status);
  std::fflush(stdout);
}

/// One line on stderr after each of many cells: how much is done and what is left.
void Driver::print_progress(size_t done, size_t total, const Row& row) {
  if (total < 2) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double left = seconds / done * (total - done);
  const auto found = row.find("gflops");
  fmt::print(stderr, "[{}/{}] {} {}x{}x{} {}{}; about {:.0f} s left\n", done, total, row.at("kernel"), row.at("m"),
             row.at("n"), row.at("k"), row.at("status"),
             found == row.end() ? "" : fmt::format(" {:.0f} GFLOP/s", std::stod(found->second)), left);
}

int Driver::run() {
  refuse_other_gpu();
  if (!options_.environment.empty()) write_environment(options_.environment, device_, options_.command);
  std::vector<std::string> known;
  if (options_.resume)
    for (const Row& row : csv_->rows())
      if (row.at("status") == "ok" || row.at("status") == "waived") known.push_back(key(row));
  std::vector<Cell> all = cells();
  const size_t asked = all.size();
  std::erase_if(
      all, [&](const Cell& cell) { return std::find(known.begin(), known.end(), key(describe(cell))) != known.end(); });
  if (all.size() < asked)
    fmt::print(stderr, "resuming: {} of {} cells are in {} already\n", asked - all.size(), asked, options_.csv);

  if (!options_.check_only && !all.empty())
    ceilings_ = options_.ceilings.empty() ? measure_ceilings(device_)
                                          : read_ceilings(options_.ceilings, device_, wanted_ceilings(all));

  if (device_.simulated) warn_of_long_work(all);
  if (!all.empty()) print_header();
  size_t done = 0, wrong = 0, waived = 0;
  const bool quiet = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);  // the table itself is the progress
  for (const Cell& cell : all) {
    Row row = describe(cell);
    bool context_lost = false;
    try {
      run_cell(cell, row);
      stop_if_interrupted();
    } catch (const Waived& waiver) {
      row["status"] = "waived";
      row["reason"] = waiver.what();
    } catch (const Interrupted&) {
      if (csv_)
        fmt::print(stderr, "interrupted: {} of {} cells are in {}; the same command with --resume goes on from there\n",
                   asked - all.size() + done, asked, options_.csv);
      else
        fmt::print(stderr, "interrupted after {} of {} cells\n", done, asked);
      return exit_interrupted;
    } catch (const UsageError&) {
      throw;
    } catch (const std::exception& error) {
      const auto* cuda = dynamic_cast<const CudaError*>(&error);
      row["status"] = cuda && cuda->status == cudaErrorMemoryAllocation ? "waived" : "failed";
      row["reason"] = error.what();
      context_lost = cudaDeviceSynchronize() != cudaSuccess;
      if (context_lost && device_.simulated) {  // here a new context costs nothing
        row["reason"] = fault_report();
        group_.reset();
        context_lost = cudaDeviceReset() != cudaSuccess;
      }
      cudaGetLastError();
    }
    row["utc"] = utc_now();
    if (csv_) csv_->append(row);
    print_row(row);
    ++done;
    wrong += row["status"] == "wrong" || row["status"] == "failed";
    waived += row["status"] == "waived";
    if (!quiet) print_progress(done, all.size(), row);
    if (context_lost) {
      fmt::print(stderr, "stopping: the GPU can run nothing more in this process; {} cells are left\n",
                 all.size() - done);
      break;
    }
  }
  if (wrong) return exit_wrong;
  return !all.empty() && waived == all.size() ? exit_waived : exit_ok;
}

/// The simulator where it is asked for, and, said in one line, where there is no GPU: then this program starts anew.
void choose_device(const Options& options, char* const* argv) {
  const std::string no_gpu = options.sim ? "" : why_no_gpu();
  if (options.sim || !no_gpu.empty()) {
    const std::string library = find_simulator(options.sim ? "--sim" : no_gpu);
    if (!options.sim) fmt::print(stderr, "{}: running on the simulator (checked and counted, not timed)\n", no_gpu);
    restart_on_simulator(library, argv);
  }
  if (!options.sim_seed.empty() || !options.sim_counts.empty())
    throw UsageError("--sim-seed and --sim-counts are the simulator's: add --sim");
}

}  // namespace

int run(int argc, char* const* argv) {
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  const auto complain = [&](const std::exception& error, int status) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return status;
  };
  try {
    bool finished = false;
    Options options = parse_options(argc, argv, finished);
    if (finished) return exit_ok;
    if (options.list) {
      fmt::print("{}", options.json ? list_json(options.rungs) : list_text(options.rungs));
      return exit_ok;
    }
    if (!on_simulator()) choose_device(options, argv);
    if (on_simulator()) configure_simulator(options.sim_seed, options.sim_counts);
    catch_interrupts();
    return Driver(std::move(options)).run();
  } catch (const UsageError& error) {
    return complain(error, exit_usage);
  } catch (const Waived& error) {
    return complain(error, exit_waived);
  } catch (const Interrupted& error) {
    return complain(error, exit_interrupted);
  } catch (const std::exception& error) {
    return complain(error, exit_wrong);
  }
}

}  // namespace ladder
