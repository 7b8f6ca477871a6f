// The simulator (sim/) as the programs see it: how they come to run on it, and what it counted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/launch_counts.h"

namespace ladder {

/// Is this process's CUDA runtime the simulator?
bool on_simulator();

/// Why no GPU can be used here, as "no GPU here"; empty where one can. A GPU that fails is none of these reasons.
std::string why_no_gpu();

/// The simulator's library, in the build folder that this program lies in. Throws Waived, which says `why` it was looked
/// for, where it was not built.
std::string find_simulator(const std::string& why);

/// Starts this program anew, with the same command line, with `library` in the place of the CUDA runtime. Does not return;
/// throws std::runtime_error where that does not work.
[[noreturn]] void restart_on_simulator(const std::string& library, char* const* argv);

/// The GPUs that the simulator describes, for --sim-gpu.
const std::vector<std::string>& simulated_gpus();

/// Has the simulator describe this GPU; "": the one that it describes by itself. It reads the name when the process starts, so
/// where it already runs and describes another one, this program starts anew.
void choose_simulated_gpu(const std::string& gpu, char* const* argv);

/// Hands --sim-seed, --sim-checks and --sim-counts to the simulator, before the first launch; empty: not given. Without checks, and
/// without GEMM_LADDER_SIM_CHECKS, every finding in a rung is an error. From then on only count_launches() counts: the rung, and not
/// the harness around it. Throws UsageError where the file cannot be written.
void configure_simulator(const std::string& seed, const std::string& checks, const std::string& counts);

/// What the kernels did that `launches` launched. Only on the simulator.
CudaSimCounts count_launches(const std::function<void()>& launches);

/// What the simulator reported on a kernel's last fault, and where in the source; "" without one, and on a GPU.
std::string fault_report();

}  // namespace ladder
