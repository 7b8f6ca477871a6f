// Timing by CUDA events: a kernel and its baselines in the same rounds. docs/methodology.md gives the reasons.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/operands.h"
#include "common/harness/timing/nvml.h"
#include "common/harness/timing/sm_clock.h"

namespace ladder {

enum class Protocol {
  rounds,  ///< each contender once per round, in shuffled order: all meet much the same clocks
  steady,  ///< a third of a second of one contender back to back, in turn: each at the clock its own power allows
};

/// Something that solves a Problem: the kernel under test, or a baseline.
struct Contender {
  std::string name;
  std::function<void(const Problem&)> run;
};

/// How much is measured.
struct Pace {
  Protocol protocol = Protocol::rounds;
  int rounds = 0;    ///< 0: chosen by the time that one takes
  int sittings = 1;  ///< that share the time
  int sitting = 1;   ///< which one this is; it decides the order within the rounds
};

/// How many rounds of `round_ms` are measured. Where they are not given: of all sittings together as many as two seconds hold,
/// from 5 to 30, and of steady blocks 5. A sitting in which 30 rounds take at most 4 ms has all 30.
int rounds_of(const Pace& pace, double round_ms);

struct Measurement {
  std::vector<std::vector<double>> ms;  ///< [contender][round]; for steady the mean of a block
  std::vector<SmTime> sm;               ///< [contender] while it ran, and no other
  std::optional<GpuState> gpu;          ///< over the whole measurement
};

/// Linear interpolation between order statistics; q from 0 to 1. `values` must not be empty.
double quantile(std::vector<double> values, double q);

/// numerator[i] / denominator[i] of each round: what varies from round to round alike for both drops out.
std::vector<double> ratios(const std::vector<double>& numerator, const std::vector<double>& denominator);

/// How many copies of the operands a cold measurement rotates over: more than twice the L2, where memory permits.
int cold_sets(const OperandSpec& spec, size_t l2_bytes, size_t available_bytes);

/// Times all contenders on `operands`, a different set at each launch. Throws Interrupted, CudaError.
Measurement measure(const std::vector<Contender>& contenders, const Operands& operands, float alpha, float beta,
                    const Pace& pace, const Nvml& nvml, cudaStream_t stream);

}  // namespace ladder
