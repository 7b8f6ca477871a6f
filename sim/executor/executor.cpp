#include "executor/executor.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "error.h"
#include "executor/cluster.h"
#include "executor/tcgen05.h"
#include "text.h"

namespace sim {
namespace {

/// The counts of each operation, by source line and in total.
void add_counts(const Program& program, const std::vector<OpCount>& counts, Counters& counters) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const OpCount& n = counts[i];
    if (!n.warps) continue;
    const Op& op = program.ops[i];
    Counts c;
    c.instructions[size_t(op.counted)] = n.warps;
    c.lanes[size_t(op.counted)] = n.lanes;
    const uint64_t flops = n.lanes * op.flops + n.flops;
    if (op.counted == Class::fp32) c.flops[0] = flops;
    if (op.counted == Class::fp64) c.flops[1] = flops;
    if (op.counted == Class::fp16) c.flops[2] = flops;
    if (op.counted == Class::tensor) c.flops[3] = flops;
    // A copy reads global memory and writes shared memory, or the other way.
    const bool global_load =
        is_read(op.kind) || op.kind == Kind::async_copy || (op.kind == Kind::bulk_copy && op.space == Space::shared);
    const bool load = is_read(op.kind);
    (global_load ? c.global_loads : c.global_stores) = n.global_requests;
    (global_load ? c.global_load_sectors : c.global_store_sectors) = n.sectors;
    (global_load ? c.global_load_bytes : c.global_store_bytes) = n.global_bytes;
    (load ? c.shared_loads : c.shared_stores) = n.shared_requests;
    (load ? c.shared_load_wavefronts : c.shared_store_wavefronts) = n.wavefronts;
    (load ? c.shared_load_ideal : c.shared_store_ideal) = n.ideal;
    (load ? c.shared_load_bytes : c.shared_store_bytes) = n.shared_bytes;
    if (op.kind == Kind::barrier) c.barriers = n.warps;
    if (op.kind == Kind::tensor_multiply) {
      c.mma[size_t(MmaOptions::unpack(op.o.immediate).kind)] = n.lanes;
      c.mma_shared_bytes = n.tensor_bytes;
    }
    if (op.kind == Kind::tensor_copy) c.tensor_copy_bytes = n.tensor_bytes;
    if (op.kind == Kind::tensor_load || op.kind == Kind::tensor_store)
      (op.kind == Kind::tensor_load ? c.tensor_load_bytes : c.tensor_store_bytes) = n.lanes * op.elements.size() * 4;
    counters.total += c;
    const SourceLine& line = program.sources[op.source];
    counters.lines[{line.file, line.line}] += c;
  }
}

}  // namespace

void run(const Program& program, const ptx::Module& module, const LaunchParams& asked, DeviceMemory& memory,
         Counters& counters) {
  LaunchParams launch = asked;
  launch.tensor_memory = program.tensor_memory;
  const uint64_t blocks = launch.grid.count(), threads = launch.block.count();
  if (blocks == 0 || threads == 0 || threads > 1024)
    throw Error(formatted("kernel {}: a launch of {} blocks of {} threads", program.kernel, blocks, threads),
                Fault::launch_failure);
  if (launch.params.size() < program.param_bytes)
    throw Error(formatted("kernel {}: {} bytes of parameters, but it takes {}", program.kernel, launch.params.size(),
                          program.param_bytes),
                Fault::launch_failure);

  const Extent &grid = launch.grid, &cluster = launch.cluster;
  if (cluster.count() == 0 || grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    throw Error(formatted("kernel {}: a grid of {}x{}x{} blocks in clusters of {}x{}x{}", program.kernel, grid.x,
                          grid.y, grid.z, cluster.x, cluster.y, cluster.z),
                Fault::launch_failure);

  const uint64_t units = launch.cooperative ? 1 : blocks / cluster.count();
  // With clusterlaunchcontrol, a unit may do the work of those that follow it in its chain instead of having them launched. So what each does
  // depends on the program and the seed alone.
  const uint64_t at_once = std::max<uint64_t>(1, std::min<uint64_t>((units + 1) / 2, launch.sms / cluster.count()));
  const uint64_t chains = program.cancels_launches && !launch.cooperative ? at_once : units;
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr fault;
  const uint64_t wanted = launch.threads ? launch.threads : std::max(1U, std::thread::hardware_concurrency());
  const size_t count = std::min(wanted, chains);
  ProgressWatchdog watchdog(count);
  std::optional<GlobalRaces> races;
  if (launch.checks[Check::global_race] != Severity::off) races.emplace(blocks);
  memory.begin_launch();
  const auto work = [&](size_t worker) {
    try {
      Cluster unit(program, module, launch, memory, watchdog, worker, races ? &*races : nullptr);
      for (uint64_t i; (i = next++) < chains;)
        for (uint64_t u = i; u < units;) u = std::max(u + chains, unit.run(u, program.cancels_launches ? chains : 0));
      const std::lock_guard lock(mutex);
      add_counts(program, unit.counts(), counters);
    } catch (const Cluster::Stopped&) {
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!fault) fault = std::current_exception();
      next = units;  // the others stop after their cluster
      watchdog.stop();
    }
    watchdog.ended(worker);
  };
  std::vector<std::thread> workers;
  for (size_t i = 1; i < count; ++i) workers.emplace_back(work, i);
  work(0);
  for (std::thread& worker : workers) worker.join();
  if (fault) std::rethrow_exception(fault);
  ++counters.launches;
  counters.blocks += blocks;
}

void run_kernel(const ptx::Module& module, const ptx::Function& kernel, const LaunchParams& launch,
                DeviceMemory& memory, Counters& counters) {
  run(decode(module, kernel), module, launch, memory, counters);
}

}  // namespace sim
