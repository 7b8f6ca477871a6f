// What the simulator says when a program is wrong, or asks for something that the simulator does not know.
#pragma once

#include <stdexcept>
#include <string>

namespace sim {

/// The kind of a fault, as far as the CUDA runtime tells one from another (cudaErrorIllegalAddress and so on).
enum class Fault {
  unsupported,          ///< the simulator does not know this instruction, modifier, format or call
  invalid_ptx,          ///< the text is no PTX: cut off, or against its grammar
  illegal_address,      ///< an access outside every allocation, window or parameter
  misaligned,           ///< an address that is no multiple of the access's size
  launch_failure,       ///< everything else that ends a kernel: a race, a deadlock, a divergent .aligned instruction
  illegal_instruction,  ///< an operand that the instruction does not take
  trap,                 ///< the kernel executed `trap`
  assertion,            ///< the kernel's assert() failed
};

/// `what()` is the whole report: kernel, block, thread, PTX and source line, as far as they are known.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& report, Fault fault = Fault::unsupported)
      : std::runtime_error(report), fault(fault) {}

  const Fault fault;
};

}  // namespace sim
