#include "common/harness/cutlass/baseline.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "common/harness/timing/fastest.h"
#include "common/rung.h"

namespace ladder {

std::vector<CutlassKernel> load_cutlass(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library ? dlsym(library, cutlass_symbol) : nullptr;
  if (!symbol)
    throw std::runtime_error(std::string("CUTLASS as a baseline: ") + dlerror() + " (build it again, or remove it)");
  return *reinterpret_cast<decltype(&ladder_cutlass_kernels_1)>(symbol)();
}

const std::vector<CutlassKernel>& cutlass_kernels() {
  static const std::vector<CutlassKernel> kernels =
      load_cutlass(std::filesystem::read_symlink("/proc/self/exe").replace_filename("libcutlass_baseline.so"));
  return kernels;
}

std::vector<const CutlassKernel*> cutlass_kernels_for(const Problem& p, const Device& device,
                                                      const std::vector<CutlassKernel>& kernels) {
  std::vector<const CutlassKernel*> found;
  for (const CutlassKernel& kernel : kernels)
    if (why_not_on(kernel.arch, device.sm).empty() && kernel.smem_bytes <= device.smem_block_bytes && kernel.takes(p))
      found.push_back(&kernel);
  return found;
}

Cutlass::Cutlass(const Operands& operands, float alpha, float beta, const Device& device, cudaStream_t stream,
                 const CutlassChoice* known) {
  const Problem p = operands.problem(0, alpha, beta, stream);
  std::vector<const CutlassKernel*> candidates = cutlass_kernels_for(p, device);
  if (known) candidates.assign(*known ? 1 : 0, *known);
  size_t bytes = 0;
  for (const CutlassKernel* kernel : candidates) bytes = std::max(bytes, kernel->workspace_bytes(p));
  if (bytes > 0) workspace_.emplace(bytes);
  if (known) {
    choice_ = *known;
    return;
  }
  const auto run = [&](size_t i) { candidates[i]->run(p, workspace_ ? workspace_->as<void>() : nullptr); };
  if (const std::optional<size_t> best = fastest(candidates.size(), run, stream)) choice_ = candidates[*best];
}

}  // namespace ladder
