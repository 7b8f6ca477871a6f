#include "common/harness/device.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <sys/utsname.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <thread>

#include "common/harness/error.h"
#include "common/harness/json.h"
#include "common/harness/simulator.h"
#include "common/harness/timing/nvml.h"
#include "common/rung.h"
#include "common/text.h"

namespace ladder {
namespace {

/// 13000 -> "13.0", the runtime's and the driver's way of counting.
std::string cuda_version(int number) { return formatted("{}.{}", number / 1000, number % 1000 / 10); }

std::string cublas_version() {
  int major = 0, minor = 0, patch = 0;
  cublas_check(cublasGetProperty(MAJOR_VERSION, &major));
  cublas_check(cublasGetProperty(MINOR_VERSION, &minor));
  cublas_check(cublasGetProperty(PATCH_LEVEL, &patch));
  return formatted("{}.{}.{}", major, minor, patch);
}

/// The value of the first line of `path` that begins with `key` and a colon; "" without one.
std::string first_value(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0 && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "";
}

}  // namespace

Device open_device(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw Waived(formatted("no GPU here: {}",
                           count == 0 && status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status)));
  if (index < 0 || index >= count)
    throw UsageError(formatted("--device takes a number from 0 to {}, got {}", count - 1, index));
  cuda_check(cudaSetDevice(index));
  cuda_check(cudaFree(nullptr));  // creates the context, so that a failing GPU shows here

  cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, index));
  int runtime = 0;
  cuda_check(cudaRuntimeGetVersion(&runtime));

  Device device;
  device.index = index;
  device.simulated = on_simulator();
  device.name = properties.name;
  for (int byte = 0; byte < 4; ++byte)
    device.id += formatted("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[byte]));
  device.sm = properties.major * 10 + properties.minor;
  device.sm_count = properties.multiProcessorCount;
  device.smem_block_bytes = properties.sharedMemPerBlockOptin;
  device.l2_bytes = properties.l2CacheSize;
  device.memory_bytes = properties.totalGlobalMem;
  const DeviceLimits limits = device_limits();
  device.memory_clock_mhz = limits.memory_mhz;
  device.memory_bus_bits = limits.memory_bus_bits;
  device.cuda = cuda_version(runtime);
  if (device.simulated) return device;

  char bus_id[32];
  cuda_check(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index));
  int driver = 0;
  cuda_check(cudaDriverGetVersion(&driver));
  device.pci_bus_id = bus_id;
  const std::string driver_version = Nvml(bus_id).driver_version();
  device.driver = driver_version.empty() ? "CUDA " + cuda_version(driver) : driver_version;
  device.cublas = cublas_version();
  return device;
}

size_t free_memory() {
  size_t free = 0, total = 0;
  cuda_check(cudaMemGetInfo(&free, &total));
  return free;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void write_environment(const std::string& path, const Device& device, const std::string& command) {
  const Nvml nvml(device.pci_bus_id);
  utsname host;
  uname(&host);
  const auto number = [](std::optional<double> value) { return value ? formatted("{}", *value) : "null"; };
  std::ofstream file(path);
  file << "{\n"
       << formatted("  \"gpu\": {},\n", json_string(device.name))
       << formatted("  \"gpu_id\": {},\n", json_string(device.id)) << formatted("  \"sm\": {},\n", device.sm)
       << formatted("  \"sm_count\": {},\n", device.sm_count) << formatted("  \"l2_bytes\": {},\n", device.l2_bytes)
       << formatted("  \"smem_block_bytes\": {},\n", device.smem_block_bytes)
       << formatted("  \"memory_bytes\": {},\n", device.memory_bytes)
       << formatted("  \"memory_clock_mhz\": {},\n", device.memory_clock_mhz)
       << formatted("  \"memory_bus_bits\": {},\n", device.memory_bus_bits)
       << formatted("  \"max_sm_clock_mhz\": {},\n", number(nvml.max_sm_clock_mhz()))
       << formatted("  \"power_limit_w\": {},\n", number(nvml.power_limit_w()))
       << formatted("  \"driver\": {},\n", json_string(device.driver))
       << formatted("  \"cuda\": {},\n", json_string(device.cuda))
       << formatted("  \"cublas\": {},\n", json_string(device.cublas))
       << formatted("  \"host_cpu\": {},\n", json_string(first_value("/proc/cpuinfo", "model name")))
       << formatted("  \"host_threads\": {},\n", std::thread::hardware_concurrency())
       << formatted("  \"os\": {},\n", json_string(formatted("{} {}", host.sysname, host.release)))
       << formatted("  \"commit\": {},\n", json_string(build_commit()))
       << formatted("  \"utc\": {},\n", json_string(utc_now()))
       << formatted("  \"command\": {}\n", json_string(command)) << "}\n";
  file.close();
  if (!file) throw UsageError(formatted("--environment: cannot write '{}'", path));
}

}  // namespace ladder
