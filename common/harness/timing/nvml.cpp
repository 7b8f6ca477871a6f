#include "common/harness/timing/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ladder {
namespace {

// Declared here because the header belongs to a package that a machine with a driver need not have. Values and
// signatures: NVML API Reference, "Device Queries" and "NvmlClocksEventReasons".
constexpr int clock_sm = 1;
constexpr int temperature_gpu = 0;

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// The value of a query of the form `nvmlReturn_t name(device, T*)`.
template <class T>
std::optional<T> query(void* library, void* device, const char* name) {
  const auto function = find<int (*)(void*, T*)>(library, name);
  T value{};
  if (!function || function(device, &value) != 0) return std::nullopt;
  return value;
}

/// The same for `nvmlReturn_t name(device, int selector, unsigned*)`.
std::optional<unsigned> query(void* library, void* device, const char* name, int selector) {
  const auto function = find<int (*)(void*, int, unsigned*)>(library, name);
  unsigned value = 0;
  if (!function || function(device, selector, &value) != 0) return std::nullopt;
  return value;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string throttle_names(unsigned long long bits) {
  constexpr std::pair<unsigned long long, const char*> reasons[] = {
      {0x04, "sw_power_cap"}, {0x08, "hw_slowdown"}, {0x10, "sync_boost"},
      {0x20, "sw_thermal"},   {0x40, "hw_thermal"},  {0x80, "hw_power_brake"},
  };
  std::string names;
  for (const auto& [bit, name] : reasons)
    if (bits & bit) names += (names.empty() ? "" : "+") + std::string(name);
  return names.empty() ? "none" : names;
}

Nvml::Nvml(const std::string& pci_bus_id) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library_) return;
  const auto init = find<int (*)()>(library_, "nvmlInit_v2");
  const auto by_bus = find<int (*)(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (!init || !by_bus || init() != 0 || by_bus(pci_bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

Nvml::~Nvml() {
  if (!library_) return;
  if (const auto shutdown = find<int (*)()>(library_, "nvmlShutdown")) shutdown();
  dlclose(library_);
}

std::optional<GpuState> Nvml::read() const {
  if (!device_) return std::nullopt;
  const auto power = query<unsigned>(library_, device_, "nvmlDeviceGetPowerUsage");  // milliwatts
  const auto temperature = query(library_, device_, "nvmlDeviceGetTemperature", temperature_gpu);
  const auto throttle = query<unsigned long long>(library_, device_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (!power || !temperature) return std::nullopt;
  return GpuState{*power / 1000.0, static_cast<double>(*temperature), throttle.value_or(0)};
}

std::string Nvml::driver_version() const {
  if (!library_) return "";
  char version[96] = "";
  const auto function = find<int (*)(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  return function && function(version, sizeof version) == 0 ? version : "";
}

std::optional<double> Nvml::power_limit_w() const {
  if (!device_) return std::nullopt;
  const auto limit = query<unsigned>(library_, device_, "nvmlDeviceGetEnforcedPowerLimit");
  return limit ? std::optional(*limit / 1000.0) : std::nullopt;
}

std::optional<double> Nvml::max_sm_clock_mhz() const {
  if (!device_) return std::nullopt;
  const auto clock = query(library_, device_, "nvmlDeviceGetMaxClockInfo", clock_sm);
  return clock ? std::optional<double>(*clock) : std::nullopt;
}

GpuSampler::GpuSampler(const Nvml& nvml) : nvml_(nvml) {
  thread_ = std::thread([this] {
    while (!stop_) {
      const std::optional<GpuState> state = nvml_.read();
      if (!state) return;
      samples_.push_back(*state);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
}

GpuSampler::~GpuSampler() { finish(); }

std::optional<GpuState> GpuSampler::finish() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  if (samples_.empty()) return std::nullopt;
  std::vector<double> powers;
  GpuState summary{};
  for (const GpuState& sample : samples_) {
    powers.push_back(sample.power_w);
    summary.temperature = std::max(summary.temperature, sample.temperature);
    summary.throttle_bits |= sample.throttle_bits;
  }
  summary.power_w = median(powers);
  return summary;
}

}  // namespace ladder
