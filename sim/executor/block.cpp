#include "executor/block.h"

namespace sim {
namespace {

uint32_t shared_bytes(const Program& program, const LaunchParams& launch) {
  const uint32_t align = program.dynamic_shared_align;
  const uint32_t fixed =
      launch.dynamic_smem ? (program.shared_bytes + align - 1) / align * align : program.shared_bytes;
  return fixed + launch.dynamic_smem;
}

}  // namespace

Block::Block(const Program& program, const LaunchParams& launch, const Clocks& clocks, uint32_t number)
    : number(number),
      rank(number % launch.blocks_per_cluster()),
      copy_actor(number * launch.actors_per_block() + launch.warps_per_block()),
      tensor_actor(copy_actor + 1),
      warps(launch.warps_per_block()),
      shared(shared_bytes(program, launch), clocks, number * launch.actors_per_block(), program.reserved_smem),
      tensor(program.tensor_memory) {
  const size_t file = (program.register_bytes + 63) / 64 * 64;
  registers_ = std::make_unique<std::byte[]>(file * warps.size() + 64);
  frames_.resize(size_t{program.frame_bytes} * warp_size * warps.size());
  const auto base = (reinterpret_cast<uintptr_t>(registers_.get()) + 63) / 64 * 64;
  for (uint32_t w = 0; w < warps.size(); ++w) {
    Warp& warp = warps[w];
    warp.block = this;
    warp.index = w;
    warp.actor = number * launch.actors_per_block() + w;
    warp.registers = reinterpret_cast<std::byte*>(base) + file * w;
    warp.frames = frames_.data() + size_t{program.frame_bytes} * warp_size * w;
    const uint32_t left = launch.threads_per_block() - w * warp_size;
    warp.exist = left >= warp_size ? all_lanes : (Mask{1} << left) - 1;
  }
}

void Block::start(const Program& program, Extent new_index) {
  index = new_index;
  shared.reset();
  barriers.fill({});
  exited.clear();
  mbarriers.clear();
  warpgroups.assign((warps.size() + warpgroup_warps - 1) / warpgroup_warps, {});
  tensor.reset();
  may_allocate = true;
  pair_allocations = 0;
  if (program.tensor_memory) copied_swizzle.assign((shared.size() + 15) / 16, 0);
  free_registers = 0;
  live_warps = uint32_t(warps.size());
  for (Warp& warp : warps) {
    warp.pc.fill(0);
    if (program.callees.size() > 1) {
      for (auto& calls : warp.calls) calls.clear();
      for (auto& kept : warp.kept) kept.clear();
    }
    warp.stack.fill(program.stack_begin);
    warp.live = warp.exist;
    warp.parked = 0;
    warp.state = Warp::ready;
    warp.spun = false;
    warp.had_turn = 0;
    warp.cluster_arrived = false;
    warp.cluster_waited = 0;
    warp.poll = {};
    warp.wgmma_under_way = 0;
    warp.accumulates.assign(program.accumulators.empty() ? 0 : program.register_bytes / 32, false);
    warp.tensor_loads.clear();
    warp.tensor_stores.clear();
    warp.moved.clear();
    warp.allocates_in_pair = false;
    warp.is_loading.assign(program.tensor_memory ? program.register_bytes / 32 : 0, false);
    warp.registers_held = program.registers;
    warp.bulk_groups.fill(0);
    warp.copies.clear();
    warp.copies_issued = warp.landed_at = warp.waited_at = 0;
    warp.groups.fill(0);
  }
}

}  // namespace sim
