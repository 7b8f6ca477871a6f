// Runs a kernel on the CPU: its warps in lockstep, its blocks spread over the CPU's cores, every access checked.
#pragma once

#include "device_memory.h"
#include "executor/counters.h"
#include "executor/launch.h"
#include "executor/program.h"
#include "ptx/ir.h"

namespace sim {

/// Error where the kernel uses something that the executor does not know.
Program decode(const ptx::Module& module, const ptx::Function& kernel);

/// Runs a decoded kernel to its end. `module` is the one whose variables `memory` knows. Error, with a full report,
/// at the first fault.
void run(const Program& program, const ptx::Module& module, const LaunchParams& launch, DeviceMemory& memory,
         Counters& counters);

/// decode() and run().
void run_kernel(const ptx::Module& module, const ptx::Function& kernel, const LaunchParams& launch,
                DeviceMemory& memory, Counters& counters);

}  // namespace sim
