// Runs a program of tests/programs as a user does: LD_LIBRARY_PATH and nothing else.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

struct Result {
  int status;
  std::string output;  ///< standard output and error
};

inline Result shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  Result result;
  std::array<char, 4096> part;
  while (const size_t bytes = fread(part.data(), 1, part.size(), pipe)) result.output.append(part.data(), bytes);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

inline Result run(const std::string& program, const std::string& arguments = "", const std::string& environment = "") {
  return shell(environment + " LD_LIBRARY_PATH='" SIM_LIBRARY_DIR "' '" SIM_PROGRAMS_DIR "/" + program + "' " +
               arguments);
}
