#include "common/per_device.h"
#include "common/rung.h"

namespace ladder {

DeviceLimits device_limits() {
  static PerDevice<DeviceLimits> limits;
  return limits.get([](int device) {
    const auto attribute = [device](cudaDeviceAttr which) {
      int value = 0;
      cuda_check(cudaDeviceGetAttribute(&value, which, device));
      return value;
    };
    const int major = attribute(cudaDevAttrComputeCapabilityMajor),
              minor = attribute(cudaDevAttrComputeCapabilityMinor);
    return DeviceLimits{.sm = major * 10 + minor,
                        .sms = attribute(cudaDevAttrMultiProcessorCount),
                        .smem_block_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                        .clock_mhz = attribute(cudaDevAttrClockRate) / 1e3,
                        .memory_mhz = attribute(cudaDevAttrMemoryClockRate) / 1e3,
                        .memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth)};
  });
}

}  // namespace ladder
