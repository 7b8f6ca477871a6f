#include "common/harness/workspace.h"

#include <vector>

#include "common/text.h"

namespace ladder {
namespace {

constexpr size_t guard_bytes = 4096;    // before and after the workspace
constexpr unsigned char guard = 0xBA;   // each byte of a guard band
constexpr unsigned char poison = 0xFF;  // each byte of the workspace: NaN in every type

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

size_t Workspace::bytes(const Resources& resources) {
  if (resources.workspace_bytes == 0 && resources.locks == 0) return 0;
  return 2 * guard_bytes + round_up(resources.workspace_bytes) + resources.locks * sizeof(unsigned);
}

Workspace::Workspace(const Resources& resources)
    : workspace_bytes_(round_up(resources.workspace_bytes)), locks_(resources.locks), buffer_(bytes(resources)) {
  if (buffer_.bytes()) fill(nullptr);
}

Problem Workspace::lend(Problem p) const {
  if (workspace_bytes_) p.workspace = buffer_.as<char>() + guard_bytes;
  if (locks_) p.locks = reinterpret_cast<unsigned*>(buffer_.as<char>() + 2 * guard_bytes + workspace_bytes_);
  return p;
}

void Workspace::fill(cudaStream_t stream) const {
  if (!buffer_.bytes()) return;
  char* const start = buffer_.as<char>();
  cuda_check(cudaMemsetAsync(start, guard, 2 * guard_bytes + workspace_bytes_, stream));
  if (workspace_bytes_) cuda_check(cudaMemsetAsync(start + guard_bytes, poison, workspace_bytes_, stream));
  if (locks_)
    cuda_check(cudaMemsetAsync(start + 2 * guard_bytes + workspace_bytes_, 0, locks_ * sizeof(unsigned), stream));
}

std::string Workspace::violation(cudaStream_t stream) const {
  if (!buffer_.bytes()) return "";
  cuda_check(cudaStreamSynchronize(stream));
  const char* const start = buffer_.as<char>();
  std::vector<unsigned char> guards(2 * guard_bytes);
  cuda_check(cudaMemcpy(guards.data(), start, guard_bytes, cudaMemcpyDeviceToHost));
  cuda_check(cudaMemcpy(guards.data() + guard_bytes, start + guard_bytes + workspace_bytes_, guard_bytes,
                        cudaMemcpyDeviceToHost));
  size_t changed = 0;
  for (const unsigned char byte : guards) changed += byte != guard;
  if (changed) return formatted("wrote outside its workspace: {} bytes of the guard bands changed", changed);

  std::vector<unsigned> locks(locks_);
  cuda_check(cudaMemcpy(locks.data(), start + 2 * guard_bytes + workspace_bytes_, locks_ * sizeof(unsigned),
                        cudaMemcpyDeviceToHost));
  size_t set = 0;
  for (const unsigned lock : locks) set += lock != 0;
  return set ? formatted("left {} of {} locks set: the next launch would not wait", set, locks_) : "";
}

}  // namespace ladder
