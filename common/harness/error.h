// What can go wrong, as types. main() turns each into one line and an exit status; CudaError into exit 1.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <source_location>
#include <stdexcept>
#include <string>

#include "common/cuda_error.h"

namespace ladder {

enum ExitStatus { exit_ok = 0, exit_wrong = 1, exit_usage = 2, exit_waived = 77, exit_interrupted = 130 };

/// The user asked for something that cannot be: exit 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// This GPU, or its present state, cannot run this: exit 77.
struct Waived : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ctrl-C: exit 130. What is in the CSV stays there.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

void cublas_check(cublasStatus_t status, std::source_location where = std::source_location::current());

/// From the first call on, Ctrl-C sets a flag instead of ending the process; a second Ctrl-C ends it. Where whoever started this
/// process has it ignore Ctrl-C, as a shell does with `program &` in a script, it goes on doing so.
void catch_interrupts();

/// Throws Interrupted once Ctrl-C has been pressed. Called between launches and rows.
void stop_if_interrupted();

}  // namespace ladder
