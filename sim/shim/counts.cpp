#include "shim/counts.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>

#include "shim/runtime.h"
#include "sim/launch_counts.h"
#include "text.h"

namespace sim {
namespace {

using ByKernel = std::map<std::string, Counters>;

/// Never destroyed: it is written when all else is gone.
ByKernel& gathered() {
  static ByKernel* const counts = new ByKernel;
  return *counts;
}

bool counting = true;
Counts total;  // since counting started
uint64_t launches = 0;

const char* path() {
  static const char* const path = std::getenv("GEMM_LADDER_SIM_COUNTS");
  return path;
}

struct Column {
  const char* name;
  uint64_t Counts::*count;
};

constexpr Column columns[] = {
    {"global_loads", &Counts::global_loads},
    {"global_load_sectors", &Counts::global_load_sectors},
    {"global_load_bytes", &Counts::global_load_bytes},
    {"global_stores", &Counts::global_stores},
    {"global_store_sectors", &Counts::global_store_sectors},
    {"global_store_bytes", &Counts::global_store_bytes},
    {"shared_loads", &Counts::shared_loads},
    {"shared_load_wavefronts", &Counts::shared_load_wavefronts},
    {"shared_load_ideal", &Counts::shared_load_ideal},
    {"shared_load_bytes", &Counts::shared_load_bytes},
    {"shared_stores", &Counts::shared_stores},
    {"shared_store_wavefronts", &Counts::shared_store_wavefronts},
    {"shared_store_ideal", &Counts::shared_store_ideal},
    {"shared_store_bytes", &Counts::shared_store_bytes},
    {"mma_shared_bytes", &Counts::mma_shared_bytes},
    {"tensor_copy_bytes", &Counts::tensor_copy_bytes},
    {"tensor_load_bytes", &Counts::tensor_load_bytes},
    {"tensor_store_bytes", &Counts::tensor_store_bytes},
    {"barriers", &Counts::barriers},
};
constexpr const char* flops[] = {"flops_fp32", "flops_fp64", "flops_fp16", "flops_tensor"};

void write_row(FILE* file, const std::string& kernel, uint64_t launches, const std::string& source, uint32_t line,
               const Counts& counts) {
  print(file, "{},{},{},{},{}", kernel, launches, source, line, counts.warp_instructions());
  for (const uint64_t count : counts.instructions) print(file, ",{}", count);
  for (const uint64_t count : counts.flops) print(file, ",{}", count);
  for (const uint64_t count : counts.mma) print(file, ",{}", count);
  for (const Column& column : columns) print(file, ",{}", counts.*column.count);
  print(file, "\n");
}

void write() {
  FILE* const file = std::fopen(path(), "w");
  if (!file) {
    print(stderr, "simulator: GEMM_LADDER_SIM_COUNTS: cannot write '{}'\n", path());
    return;
  }
  print(file, "kernel,launches,file,line,warp_instructions");
  for (int i = 0; i < classes; ++i) print(file, ",{}_instructions", name(static_cast<Class>(i)));
  for (const char* unit : flops) print(file, ",{}", unit);
  for (const char* kind : mma_kind_names) print(file, ",mma_{}", kind);
  for (const Column& column : columns) print(file, ",{}", column.name);
  print(file, "\n");
  for (const auto& [kernel, counters] : gathered()) {
    write_row(file, kernel, counters.launches, "", 0, counters.total);
    for (const auto& [where, counts] : counters.lines)
      write_row(file, kernel, counters.launches, where.first, where.second, counts);
  }
  std::fclose(file);
}

}  // namespace

void add_counts(const std::string& kernel, const Counters& counters) {
  if (!counting) return;
  total += counters.total;
  launches += counters.launches;
  if (!path()) return;
  if (gathered().empty()) std::atexit(write);
  gathered()[kernel] += counters;
}

}  // namespace sim

using namespace sim;

CUDA_API void cudaSimStartCounting() {
  const std::lock_guard lock(runtime().mutex);
  counting = true;
  total = {};
  launches = 0;
}

CUDA_API void cudaSimStopCounting(CudaSimCounts* counts) {
  const std::lock_guard lock(runtime().mutex);
  counting = false;
  *counts = {.launches = launches,
             .warp_instructions = total.warp_instructions(),
             .flops = std::accumulate(total.flops.begin(), total.flops.end(), uint64_t{0}),
             .global_load_sectors = total.global_load_sectors,
             .global_load_bytes = total.global_load_bytes,
             .global_store_sectors = total.global_store_sectors,
             .global_store_bytes = total.global_store_bytes,
             .shared_wavefronts = total.wavefronts(),
             .shared_ideal = total.ideal_wavefronts(),
             .barriers = total.barriers,
             .tensor_products = std::accumulate(total.mma.begin(), total.mma.end(), uint64_t{0}),
             .tensor_operand_bytes = total.mma_shared_bytes,
             .tensor_load_bytes = total.tensor_load_bytes,
             .tensor_store_bytes = total.tensor_store_bytes};
}
