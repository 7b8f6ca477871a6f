#include "common/harness/run.h"

#include <algorithm>
#include <tuple>

#include "common/harness/error.h"
#include "common/harness/simulator.h"
#include "common/harness/timing/measure.h"
#include "common/harness/unfused_epilogue.h"
#include "common/preferred.h"
#include "common/scales.h"
#include "common/text.h"

namespace ladder {
namespace {

std::string size_text(double bytes) {
  return bytes >= 1 << 30 ? formatted("{:.1f} GiB", bytes / (1 << 30)) : formatted("{:.1f} MiB", bytes / (1 << 20));
}

/// What a library was found to be fastest with; null where that was not tried yet.
template <class Choice>
const Choice* known(const std::vector<std::pair<OperandSpec, Choice>>& choices, const OperandSpec& spec) {
  const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& x) { return x.first == spec; });
  return found == choices.end() ? nullptr : &found->second;
}

/// Why a rung does not take these scales; empty where it does.
std::string refuses_scales(const Rung& rung, Scales scales) {
  if (std::find(rung.scales.begin(), rung.scales.end(), scales) != rung.scales.end()) return "";
  std::vector<std::string> names;
  for (const Scales one : rung.scales)
    if (one != Scales::none) names.emplace_back(name(one));
  if (names.empty()) return "takes no scales";
  if (scales == Scales::none) return formatted("needs --scales {}", joined(names, " or "));
  return formatted("takes scales {}, not {}", joined(names, ", "), name(scales));
}

}  // namespace

struct Runner::Group {
  OperandSpec spec;
  std::unique_ptr<Operands> check_operands;  // one set
  std::unique_ptr<Checker> checker;
  std::unique_ptr<Operands> operands;        // sets to rotate over, for timing
  std::unique_ptr<UnfusedEpilogue> unfused;  // where there is an epilogue: for libraries that do not have it
  std::unique_ptr<BlasLt> blas_lt;           // this and the next without groups, the last with groups
  std::unique_ptr<Cutlass> cutlass;
  std::unique_ptr<BlasGrouped> blas_grouped;
};

Runner::Runner(const Conditions& conditions)
    : options_(conditions.options),
      device_(conditions.device),
      nvml_(device_.pci_bus_id),
      blas_(device_.simulated ? nullptr : std::make_unique<Blas>()),
      tuned_(options_.plans.empty() ? nullptr : std::make_unique<TunedPlans>(options_.plans, device_)) {}
Runner::~Runner() = default;

void Runner::find_ceilings(const std::vector<Cell>& cells) {
  std::vector<std::string> wanted;
  for (const Cell& cell : cells)
    if (reason_to_waive(cell).empty()) wanted.push_back(ceiling_name(cell.rung->instruction, cell.type));
  ceilings_ = options_.ceilings.empty() ? measure_ceilings(device_) : read_ceilings(options_.ceilings, device_, wanted);
}

OperandSpec Runner::operand_spec(const Cell& cell) const {
  const Layouts layouts = options_.layouts.value_or(Layouts{MatrixLayout::row_major, cell.rung->layout_b});
  return {cell.shape,    cell.type,     options_.out,    layouts.a,       layouts.b,           options_.ld_pad,
          options_.init, options_.seed, options_.scales, options_.groups, options_.group_rows, options_.epilogue};
}

/// Why this GPU or this problem is not for this rung; empty where it is.
std::string Runner::reason_to_waive(const Cell& cell) const {
  const Rung& rung = *cell.rung;
  if (std::find(rung.types.begin(), rung.types.end(), cell.type) == rung.types.end()) {
    std::vector<std::string> names;
    for (const Type type : rung.types) names.push_back(name(type));
    return formatted("computes {}, not {}", joined(names, ", "), name(cell.type));
  }
  if (const std::string reason = why_not_on(rung.arch, device_.sm); !reason.empty()) return reason;
  const Layouts own = {MatrixLayout::row_major, rung.layout_b};
  if (options_.layouts && !rung.any_layout && *options_.layouts != own)
    return formatted("takes the layout {}, not {}", name(own), name(*options_.layouts));
  if (const std::string reason = refuses_scales(rung, options_.scales); !reason.empty()) return reason;
  if (options_.groups > 0 && !rung.grouped) return "takes no groups";
  if (options_.epilogue != Epilogue{}) {
    if (!rung.epilogues) return formatted("has no epilogue but beta C, not {}", name(options_.epilogue));
    if (options_.scales != Scales::none || options_.groups > 0)
      return "an epilogue of products with scales or groups cannot be checked";
  }
  const OperandSpec spec = operand_spec(cell);
  const int operands = std::max<int>(1, rung.row_align_bytes / facts(cell.type).bytes) * facts(cell.type).per_byte;
  const int results = std::max(1, rung.row_align_bytes / spec.c_bytes());
  const std::tuple<const char*, int, int> rows[] = {
      {"lda", spec.lda(), operands}, {"ldb", spec.ldb(), operands}, {"ldc", spec.ldc(), results}};
  for (const auto& [leading_dimension, elements, step] : rows)
    if (elements % step != 0)
      return formatted("needs {} to be a multiple of {} for {}-byte accesses, got {}", leading_dimension, step,
                       rung.row_align_bytes, elements);
  const Problem p = spec.problem(options_.alpha, options_.beta);
  if (const std::string reason = rung.refuses(p); !reason.empty()) return reason;
  const int smem_bytes = rung.resources(p).dynamic_smem_bytes;
  if (static_cast<size_t>(smem_bytes) > device_.smem_block_bytes)
    return formatted("needs {} bytes of shared memory per block, this GPU has {}", smem_bytes,
                     device_.smem_block_bytes);
  return "";
}

/// Is the result checked? In the first sitting; what was wrong then has no others.
bool Runner::checks(const Cell& cell) const { return options_.check != CheckMode::off && cell.sitting == 1; }

/// Throws where the operands, those of the check and one set to time, and what the check needs beside them do not fit.
void Runner::require_memory(const Cell& cell) const {
  const OperandSpec spec = operand_spec(cell);
  const size_t sets = (options_.check != CheckMode::off || options_.check_only) + !options_.check_only;
  const size_t need = Operands::bytes(spec, static_cast<int>(sets)) + Checker::bytes(spec, options_.check) +
                      Workspace::bytes(cell.rung->resources(spec.problem(options_.alpha, options_.beta))) +
                      (spec.epilogue == Epilogue{} || options_.check_only ? 0 : UnfusedEpilogue::bytes(spec));
  const size_t free = free_memory();
  if (need <= free) return;
  const std::string message =
      formatted("{} in {} needs {} of GPU memory, {} of {} are free", spec.shape.str(), name(spec.type),
                size_text(need), size_text(free), size_text(device_.memory_bytes));
  if (need > device_.memory_bytes && options_.shapes_are_explicit) throw UsageError(message);
  throw Waived(message);
}

/// Operands and reference of the cell's shape, kept from the cell before where they are the same.
void Runner::prepare(const Cell& cell) {
  const OperandSpec spec = operand_spec(cell);
  if (!group_ || group_->spec != spec) {
    group_.reset();
    require_memory(cell);
    group_ = std::make_unique<Group>();
    group_->spec = spec;
  }
  Group& group = *group_;
  if (!group.check_operands && (checks(cell) || options_.check_only))
    group.check_operands = std::make_unique<Operands>(spec, 1);
  if (!group.checker && checks(cell))
    group.checker = std::make_unique<Checker>(*group.check_operands, options_.alpha, options_.beta, options_.check,
                                              blas_.get(), nullptr);
  if (group.operands || options_.check_only) return;
  const int sets = options_.cold ? cold_sets(spec, device_.l2_bytes, free_memory() / 2) : 1;
  group.operands = std::make_unique<Operands>(spec, sets);
  if (spec.groups > 0) {
    if (!BlasGrouped::has(spec)) return;  // no baseline
    const auto* way = known(grouped_choices_, spec);
    group.blas_grouped = std::make_unique<BlasGrouped>(*group.operands, options_.alpha, options_.beta, nullptr, way);
    if (!way) grouped_choices_.emplace_back(spec, group.blas_grouped->fastest());
    return;
  }
  Problem p = group.operands->problem(0, options_.alpha, options_.beta, nullptr);
  const bool plain = spec.epilogue == Epilogue{};
  if (!plain) group.unfused = std::make_unique<UnfusedEpilogue>(spec);
  if (!plain && !BlasLt::fuses(p)) p = group.unfused->product(p);
  const auto* lt_choice = known(lt_choices_, spec);
  group.blas_lt = std::make_unique<BlasLt>(p, spec, lt_choice);
  if (!lt_choice) lt_choices_.emplace_back(spec, group.blas_lt->choice());
  if (!plain) return;  // CUTLASS's kernels here have no epilogue but beta C
  const auto* cutlass_choice = known(cutlass_choices_, spec);
  group.cutlass =
      std::make_unique<Cutlass>(*group.operands, options_.alpha, options_.beta, device_, nullptr, cutlass_choice);
  if (!cutlass_choice) cutlass_choices_.emplace_back(spec, group.cutlass->choice());
}

Result Runner::run(const Cell& cell) {
  Result result{cell};
  try {
    run(cell, result);
    stop_if_interrupted();
  } catch (const Waived& waiver) {
    result.status = Status::waived;
    result.reason = waiver.what();
  } catch (const Interrupted&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    const auto* cuda = dynamic_cast<const CudaError*>(&error);
    result.status = cuda && cuda->status == cudaErrorMemoryAllocation ? Status::waived : Status::failed;
    result.reason = error.what();
    context_lost_ = cudaDeviceSynchronize() != cudaSuccess;
    if (context_lost_ && device_.simulated) {  // here a new context costs nothing
      result.reason = fault_report();
      group_.reset();
      context_lost_ = cudaDeviceReset() != cudaSuccess;
    }
    cudaGetLastError();
  }
  result.utc = utc_now();
  return result;
}

void Runner::run(const Cell& cell, Result& result) {
  result.reason = reason_to_waive(cell);
  if (!result.reason.empty()) {
    result.status = Status::waived;
    return;
  }
  prepare(cell);
  if (options_.tune && cell.rung->plans && cell.sitting == 1) tune(cell);
  check(cell, result);
  result.footprint = footprint(cell);
  if (!options_.check_only && result.status == Status::ok) result.timing = time(cell);
}

/// Times all plans of the rung in the same rounds, then again, and more often, those that come near the fastest. Goes about this problem
/// by the fastest from now on.
void Runner::tune(const Cell& cell) {
  constexpr double NEAR = 1.04;  // times the fastest: two medians of 9 rounds differ by 1 % or so
  const Problem p = group_->spec.problem(options_.alpha, options_.beta);
  const std::vector<Plan> plans = cell.rung->plans(p);
  std::vector<std::unique_ptr<Workspace>> workspaces;
  for (const Plan& plan : plans) workspaces.push_back(std::make_unique<Workspace>(plan.resources));
  std::vector<double> microseconds(plans.size(), 0);
  const auto time_those_under = [&](double limit, int rounds) {
    std::vector<size_t> timed;
    std::vector<Contender> contenders;
    for (size_t i = 0; i < plans.size(); ++i) {
      if (microseconds[i] > limit) continue;
      timed.push_back(i);
      contenders.push_back({plans[i].name, [&, i](const Problem& q) { plans[i].launch(workspaces[i]->lend(q)); }});
    }
    const Pace pace{.protocol = Protocol::rounds, .rounds = rounds};
    const Measurement measured =
        measure(contenders, *group_->operands, options_.alpha, options_.beta, pace, nvml_, nullptr);
    for (size_t i = 0; i < timed.size(); ++i) microseconds[timed[i]] = quantile(measured.ms[i], 0.5) * 1e3;
  };
  time_those_under(0, 9);
  time_those_under(NEAR * *std::min_element(microseconds.begin(), microseconds.end()), 41);
  tuned_->add(*cell.rung, p, plans, microseconds);
}

void Runner::check(const Cell& cell, Result& result) {
  const auto launch = [&](const Problem& p) {
    if (device_.simulated)
      result.counts = count_launches([&] { cell.rung->launch(p); });
    else
      cell.rung->launch(p);
  };
  const Problem p = group_->spec.problem(options_.alpha, options_.beta);
  const Workspace workspace(cell.rung->resources(p));
  if (checks(cell)) {
    const CheckResult found =
        group_->checker->check(launch, workspace, sum_on(*cell.rung, cell.type, device_.sm, options_.scales));
    result.checked = Checked{found.max_error, found.bound};
    if (found.passed) return;
    result.status = Status::wrong;
    result.reason = found.message;
  } else if (device_.simulated) {
    launch(workspace.lend(group_->check_operands->problem(0, options_.alpha, options_.beta, nullptr)));  // only counted
  }
}

Footprint Runner::footprint(const Cell& cell) const {
  const Problem p = group_->spec.problem(options_.alpha, options_.beta);
  const Resources resources = cell.rung->resources(p);
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, resources.kernel));
  Footprint found{.tile = resources.tile,
                  .smem_bytes = attributes.sharedSizeBytes + resources.dynamic_smem_bytes,
                  .registers = {},
                  .blocks_per_sm = {},
                  .waves = {}};
  if (cell.rung->plans) {
    const std::string tuned = preferred(cell.rung->number, p);
    found.plan = tuned.empty() ? cell.rung->plans(p).front().name + ", predicted" : tuned + ", tuned";
  }
  if (attributes.numRegs == 0)
    return found;  // the simulator knows only what ptxas said of machine code for its own GPU
  int blocks = 0;  // of a kernel that may use as much shared memory: its launch asks for it, but may be still to come
  cuda_check(cudaFuncSetAttribute(resources.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  resources.dynamic_smem_bytes));
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, resources.kernel, resources.threads,
                                                           resources.dynamic_smem_bytes));
  found.registers = attributes.numRegs;
  found.blocks_per_sm = blocks;
  const double tiles = static_cast<double>(ceil_div(p.m, resources.tile.m)) * ceil_div(p.n, resources.tile.n);
  if (blocks > 0) found.waves = tiles / (static_cast<double>(blocks) * device_.sm_count);
  return found;
}

std::string Runner::explain(const Cell& cell) const {
  const std::string reason = reason_to_waive(cell);
  if (!reason.empty()) return formatted("waived: {}\n", reason);
  const Problem p = operand_spec(cell).problem(options_.alpha, options_.beta);
  const Resources resources = cell.rung->resources(p);
  const auto [m, n, k] = resources.tile;
  std::string text = formatted("{} x {} tiles of {} x {}, k tiles of {}; {} of workspace\n", ceil_div(p.m, m),
                               ceil_div(p.n, n), m, n, k, size_text(resources.workspace_bytes));
  if (cell.rung->explain) text += cell.rung->explain(p);
  return text;
}

Timing Runner::time(const Cell& cell) {
  const Problem p = group_->spec.problem(options_.alpha, options_.beta);
  const Workspace workspace(cell.rung->resources(p));
  std::vector<Contender> contenders = {{"kernel", [&](const Problem& q) { cell.rung->launch(workspace.lend(q)); }}};
  // A library that has no such epilogue: its product, and then a kernel of ours.
  const auto with_epilogue = [this](bool fused, auto multiply) -> std::function<void(const Problem&)> {
    if (fused || !group_->unfused) return multiply;
    return [this, multiply](const Problem& p) { group_->unfused->run(multiply, p); };
  };
  const BlasLt* const lt = group_->blas_lt && group_->blas_lt->available() ? group_->blas_lt.get() : nullptr;
  const bool fused = BlasLt::fuses(p);
  if (const BlasGrouped* const grouped = group_->blas_grouped.get()) {
    if (grouped->has_default())
      contenders.push_back({"cublas", [=](const Problem& p) { grouped->gemm_by_default(p); }});
    contenders.push_back({"cublaslt", [=](const Problem& p) { grouped->gemm(p); }});
  } else if (Blas::has(p.type) && p.scales == Scales::none)
    contenders.push_back({"cublas", with_epilogue(false, [this](const Problem& p) { blas_->gemm(p); })});
  else if (lt)
    contenders.push_back({"cublas", with_epilogue(fused, [lt](const Problem& p) { lt->gemm_by_default(p); })});
  if (lt) contenders.push_back({"cublaslt", with_epilogue(fused, [lt](const Problem& p) { lt->gemm(p); })});
  if (group_->cutlass && group_->cutlass->choice())
    contenders.push_back({"cutlass", [this](const Problem& p) { group_->cutlass->gemm(p); }});
  const Pace pace{options_.protocol, options_.rounds, options_.sittings, cell.sitting};
  const Measurement measured =
      measure(contenders, *group_->operands, options_.alpha, options_.beta, pace, nvml_, nullptr);

  const double flop = 2.0 * p.m * p.n * p.k * (1 + p.epilogue.gate);
  const auto gflops = [&](double ms) { return flop / ms * 1e-6; };
  const auto mhz = [&](size_t i) {
    return measured.sm[i].mhz() > 0.0 ? std::optional(measured.sm[i].mhz()) : std::nullopt;
  };
  const auto baseline = [&](size_t i) {
    const double ms = quantile(measured.ms[i], 0.5), ratio = quantile(ratios(measured.ms[i], measured.ms[0]), 0.5);
    Baseline found{ms, gflops(ms), ratio, mhz(i), {}};
    if (mhz(0) && mhz(i)) found.ratio_clk = ratio * *mhz(i) / *mhz(0);
    return found;
  };
  const double median = quantile(measured.ms[0], 0.5);
  Timing timing{.rounds = static_cast<int>(measured.ms[0].size()),
                .median_ms = median,
                .p10_ms = quantile(measured.ms[0], 0.1),
                .p90_ms = quantile(measured.ms[0], 0.9),
                .gflops = gflops(median),
                .cublas = {},
                .cublaslt = {},
                .cutlass = {},
                .cutlass_kernel = {},
                .ratio_best = {},
                .ceiling = {},
                .ceiling_fraction = {},
                .clock_mhz = mhz(0),
                .flop_clk_sm = {},
                .gpu = measured.gpu,
                .samples = {}};
  for (size_t i = 1; i < contenders.size(); ++i) {
    const std::string& name = contenders[i].name;
    std::optional<Baseline>& library = name == "cutlass"    ? timing.cutlass
                                       : name == "cublaslt" ? timing.cublaslt
                                                            : timing.cublas;
    library = baseline(i);
    timing.ratio_best = std::min(timing.ratio_best.value_or(library->ratio), library->ratio);
  }
  if (timing.cutlass) timing.cutlass_kernel = group_->cutlass->choice()->name;
  const size_t matrices_b = products(p, group_->spec.first_rows()).size();
  if (const std::optional<Floor> floor = time_floor(ceilings_, cell.rung->instruction, p, matrices_b)) {
    timing.ceiling = floor->ceiling;
    timing.ceiling_fraction = floor->ms / median;
  }
  if (timing.clock_mhz) timing.flop_clk_sm = flop / (median * *timing.clock_mhz * 1e3 * device_.sm_count);
  for (size_t i = 0; i < contenders.size(); ++i) timing.samples.emplace_back(contenders[i].name, measured.ms[i]);
  return timing;
}

}  // namespace ladder
