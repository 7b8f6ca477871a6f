#include "common/harness/harness.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/harness/cli/list.h"
#include "common/harness/cli/options.h"
#include "common/harness/device.h"
#include "common/harness/error.h"
#include "common/harness/plan.h"
#include "common/harness/run.h"
#include "common/harness/simulator.h"
#include "common/harness/write_console.h"
#include "common/harness/write_csv.h"
#include "common/text.h"

namespace ladder {
namespace {

/// The simulator where it is asked for, and, said in one line, where there is no GPU: then this program starts anew.
void choose_device(const Options& options, char* const* argv) {
  const std::string no_gpu = options.sim ? "" : why_no_gpu();
  if (options.sim || !no_gpu.empty()) {
    const std::string library = find_simulator(options.sim ? "--sim" : no_gpu);
    if (!options.sim) print(stderr, "{}: running on the simulator (checked and counted, not timed)\n", no_gpu);
    choose_simulated_gpu(options.sim_gpu, argv);
    restart_on_simulator(library, argv);
  }
  if (!options.sim_gpu.empty() || !options.sim_seed.empty() || !options.sim_counts.empty() ||
      !options.sim_checks.empty())
    throw UsageError("--sim-gpu, --sim-seed, --sim-checks and --sim-counts are the simulator's: add --sim");
}

/// The simulator does some 50 to 500 million FMAs per second.
void warn_of_long_work(const std::vector<Cell>& cells) {
  double fmas = 0;
  for (const Cell& cell : cells) fmas += static_cast<double>(cell.shape.m) * cell.shape.n * cell.shape.k;
  if (fmas > 20e9)
    print(stderr, "the simulator may take {:.0f} minutes and more for this; 256 256 256 shows as much\n", fmas / 20e9);
}

/// Runs all cells that are not known yet. Returns the exit status.
int run_all(const Options& options) {
  const std::unique_ptr<ResultsCsv> csv = options.csv.empty() ? nullptr : std::make_unique<ResultsCsv>(options.csv);
  const std::unique_ptr<SamplesCsv> samples =
      options.samples_csv.empty() ? nullptr : std::make_unique<SamplesCsv>(options.samples_csv);
  const Device device = open_device(options.device);  // after the files: what cannot be written is said first
  const Conditions conditions{options, device};
  if (csv) csv->refuse_other_gpu(device);
  if (!options.environment.empty()) write_environment(options.environment, device, options.command);

  std::vector<Cell> cells = plan(options);
  if (options.explain) {
    const Runner runner(conditions);
    for (const Cell& cell : cells)
      print(stdout, "{} {} {}: {}", cell.rung->stem(), name(cell.type), cell.shape.str(), runner.explain(cell));
    return exit_ok;
  }
  const size_t asked = cells.size();
  if (options.resume) std::erase_if(cells, [&](const Cell& cell) { return csv->holds(conditions, cell); });
  if (cells.size() < asked)
    print(stderr, "resuming: {} of {} cells are in {} already\n", asked - cells.size(), asked, options.csv);
  if (cells.empty()) return exit_ok;
  if (device.simulated) warn_of_long_work(cells);

  Runner runner(conditions);
  if (!options.check_only) runner.find_ceilings(cells);
  const Console console(conditions, cells);
  console.header();
  size_t wrong = 0, failed = 0, waived = 0, done = 0;
  while (done < cells.size() && !runner.context_lost()) {
    Result result{cells[done]};
    try {
      result = runner.run(cells[done]);
    } catch (const Interrupted&) {
      if (csv)
        print(stderr, "interrupted: {} of {} cells are in {}; the same command with --resume goes on from there\n",
              asked - cells.size() + done, asked, options.csv);
      else
        print(stderr, "interrupted after {} of {} cells\n", done, asked);
      return exit_interrupted;
    }
    if (csv) csv->append(conditions, result);
    if (samples) samples->append(conditions, result);
    console.row(result);
    wrong += result.status == Status::wrong;
    failed += result.status == Status::failed;
    waived += result.status == Status::waived;
    ++done;
    if (result.status != Status::ok)  // once is enough
      cells.erase(std::remove_if(cells.begin() + done, cells.end(),
                                 [&](const Cell& cell) { return cell.same_problem(result.cell); }),
                  cells.end());
    console.progress(done, cells.size(), result);
  }
  if (done < cells.size())
    print(stderr, "stopping: the GPU can run nothing more in this process; {} cells are left\n", cells.size() - done);
  if (wrong && !options.check_only) print(stderr, "what is wrong was not timed; --check off times it all the same\n");
  if (wrong || failed) return exit_wrong;
  return waived == cells.size() ? exit_waived : exit_ok;
}

}  // namespace

int run(int argc, char* const* argv) {
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  const auto complain = [&](const std::exception& error, int status) {
    std::fflush(stdout);
    print(stderr, "{}: {}\n", program, error.what());
    return status;
  };
  try {
    bool finished = false;
    const Options options = parse_options(argc, argv, finished);
    if (finished) return exit_ok;
    if (options.list) {
      print(stdout, "{}", options.json ? list_json(options.rungs) : list_text(options.rungs));
      return exit_ok;
    }
    if (!on_simulator()) choose_device(options, argv);
    if (on_simulator()) {
      choose_simulated_gpu(options.sim_gpu, argv);
      configure_simulator(options.sim_seed, options.sim_checks, options.sim_counts);
    }
    catch_interrupts();
    return run_all(options);
  } catch (const UsageError& error) {
    return complain(error, exit_usage);
  } catch (const Waived& error) {
    return complain(error, exit_waived);
  } catch (const Interrupted& error) {
    return complain(error, exit_interrupted);
  } catch (const std::exception& error) {
    return complain(error, exit_wrong);
  }
}

}  // namespace ladder
