// libFuzzer's entry to the PTX parser: whatever the text, parse() returns or throws PtxError.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. ptx/*.cpp tests/fuzz_parser.cpp -o fuzz_parser
//   ./fuzz_parser -max_total_time=600 -max_len=16384 corpus/        with PTX of nvcc in corpus/ to start from
// sim_tests compiles it, too, so that it stays up to date.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ptx/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const sim::ptx::Module module = sim::ptx::parse({reinterpret_cast<const char*>(data), size});
    for (const sim::ptx::Function& function : module.functions)
      for (const sim::ptx::Instruction& instruction : function.instructions) module.source_of(function, instruction);
  } catch (const sim::ptx::PtxError&) {
  }
  return 0;
}
