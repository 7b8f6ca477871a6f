// The registers and local memory of kernels, out of a cubin: an ELF file, in which ptxas notes what each kernel uses.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sim {

struct KernelUsage {
  int registers = 0;    ///< per thread
  int local_bytes = 0;  ///< per thread: its frame, spilled registers included
};

/// By the kernel's name. Empty where `elf` is no ELF file or says nothing; nothing in it is trusted.
std::map<std::string, KernelUsage> kernel_usage(std::string_view elf);

}  // namespace sim
