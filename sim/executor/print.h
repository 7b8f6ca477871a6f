// printf in a kernel: what vprintf does with the format and the arguments that the compiler laid out for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace sim {

/// Formats as C does. `argument(bytes)` gives the next argument, of 4 or 8 bytes; `text(address)` the string at a generic
/// address. `count` becomes the number of arguments, which printf returns (CUDA C++ Programming Guide, "Formatted Output").
std::string printf_text(const std::string& format, const std::function<uint64_t(int bytes)>& argument,
                        const std::function<std::string(uint64_t address)>& text, int& count);

/// What the threads of a launch print, in a buffer that is written out when the launch has ended. It holds 1 MiB, the
/// device's default. When it is full, the newest text is kept, as on the device.
class PrintBuffer {
 public:
  static constexpr size_t capacity = size_t{1} << 20;
  void add(const std::string& text);  ///< from any CPU thread
  std::string take();

 private:
  std::mutex mutex_;
  std::string text_;
};

}  // namespace sim
