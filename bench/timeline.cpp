// bin/timeline: runs rungs that bench/record_timeline.h has instrumented to write down what their warps do, and the same rungs as they
// are beside them. It writes two files:
//   FILE            what the first warp of each warpgroup did in some blocks, in the last of several launches
//   FILE's _runs    the times of both, taken like those of ladder.csv, so that a reader sees what the recording costs
// Each rung is linked in twice. Without CMake, and for the simulator, where nothing is timed and clocks mean nothing:
//   nvcc -I. -std=c++20 -O3 -gencode arch=compute_90a,code=[sm_90a,compute_90a] -include bench/record_timeline.h -c kernels/23_*.cu
//        -o recorded.o
//   nvcc the same without -include bench/record_timeline.h, -o plain.o
//   nvcc -I. -std=c++20 bench/timeline.cpp recorded.o plain.o build/libharness.a -cudart=shared -lcublas -lcublasLt -ldl -o timeline
//   LD_LIBRARY_PATH=build/sim ./timeline --shape 384x512x512 --csv timeline.csv
#include "bench/timeline.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/cli/shapes.h"
#include "common/harness/csv.h"
#include "common/harness/device.h"
#include "common/harness/error.h"
#include "common/harness/operands.h"
#include "common/harness/timing/measure.h"
#include "common/harness/workspace.h"
#include "common/rung.h"
#include "common/text.h"
#include "common/types.h"

namespace ladder {
namespace {

const char* const kinds[] = {"none",
                             "mbarrier_wait",
                             "mbarrier_arrive",
                             "mbarrier_arrive_expect_tx",
                             "bulk_tensor_load",
                             "bulk_tensor_store",
                             "bulk_wait_group",
                             "wgmma_commit_group",
                             "wgmma_wait_group",
                             "bar_sync",
                             "cluster_wait"};
static_assert(std::size(kinds) == static_cast<size_t>(TimelineKind::cluster_wait) + 1);

const std::vector<std::string> columns = {"kernel",   "type", "m",    "n",      "k",     "block", "sm",
                                          "block_ns", "warp", "kind", "detail", "begin", "end"};
const std::vector<std::string> run_columns = {
    "kernel",     "type",          "m",       "n",   "k",      "plain_ms", "recorded_ms", "plain_mhz", "recorded_mhz",
    "plain_regs", "recorded_regs", "records", "gpu", "commit", "utc"};

using Setter = cudaError_t (*)(const TimelineBuffer&);
std::vector<Setter>& setters() {
  static std::vector<Setter> all;
  return all;
}

constexpr uint32_t CAPACITY = 4096;  // records per warp: 4096 cubed needs some 1500
constexpr int WARM_UPS = 3;

/// What a launch wrote, on the host.
struct Recording {
  std::vector<TimelineBlock> blocks;
  std::vector<TimelineRecord> records;

  /// Of the warp whose number among those recorded is `warp`.
  std::vector<TimelineRecord> of(int block, int warp) const {
    const auto first = records.begin() + (static_cast<size_t>(block) * TIMELINE_WARPS + warp) * CAPACITY;
    return {first,
            std::find_if(first, first + CAPACITY, [](const TimelineRecord& record) { return record.kind == 0; })};
  }
};

/// The buffer of all kernels that are linked in.
class Recorder {
 public:
  explicit Recorder(int blocks)
      : blocks_(blocks),
        block_(blocks * sizeof(TimelineBlock)),
        records_(static_cast<size_t>(blocks) * TIMELINE_WARPS * CAPACITY * sizeof(TimelineRecord)) {
    const TimelineBuffer buffer{block_.as<TimelineBlock>(), records_.as<TimelineRecord>(),
                                static_cast<uint32_t>(blocks), CAPACITY};
    for (const Setter set : setters()) cuda_check(set(buffer));
  }

  void clear() const {
    cuda_check(cudaMemset(block_.as<void>(), 0, block_.bytes()));
    cuda_check(cudaMemset(records_.as<void>(), 0, records_.bytes()));
    cuda_check(cudaDeviceSynchronize());
  }

  Recording read() const {
    Recording found{std::vector<TimelineBlock>(blocks_),
                    std::vector<TimelineRecord>(records_.bytes() / sizeof(TimelineRecord))};
    cuda_check(cudaMemcpy(found.blocks.data(), block_.as<void>(), block_.bytes(), cudaMemcpyDeviceToHost));
    cuda_check(cudaMemcpy(found.records.data(), records_.as<void>(), records_.bytes(), cudaMemcpyDeviceToHost));
    return found;
  }

 private:
  int blocks_;
  DeviceBuffer block_, records_;
};

struct Options {
  int device = 0, records = 0;
  std::string type = "bf16", shape = "4096x4096x4096", csv;
  std::vector<int> blocks = {0, 1};
};

std::vector<unsigned char> result(const Problem& p) {
  std::vector<unsigned char> bytes(static_cast<size_t>(p.m) * p.ldc * result_bytes(p.type, p.out));
  cuda_check(cudaMemcpy(bytes.data(), p.c, bytes.size(), cudaMemcpyDeviceToHost));
  return bytes;
}

std::string registers(const Rung& rung, const Problem& p) {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, rung.resources(p).kernel));
  return attributes.numRegs ? formatted("{}", attributes.numRegs) : "";
}

/// Both versions of one rung: times them in the same rounds, then records one launch after some others.
class Pair {
 public:
  Pair(const Rung& one, const Rung& other, const Device& device, const Recorder& recorder, const OperandSpec& spec)
      : device_(device),
        recorder_(recorder),
        operands_(spec, device.simulated ? 1 : cold_sets(spec, device.l2_bytes, free_memory() / 2)),
        problem_(spec.problem(1.0F, 0.0F)),
        workspace_(one.resources(problem_)) {
    const bool first = records(one), second = records(other);
    if (first == second) throw std::runtime_error(formatted("{}: one of two must record", one.stem()));
    recorded_ = first ? &one : &other, plain_ = first ? &other : &one;
    const Problem p = operands_.problem(0, 1.0F, 0.0F, nullptr);
    launch(*plain_, p);
    cuda_check(cudaDeviceSynchronize());
    const auto expected = result(p);
    operands_.fill_c(0, true, nullptr);
    launch(*recorded_, p);
    cuda_check(cudaDeviceSynchronize());
    if (result(p) != expected) throw std::runtime_error(formatted("{}: recording changes its result", one.stem()));
  }

  /// The row of run_columns; the number of records comes from `recording`.
  std::vector<std::string> times(size_t records) const {
    const Rung& rung = *plain_;
    std::string plain_ms, recorded_ms, plain_mhz, recorded_mhz;
    if (!device_.simulated) {
      const Contender contenders[] = {{"plain", [this](const Problem& p) { launch(*plain_, p); }},
                                      {"recorded", [this](const Problem& p) { launch(*recorded_, p); }}};
      const Nvml nvml(device_.pci_bus_id);
      const Measurement found = measure({contenders[0], contenders[1]}, operands_, 1.0F, 0.0F, {}, nvml, nullptr);
      plain_ms = formatted("{:.5f}", quantile(found.ms[0], 0.5)), plain_mhz = formatted("{:.0f}", found.sm[0].mhz());
      recorded_ms = formatted("{:.5f}", quantile(found.ms[1], 0.5)),
      recorded_mhz = formatted("{:.0f}", found.sm[1].mhz());
    }
    return {rung.stem(),
            name(problem_.type),
            formatted("{}", problem_.m),
            formatted("{}", problem_.n),
            formatted("{}", problem_.k),
            plain_ms,
            recorded_ms,
            plain_mhz,
            recorded_mhz,
            registers(*plain_, problem_),
            registers(*recorded_, problem_),
            formatted("{}", records),
            device_.name,
            build_commit(),
            utc_now()};
  }

  /// What a launch wrote that came right after others.
  Recording record() const {
    recorder_.clear();
    for (int i = 0; i <= (device_.simulated ? 0 : WARM_UPS); ++i)
      launch(*recorded_, operands_.problem(i % operands_.sets(), 1.0F, 0.0F, nullptr));
    cuda_check(cudaDeviceSynchronize());
    return recorder_.read();
  }

 private:
  void launch(const Rung& rung, const Problem& p) const { rung.launch(workspace_.lend(p)); }

  /// Does this rung write anything?
  bool records(const Rung& rung) const {
    recorder_.clear();
    launch(rung, operands_.problem(0, 1.0F, 0.0F, nullptr));
    cuda_check(cudaDeviceSynchronize());
    return recorder_.read().blocks[0].recorded != 0;
  }

  const Device& device_;
  const Recorder& recorder_;
  Operands operands_;
  Problem problem_;
  Workspace workspace_;
  const Rung *plain_ = nullptr, *recorded_ = nullptr;
};

/// A row per record: clocks since the block's timeline_start(), and for that the time since the first of all blocks.
size_t write(CsvFile& csv, const Recording& found, const Rung& rung, const Problem& p, const Options& options) {
  uint64_t earliest = ~0ULL;
  for (const TimelineBlock& block : found.blocks)
    if (block.recorded) earliest = std::min(earliest, block.ns);
  size_t written = 0;
  for (const int number : options.blocks) {
    if (number < 0 || number >= static_cast<int>(found.blocks.size()) || !found.blocks[number].recorded)
      throw UsageError(formatted("{} has no block {} at this size on this GPU", rung.stem(), number));
    const TimelineBlock& block = found.blocks[number];
    for (int warp = 0; warp < TIMELINE_WARPS; ++warp) {
      const std::vector<TimelineRecord> records = found.of(number, warp);
      const size_t shown = options.records ? std::min<size_t>(options.records, records.size()) : records.size();
      for (size_t i = 0; i < shown; ++i) {
        // the first may begin before thread 0 noted the block's
        const int64_t begin = static_cast<int64_t>(records[i].begin - block.clocks);
        csv.append({rung.stem(), name(p.type), formatted("{}", p.m), formatted("{}", p.n), formatted("{}", p.k),
                    formatted("{}", number), formatted("{}", block.sm), formatted("{}", block.ns - earliest),
                    formatted("{}", warp * TIMELINE_THREADS / 32), kinds[records[i].kind],
                    formatted("{}", uint32_t{records[i].detail}), formatted("{}", begin),
                    formatted("{}", begin + static_cast<int64_t>(records[i].clocks))});
      }
      written += shown;
      if (records.size() == CAPACITY)
        print(stderr, "timeline: {}: block {}, warp {} did more than {} records hold\n", rung.stem(), number,
              warp * TIMELINE_THREADS / 32, CAPACITY);
    }
  }
  return written;
}

template <Type... all>
Type parse_type(const std::string& text, Types<all...>) {
  for (const Type type : {all...})
    if (name(type) == text) return type;
  throw UsageError(formatted("--type is one of {}", joined({name(all)...}, ", ")));
}

/// Opens a new file.
CsvFile replaced(const std::filesystem::path& path, const std::vector<std::string>& names) {
  std::filesystem::remove(path);
  return {path.string(), names};
}

void run(const Options& options) {
  const Device device = open_device(options.device);
  const std::vector<Shape> shapes = parse_shapes(options.shape);
  if (shapes.size() != 1) throw UsageError("--shape takes one shape");
  const Type type = parse_type(options.type, AllTypes{});

  const std::filesystem::path path = options.csv;
  CsvFile csv = replaced(path, columns);
  CsvFile runs = replaced(path.parent_path() / (path.stem().string() + "_runs.csv"), run_columns);
  const Recorder recorder(device_limits().sms);
  std::map<std::string, std::vector<const Rung*>> versions;
  for (const Rung& rung : rungs()) versions[rung.stem()].push_back(&rung);
  for (const auto& [stem, rungs] : versions) {
    if (rungs.size() != 2) throw std::runtime_error(formatted("{} must be linked in twice", stem));
    const Rung& rung = *rungs[0];
    const OperandSpec spec{shapes[0], type, Out::f32, rung.layout_b, ld_align, Init::normal, 1};
    const Problem p = spec.problem(1.0F, 0.0F);
    std::string reason = why_not_on(rung.arch, device.sm);
    if (reason.empty() && std::find(rung.types.begin(), rung.types.end(), type) == rung.types.end())
      reason = "does not compute " + options.type;
    if (reason.empty()) reason = rung.refuses(p);
    if (!reason.empty()) throw Waived(formatted("{}: {}", stem, reason));
    const Pair pair(rung, *rungs[1], device, recorder, spec);
    const size_t written = write(csv, pair.record(), rung, p, options);
    const std::vector<std::string> row = pair.times(written);
    runs.append(row);
    print(stdout, "{:24} {} records; {} ms, recorded {} ms\n", stem, written, row[5], row[6]);
  }
}

}  // namespace

TimelineHook::TimelineHook(cudaError_t (*set)(const TimelineBuffer&)) { setters().push_back(set); }

}  // namespace ladder

int main(int argc, char** argv) {
  CLI::App app("Writes down who waits for whom inside kernels, and what writing it down costs.");
  ladder::Options options;
  app.add_option("--type", options.type, "Of the operands; bf16 without");
  app.add_option("--shape", options.shape, "MxNxK; 4096x4096x4096 without");
  app.add_option("--blocks", options.blocks, "Numbers of the blocks that are written; 0,1 without")->delimiter(',');
  app.add_option("--records", options.records, "How many of each warp are written, the first ones; all without");
  app.add_option("--csv", options.csv, "Write them here; older files are replaced")->required();
  app.add_option("--device", options.device, "Number of the GPU")->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    ladder::print(stdout, "{}", app.help());
    return ladder::exit_ok;
  } catch (const CLI::ParseError& error) {
    ladder::print(stderr, "timeline: {}\n", error.what());
    return ladder::exit_usage;
  }
  try {
    ladder::run(options);
  } catch (const ladder::UsageError& error) {
    ladder::print(stderr, "timeline: {}\n", error.what());
    return ladder::exit_usage;
  } catch (const ladder::Waived& error) {
    ladder::print(stderr, "timeline: {}\n", error.what());
    return ladder::exit_waived;
  } catch (const std::exception& error) {
    ladder::print(stderr, "timeline: {}\n", error.what());
    return ladder::exit_wrong;
  }
  return ladder::exit_ok;
}
