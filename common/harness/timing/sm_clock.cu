#include "common/harness/timing/sm_clock.h"

#include "common/rung.h"

namespace ladder {
namespace {

__global__ void wait(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - start < ns);
}

/// One block per SM: its clock, which counts from one kernel to the next, and the GPU's time in nanoseconds.
__global__ void note(ulonglong2* mark) {
  unsigned sm;
  unsigned long long clocks, ns;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %clock64;" : "=l"(clocks));
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  if (sm < gridDim.x) mark[sm] = {clocks, ns};
}

}  // namespace

void hold(cudaStream_t stream, unsigned long long ns) {
  wait<<<1, 1, 0, stream>>>(ns);
  cuda_check(cudaGetLastError());
}

SmClock::SmClock(int marks) : sms_(device_limits().sms), marks_(sizeof(ulonglong2) * marks * sms_) {
  cuda_check(cudaMemset(marks_.as<void>(), 0, marks_.bytes()));
}

void SmClock::mark(cudaStream_t stream) {
  note<<<sms_, 1, 0, stream>>>(marks_.as<ulonglong2>() + used_++ * sms_);
  cuda_check(cudaGetLastError());
}

std::vector<SmTime> SmClock::finish() {
  std::vector<ulonglong2> marks(used_ * sms_);
  const size_t bytes = sizeof(ulonglong2) * marks.size();
  cuda_check(cudaMemcpy(marks.data(), marks_.as<void>(), bytes, cudaMemcpyDeviceToHost));
  cuda_check(cudaMemset(marks_.as<void>(), 0, bytes));
  std::vector<SmTime> spans(used_ > 0 ? used_ - 1 : 0);
  for (size_t i = 0; i < spans.size(); ++i)
    for (int sm = 0; sm < sms_; ++sm) {
      const ulonglong2 from = marks[i * sms_ + sm], to = marks[(i + 1) * sms_ + sm];
      if (from.y == 0 || to.x <= from.x || to.y <= from.y) continue;  // the blocks need not have met every SM
      spans[i] += {static_cast<double>(to.x - from.x), static_cast<double>(to.y - from.y)};
    }
  used_ = 0;
  return spans;
}

}  // namespace ladder
