#include "executor/unit.h"

#include <algorithm>
#include <cstring>

#include "error.h"
#include "text.h"

namespace sim {
namespace {

constexpr uint32_t param_alignment = 128;  ///< of a tensor map among the parameters; cuTensorMapEncode asks for 64

Clocks clocks_of(const LaunchParams& launch, bool races) {
  const uint32_t actors = launch.actors_per_block();
  if (launch.cooperative && !races)
    return Clocks(launch.blocks_per_cluster() * actors, uint32_t(launch.grid.count()) / launch.blocks_per_cluster(),
                  launch.tensor_memory);
  return Clocks(uint32_t((launch.cooperative ? launch.grid : launch.cluster).count()) * actors, 1,
                launch.tensor_memory);
}

/// Whether a preset differs from block to block. It is the same in all lanes.
bool is_of_block(Preset::What what) {
  switch (what) {
    case Preset::ctaid_x:
    case Preset::ctaid_y:
    case Preset::ctaid_z:
    case Preset::smid:
    case Preset::cluster_ctaid_x:
    case Preset::cluster_ctaid_y:
    case Preset::cluster_ctaid_z:
    case Preset::clusterid_x:
    case Preset::clusterid_y:
    case Preset::clusterid_z:
      return true;
    default:
      return false;
  }
}

void preset(const Unit& unit, Warp& warp, const Preset& p) {
  const LaunchParams& launch = unit.launch;
  const Block& block = *warp.block;
  const Extent &size = launch.block, &in_cluster = launch.cluster;
  uint64_t variable = 0;
  if (p.what == Preset::variable) {
    variable = unit.memory.variable(&unit.module, p.name);
    if (!variable) throw Error(formatted("kernel {}: variable {} was not defined", unit.program.kernel, p.name));
  }
  for (uint32_t l = 0; l < warp_size; ++l) {
    const uint32_t thread = warp.index * warp_size + l;
    const auto value = [&]() -> uint64_t {
      switch (p.what) {
        case Preset::constant:
          return p.value;
        case Preset::param_address:
          return reinterpret_cast<uint64_t>(unit.param()) + p.value;
        case Preset::variable:
          return variable + p.value;
        case Preset::ntid_x:
          return size.x;
        case Preset::ntid_y:
          return size.y;
        case Preset::ntid_z:
          return size.z;
        case Preset::ctaid_x:
          return block.index.x;
        case Preset::ctaid_y:
          return block.index.y;
        case Preset::ctaid_z:
          return block.index.z;
        case Preset::nctaid_x:
          return launch.grid.x;
        case Preset::nctaid_y:
          return launch.grid.y;
        case Preset::nctaid_z:
          return launch.grid.z;
        case Preset::tid_x:
          return thread % size.x;
        case Preset::tid_y:
          return thread / size.x % size.y;
        case Preset::tid_z:
          return thread / size.x / size.y;
        case Preset::laneid:
          return l;
        case Preset::warpid:
          return warp.index;
        case Preset::nwarpid:
          return block.warps.size();
        case Preset::smid:
          return unit.index % launch.sms;
        case Preset::nsmid:
          return launch.sms;
        case Preset::gridid:
          return 1;
        case Preset::zero:
          return 0;
        case Preset::lanemask_eq:
          return Mask{1} << l;
        case Preset::lanemask_lt:
          return (Mask{1} << l) - 1;
        case Preset::lanemask_le:
          return ((Mask{1} << l) - 1) | Mask{1} << l;
        case Preset::lanemask_gt:
          return ~(((Mask{1} << l) - 1) | Mask{1} << l);
        case Preset::lanemask_ge:
          return ~((Mask{1} << l) - 1);
        case Preset::dynamic_smem:
          return launch.dynamic_smem;
        case Preset::total_smem:
          return block.shared.size();
        case Preset::shared_address:
          return uint64_t{block.rank} << cluster_rank_shift | p.value;
        case Preset::reserved_smem:
          return block.shared.reserved() + p.value;
        case Preset::cluster_ctaid_x:
          return block.index.x % in_cluster.x;
        case Preset::cluster_ctaid_y:
          return block.index.y % in_cluster.y;
        case Preset::cluster_ctaid_z:
          return block.index.z % in_cluster.z;
        case Preset::cluster_nctaid_x:
          return in_cluster.x;
        case Preset::cluster_nctaid_y:
          return in_cluster.y;
        case Preset::cluster_nctaid_z:
          return in_cluster.z;
        case Preset::cluster_ctarank:
          return block.rank;
        case Preset::cluster_nctarank:
          return in_cluster.count();
        case Preset::clusterid_x:
          return block.index.x / in_cluster.x;
        case Preset::clusterid_y:
          return block.index.y / in_cluster.y;
        case Preset::clusterid_z:
          return block.index.z / in_cluster.z;
        case Preset::nclusterid_x:
          return launch.grid.x / in_cluster.x;
        case Preset::nclusterid_y:
          return launch.grid.y / in_cluster.y;
        case Preset::nclusterid_z:
          return launch.grid.z / in_cluster.z;
        case Preset::is_explicit_cluster:
          return launch.explicit_cluster;
        case Preset::grid_workspace_high:
          return launch.grid_workspace >> 32;
        case Preset::grid_workspace_low:
          return launch.grid_workspace & 0xffffffff;
      }
      return 0;
    }();
    if (p.bytes == 255) {  // a predicate is one word
      const Mask word = p.what == Preset::is_explicit_cluster && value ? all_lanes : Mask(value);
      std::memcpy(warp.registers + p.offset, &word, 4);
      return;
    }
    if (p.bytes == 4 && is_of_block(p.what)) {
      std::fill_n(at<uint32_t>(warp.registers, p.offset), warp_size, uint32_t(value));
      return;
    }
    std::memcpy(warp.registers + p.offset + size_t{l} * p.bytes, &value, p.bytes);
  }
}

}  // namespace

Unit::Unit(const Program& program, const ptx::Module& module, const LaunchParams& launch, const DeviceMemory& memory,
           bool races)
    : program(program),
      module(module),
      launch(launch),
      memory(memory),
      clocks(clocks_of(launch, races)),
      counts(program.ops.size()),
      runs_(program.ops.size() + 1),
      param_bytes_(launch.params.size() + param_alignment) {
  const uint64_t begin = reinterpret_cast<uint64_t>(param_bytes_.data());
  param_ = param_bytes_.data() + (param_alignment - begin % param_alignment) % param_alignment;
  std::copy(launch.params.begin(), launch.params.end(), param_);
  const uint64_t count = (launch.cooperative ? launch.grid : launch.cluster).count();
  for (uint32_t number = 0; number < count; ++number)
    blocks.push_back(std::make_unique<Block>(program, launch, clocks, number));
  for (const auto& block : blocks)
    for (Warp& warp : block->warps)
      for (const Preset& p : program.presets) preset(*this, warp, p);
}

void Unit::add_runs() {
  Executions now;
  for (size_t i = 0; i < counts.size(); ++i) {
    now.warps += runs_[i].warps;
    now.lanes += runs_[i].lanes;
    runs_[i] = {};
    counts[i].warps += now.warps;
    counts[i].lanes += now.lanes;
  }
  runs_.back() = {};
}

void Unit::start(uint64_t new_index) {
  index = new_index;
  random.seed(launch.seed * 0x9e3779b97f4a7c15 + index);
  clocks.reset();
  progress = 0;
  to_cancel = index + stride;
  cancel_has_failed = false;
  for (const auto& block : blocks) {
    block->start(program, place(index * clusters() + block->number / launch.blocks_per_cluster(), block->rank));
    for (Warp& warp : block->warps)
      for (const Preset& p : program.presets)
        if (is_of_block(p.what)) preset(*this, warp, p);
  }
}

Extent Unit::place(uint64_t cluster, uint32_t rank) const {
  const Extent& size = launch.cluster;
  const uint64_t nx = launch.grid.x / size.x, ny = launch.grid.y / size.y;
  return {uint32_t(cluster % nx) * size.x + rank % size.x,
          uint32_t(cluster / nx % ny) * size.y + rank / size.x % size.y,
          uint32_t(cluster / nx / ny) * size.z + rank / size.x / size.y};
}

}  // namespace sim
