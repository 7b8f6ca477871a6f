// The simulator's chapter against the simulator's interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "sim/checks.h"

namespace {

using sim::CheckName, sim::Severity;

TEST(SimulatorPage, HasAllChecksAndWhatTheyDo) {
  std::ifstream file(GEMM_LADDER_SOURCE "/docs/sim.md");
  std::vector<std::string> page, expected;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| `") &&
        (line.ends_with(" error |") || line.ends_with(" warning |") || line.ends_with(" off |")))
      page.push_back(line.substr(3, line.find('`', 3) - 3) + line.substr(line.rfind('|', line.size() - 2)));
  for (const CheckName& one : sim::check_names)
    expected.push_back(std::string(one.name) + (one.severity == Severity::off       ? "| off |"
                                                : one.severity == Severity::warning ? "| warning |"
                                                                                    : "| error |"));
  EXPECT_THAT(page, testing::UnorderedElementsAreArray(expected));
}

}  // namespace
