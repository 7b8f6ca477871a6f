// bin/ceilings [--device N] [--csv FILE]: measures the ceilings, prints them, and writes them to a new FILE.
#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <optional>

#include "common/harness/csv.h"
#include "common/harness/error.h"
#include "common/harness/timing/ceilings.h"
#include "common/text.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Measures what this GPU can do at most: FP32 FMA, mma.sync, wgmma, DRAM, L2 and shared-memory bandwidth.");
  int index = 0;
  std::string path;
  app.add_option("--device", index, "Number of the GPU")->check(CLI::NonNegativeNumber);
  app.add_option("--csv", path, "Write them here; an older file is replaced");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    ladder::print(stdout, "{}", app.help());
    return ladder::exit_ok;
  } catch (const CLI::ParseError& error) {
    ladder::print(stderr, "ceilings: {}\n", error.what());
    return ladder::exit_usage;
  }
  try {
    const ladder::Device device = ladder::open_device(index);
    if (!path.empty()) std::filesystem::remove(path);
    std::optional<ladder::CsvFile> csv;
    if (!path.empty()) csv.emplace(path, ladder::ceiling_columns());
    for (const ladder::Ceiling& ceiling : ladder::measure_ceilings(device)) {
      ladder::print(stdout, "{:16} {:10.0f} {}\n", ceiling.name, ceiling.value, ceiling.unit);
      if (csv)
        csv->append({ceiling.name, ladder::formatted("{:.1f}", ceiling.value), ceiling.unit, device.name,
                     ladder::utc_now(), ladder::build_commit()});
    }
  } catch (const ladder::UsageError& error) {
    ladder::print(stderr, "ceilings: {}\n", error.what());
    return ladder::exit_usage;
  } catch (const ladder::Waived& error) {
    ladder::print(stderr, "ceilings: {}\n", error.what());
    return ladder::exit_waived;
  } catch (const std::exception& error) {
    ladder::print(stderr, "ceilings: {}\n", error.what());
    return ladder::exit_wrong;
  }
  return ladder::exit_ok;
}
