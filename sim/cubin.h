// What a cubin says of its kernels: the machine code of a GPU is an ELF file, and ptxas notes in it what each kernel uses.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sim {

struct KernelUsage {
  int registers = 0;    ///< a thread
  int local_bytes = 0;  ///< a thread: its frame, spilled registers included
};

/// By the kernel's name. Empty where `elf` is no ELF file or says nothing; nothing in it is trusted.
std::map<std::string, KernelUsage> kernel_usage(std::string_view elf);

}  // namespace sim
