// Power, temperature and throttle reasons, sampled while a kernel is timed. The library is opened at run time:
// where it is absent everything here stays quietly empty.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ladder {

/// One reading, or the summary of many.
struct GpuState {
  double power_w;                    ///< median
  double temperature;                ///< degrees Celsius; highest
  unsigned long long throttle_bits;  ///< nvmlClocksThrottleReasons, all that occurred
};

/// Names of the bits that slow a GPU down, joined by '+'; "none" without any. Idle and application clocks do not count.
std::string throttle_names(unsigned long long bits);

class Nvml {
 public:
  /// Opens the library and the device with this PCI bus id; stays empty where either is not there.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<GpuState> read() const;
  std::string driver_version() const;           ///< empty without NVML
  std::optional<double> power_limit_w() const;  ///< enforced limit
  std::optional<double> max_sm_clock_mhz() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

/// Samples every 5 ms from construction to finish(), in a thread of its own.
class GpuSampler {
 public:
  explicit GpuSampler(const Nvml& nvml);
  ~GpuSampler();
  std::optional<GpuState> finish();

 private:
  const Nvml& nvml_;
  std::atomic<bool> stop_{false};
  std::vector<GpuState> samples_;
  std::thread thread_;
};

}  // namespace ladder
