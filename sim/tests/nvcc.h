// Compiles for tests: PTX texts and object files as nvcc makes them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace sim::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A directory that is removed together with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "sim_test_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a directory in " + name);
    path = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::filesystem::path path;
};

/// What `nvcc OPTIONS source -o ...` writes. Throws with the compiler's own words where it fails.
inline std::string compiled(const std::filesystem::path& source, const std::string& options) {
  const TemporaryDirectory directory;
  const std::filesystem::path result = directory.path / "result", log = directory.path / "log";
  const std::string command = "'" SIM_NVCC "' -std=c++20 " + options + " \"" + source.string() + "\" -o \"" +
                              result.string() + "\" > \"" + log.string() + "\" 2>&1";
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command + "\n" + read_file(log));
  return read_file(result);
}

inline std::string compiled_text(const std::string& cuda, const std::string& options) {
  const TemporaryDirectory directory;
  const std::filesystem::path source = directory.path / "source.cu";
  std::ofstream(source) << cuda;
  return compiled(source, options);
}

}  // namespace sim::test
