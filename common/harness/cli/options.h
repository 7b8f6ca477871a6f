// The command line, the same for each rung's program and for `ladder`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/check/check.h"
#include "common/harness/cli/shapes.h"
#include "common/harness/operands.h"
#include "common/harness/timing/measure.h"
#include "common/rung.h"

namespace ladder {

/// How A and B are stored.
struct Layouts {
  MatrixLayout a, b;
  bool operator==(const Layouts&) const = default;
};

struct Options {
  bool list = false, json = false, explain = false;
  bool tune = false;  ///< first time all plans of a rung that has some, and keep the fastest in `plans`
  std::vector<const Rung*>
      rungs;                 ///< chosen by --kernels; without it those that compute `type`, and all where none does
  std::optional<Type> type;  ///< only this one; without it every rung runs its first type
  Out out = Out::f32;
  Scales scales = Scales::none;
  std::optional<Layouts> layouts;  ///< only these; without them each rung's own
  std::vector<Shape> shapes;
  bool shapes_are_explicit = false;  ///< sizes were spelled out, so one that cannot fit the GPU is a usage error
  float alpha = 1.0F, beta = 0.0F;
  Epilogue epilogue = {};
  int groups = 0;
  GroupRows group_rows = GroupRows::equal;
  int ld_pad = 0;
  Init init = Init::normal;
  uint64_t seed = 1;
  bool cold = true;
  Protocol protocol = Protocol::rounds;
  int rounds = 0;         ///< 0: chosen by the time that a round takes
  int sittings = 1;       ///< how often the whole plan is gone through
  int until_sitting = 0;  ///< no further than this one now; 0: through all of them
  CheckMode check = CheckMode::full;
  bool check_only = false;
  std::string csv, samples_csv, ceilings, environment, plans;  ///< paths; empty: not wanted
  bool resume = false;
  int device = 0;
  bool sim = false;                                       ///< asked for the simulator
  std::string sim_gpu, sim_seed, sim_counts, sim_checks;  ///< a name, a number, a path, a list; empty: not given
  std::string command;                                    ///< as typed
};

/// Parses the command line. Throws UsageError with one line that names the option and what it takes. --help prints
/// and sets `finished`. On the simulator nothing is timed (check_only), sizes that are not given are
/// small, and one line on stderr names the options that were given in vain.
Options parse_options(int argc, const char* const* argv, bool& finished);

/// The rungs that "05,07-09,12b" names; a range takes in variants. Throws UsageError naming the nearest rung.
std::vector<const Rung*> select_rungs(const std::string& text, const std::vector<Rung>& all);

std::string name(Out out);
std::string name(Init init);
std::string name(GroupRows rows);
std::string name(const Layouts& layouts);  ///< nn, nt, tn or tt: A and B, each as in the product, or transposed
std::string name(Protocol protocol);
std::string name(const Epilogue& epilogue);  ///< "bias,gelu"; "none"

}  // namespace ladder
