// The whole of a program: options, check, measurement, rows.
#pragma once

namespace ladder {

/// Runs the rungs of this program as the command line says, on the simulator where --sim asks for it or there is no GPU.
/// Returns the exit status (error.h) and lets nothing escape: each error becomes one line on stderr.
int run(int argc, char* const* argv);

}  // namespace ladder
