#include "common/harness/simulator.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "common/harness/error.h"
#include "common/text.h"

namespace ladder {
namespace {

namespace fs = std::filesystem;

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

/// A function that the simulator exports beside the runtime's; null on a GPU.
template <class Function>
Function* exported(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

[[noreturn]] void start_again(char* const* argv) {
  std::fflush(nullptr);
  execv(this_program().c_str(), argv);
  throw std::runtime_error(formatted("cannot start {} again: {}", this_program().string(), std::strerror(errno)));
}

/// A warning in a rung would be read by nobody. `exited` is off: a block may end some of its threads early.
constexpr const char* checks_of_a_rung = "all=error,exited=off";

}  // namespace

bool on_simulator() {
  static const bool simulated = exported<decltype(cudaSimStopCounting)>("cudaSimStopCounting") != nullptr;
  return simulated;
}

std::string why_no_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) return "no GPU here";
  if (status != cudaErrorInsufficientDriver) return "";
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no GPU here";
  return formatted("this driver supports CUDA {}.{}, this program needs {}.{}", driver / 1000, driver % 1000 / 10,
                   CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

std::string find_simulator(const std::string& why) {
  const fs::path build = this_program().parent_path().parent_path();  // wherever it was moved to
  const fs::path library = build / "sim" / formatted("libcudart.so.{}", CUDART_VERSION / 1000);
  if (!fs::exists(library))
    throw Waived(formatted("{}, and the simulator is not built ({} is not there): it needs CUDA 13 and zstd.h", why,
                           library.string()));
  return library.string();
}

void restart_on_simulator(const std::string& library, char* const* argv) {
  const std::string folder = fs::path(library).parent_path().string();
  const char* const given = std::getenv("LD_LIBRARY_PATH");
  const std::string path = given ? given : "";
  if ((path + ":").starts_with(folder + ":"))
    throw std::runtime_error("the loader does not take the CUDA runtime from " + library);
  setenv("LD_LIBRARY_PATH", path.empty() ? folder.c_str() : formatted("{}:{}", folder, path).c_str(), 1);
  start_again(argv);
}

const std::vector<std::string>& simulated_gpus() {
  static const std::vector<std::string> gpus = {"h200", "h100", "b200", "a100", "rtx4090", "rtx5090", "t4"};
  return gpus;
}

void choose_simulated_gpu(const std::string& gpu, char* const* argv) {
  constexpr const char* variable = "GEMM_LADDER_SIM_GPU";
  const char* const described = std::getenv(variable);
  if (gpu.empty() || (described && gpu == described)) return;
  setenv(variable, gpu.c_str(), 1);
  if (on_simulator()) start_again(argv);
}

void configure_simulator(const std::string& seed, const std::string& checks, const std::string& counts) {
  CudaSimCounts before;
  exported<decltype(cudaSimStopCounting)>("cudaSimStopCounting")(&before);
  if (!seed.empty()) setenv("GEMM_LADDER_SIM_SEED", seed.c_str(), 1);
  setenv("GEMM_LADDER_SIM_CHECKS", checks.empty() ? checks_of_a_rung : checks.c_str(), !checks.empty());
  if (counts.empty()) return;
  std::FILE* const file = std::fopen(counts.c_str(), "w");  // the simulator writes it when the program ends
  if (!file) throw UsageError(formatted("--sim-counts: cannot write '{}': {}", counts, std::strerror(errno)));
  std::fclose(file);
  setenv("GEMM_LADDER_SIM_COUNTS", counts.c_str(), 1);
}

CudaSimCounts count_launches(const std::function<void()>& launches) {
  CudaSimCounts counts;
  struct Stop {  // also where a launch throws
    CudaSimCounts* counts;
    ~Stop() { exported<decltype(cudaSimStopCounting)>("cudaSimStopCounting")(counts); }
  };
  exported<decltype(cudaSimStartCounting)>("cudaSimStartCounting")();
  {
    const Stop stop{&counts};
    launches();  // a kernel has ended when its launch returns
  }
  return counts;
}

std::string fault_report() {
  const auto report = exported<decltype(cudaSimFaultReport)>("cudaSimFaultReport");
  std::stringstream lines(report ? report() : "");
  std::string fault, place;
  std::getline(lines, fault);
  std::getline(lines, place);
  return fault + place;
}

}  // namespace ladder
