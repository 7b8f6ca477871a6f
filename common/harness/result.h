// What a run finds out about one cell. Numbers stay numbers until a writer prints them; what is not known is not there.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/cli/options.h"
#include "common/harness/device.h"
#include "common/harness/plan.h"
#include "common/harness/timing/nvml.h"
#include "sim/launch_counts.h"

namespace ladder {

/// What holds for every cell of a run.
struct Conditions {
  const Options& options;
  const Device& device;
};

enum class Status {
  ok,
  wrong,   ///< its result is
  waived,  ///< this GPU or this problem is not for this rung
  failed,  ///< it ended in an error
};

/// What the check found.
struct Checked {
  double max_error, bound;  ///< relative to S of bound.h
};

/// What the kernel takes of an SM.
struct Footprint {
  TileShape tile;
  size_t smem_bytes;                 ///< per block
  std::optional<int> registers;      ///< per thread
  std::optional<int> blocks_per_sm;  ///< that are resident together
  std::optional<double> waves;       ///< tiles of C over blocks that the GPU holds at a time
  std::optional<std::string>
      plan{};  ///< which of the rung's, and whether a model or a measurement chose it: "p64x128, predicted"
};

/// A library, timed in the same rounds.
struct Baseline {
  double ms, gflops;                ///< medians
  double ratio;                     ///< its time over the rung's: median over rounds
  std::optional<double> clock_mhz;  ///< of the SMs while it ran
  std::optional<double> ratio_clk;  ///< its clocks over the rung's
};

struct Timing {
  int rounds;
  double median_ms, p10_ms, p90_ms, gflops;
  std::optional<Baseline> cublas, cublaslt, cutlass;
  std::optional<std::string> cutlass_kernel;
  std::optional<double> ratio_best;    ///< to the fastest of them
  std::optional<std::string> ceiling;  ///< which one binds; none where that of its instruction was not measured
  std::optional<double> ceiling_fraction;
  std::optional<double> clock_mhz;    ///< of the SMs while the rung ran
  std::optional<double> flop_clk_sm;  ///< operations per clock and SM
  std::optional<GpuState> gpu;
  std::vector<std::pair<std::string, std::vector<double>>> samples;  ///< by contender, milliseconds of each round
};

struct Result {
  Cell cell;
  Status status = Status::ok;
  std::string reason{};  ///< of every status but ok
  std::optional<Checked> checked{};
  std::optional<Footprint> footprint{};
  std::optional<Timing> timing{};
  std::optional<CudaSimCounts> counts{};  ///< on the simulator
  std::string utc{};                      ///< when it was done
};

inline const char* name(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::wrong:
      return "wrong";
    case Status::waived:
      return "waived";
    case Status::failed:
      return "failed";
  }
  throw std::logic_error("no such status");
}

}  // namespace ladder
