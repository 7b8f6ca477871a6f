// Facts about the GPU at hand and the software around it.
#pragma once

#include <cstddef>
#include <string>

namespace ladder {

struct Device {
  int index = 0;
  bool simulated = false;  ///< then there are no driver and no cuBLAS, and nothing can be timed
  std::string name;        ///< "NVIDIA H200"
  std::string id;          ///< first 8 hexadecimal digits of its UUID: which one of this name
  int sm = 0;              ///< compute capability, 90 for sm_90
  int sm_count = 0;
  size_t smem_block_bytes = 0;  ///< shared memory that a block may ask for
  size_t l2_bytes = 0;
  size_t memory_bytes = 0;
  double memory_clock_mhz = 0;  ///< this and the next: 0 where the driver does not state it
  int memory_bus_bits = 0;
  std::string pci_bus_id;
  std::string driver;  ///< "580.159.04", or the CUDA version that the driver supports where NVML is absent
  std::string cuda;    ///< of the runtime library, "13.0"
  std::string cublas;  ///< "13.1.0"
};

/// Opens device `index`. Throws Waived where there is no GPU, UsageError where there is none with that index.
Device open_device(int index);

/// Bytes that a cudaMalloc could get now.
size_t free_memory();

/// Short commit of the sources that this program was built from, "+dirty.<hash>" where they differed from it.
const char* build_commit();

/// Now, as "2026-11-20T12:00:00Z".
std::string utc_now();

/// Writes what a reader needs to judge the numbers: GPU, limits, versions, host, commit, command. Throws UsageError.
void write_environment(const std::string& path, const Device& device, const std::string& command);

}  // namespace ladder
