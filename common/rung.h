// What a rung is to the harness: a few facts and two functions, stated in the last lines of its file. Nothing here pulls in
// Thrust, cuBLAS or the command line, so that a rung compiles in seconds.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "common/problem.h"
#include "common/tunable.h"

namespace ladder {

/// The instruction that multiplies. Its ceiling is the one that the rung is measured by.
enum class MathInstruction {
  ffma,      ///< FFMA: FP32 on the FMA pipe
  mma_sync,  ///< mma.sync, directly or through wmma: tensor cores, operands in registers
  wgmma,     ///< wgmma: tensor cores, operands in shared memory
  tcgen05,   ///< tcgen05.mma: tensor cores, operands in shared memory, results in tensor memory
};

/// "FFMA", "mma.sync", "wgmma" or "tcgen05.mma".
const char* name(MathInstruction instruction);

/// What a rung is to the climb. A rung without a letter is a step; a letter may mean any of these.
enum class Kind {
  step,             ///< the climb leads over it, as a whole step or a half one
  variant,          ///< another way to do what its predecessor does
  counter_example,  ///< slower than its predecessor, and shows why
  fp32_form,        ///< the idea of the rung with the same number, for FP32 operands
};

/// "step", "variant", "counter-example" or "FP32 form".
const char* name(Kind kind);

/// Block tile: rows of C, columns of C, and elements of K per k tile.
struct TileShape {
  int m, n, k;
};

/// What the rung launches for a problem on the current device, which may decide the tile. The harness asks the runtime about
/// it: registers, shared memory and resident blocks follow.
struct Resources {
  const void* kernel;          ///< the __global__ function
  int threads;                 ///< per block
  int dynamic_smem_bytes = 0;  ///< per block
  TileShape tile;
  size_t workspace_bytes = 0;  ///< scratch memory that the launch finds in Problem::workspace
  int locks = 0;               ///< how many it finds in Problem::locks
};

/// One of the ways in which a rung can go about a problem.
struct Plan {
  std::string name;
  double microseconds;  ///< predicted
  Resources resources;
  std::function<void(const Problem&)> launch;  ///< as Rung::launch
};

/// Numbers by their names in the rung: of a tile, or of a model.
struct Constants {
  std::string of;  ///< the tile's or the model's name
  std::vector<std::pair<const char*, double>> values;
};

/// Rung::refuses of a rung that takes every problem.
inline std::string accepts_all(const Problem&) { return ""; }

/// One rung of the ladder.
struct Rung {
  const char* number;  ///< "06", or "06b": `kind` says what the letter means
  const char* name;    ///< "bank_conflict_free"; number_name is the stem that file, target, chapter and CSV share
  const char* idea;    ///< one line
  /// Number of the rung that this one changes, and that its gain is relative to; "" for the first of its kind.
  const char* predecessor;
  Kind kind = Kind::step;
  std::vector<Type> types;
  const char* arch;  ///< "sm_80": this or any later; "sm_90a": exactly this one. CMake reads this line, too
  MathInstruction instruction;
  MatrixLayout layout_b;                        ///< of B; A is row-major
  std::vector<Scales> scales = {Scales::none};  ///< that it takes
  bool grouped = false;                         ///< takes groups
  bool epilogues = false;                       ///< takes epilogues
  bool any_layout = false;  ///< takes A and B in either layout; `layout_b` is the one that it is listed with
  int row_align_bytes;      ///< every row of A, B and C must start at a multiple of this; 4 for FP32 means any
  /// Why this problem, on the current device, is not for this rung; empty where it is. Sizes, leading dimensions, alpha, beta
  /// and types are set, the pointers are not. Types, arch and alignment are looked at before.
  std::string (*refuses)(const Problem&) = accepts_all;
  Resources (*resources)(const Problem&);
  void (*launch)(const Problem&);  ///< enqueues on Problem::stream; returns at once; throws CudaError
  /// How the launch goes about this problem, and what else it weighed, for a reader; a line or more, each ended. None where
  /// it has no choice. The pointers of the problem are not set.
  std::string (*explain)(const Problem&) = nullptr;
  /// All ways to go about a problem, the predicted fastest first; `launch` and `resources` take the first of them, or the one that was
  /// found to be faster (prefer()). Null where there is no choice. The pointers of the problem are not set.
  std::vector<Plan> (*plans)(const Problem&) = nullptr;
  std::vector<Type> fp16_sums =
      {};  ///< types whose products it adds in FP16; the check allows for it. Those of others in FP32
  /// What chapters, figures and scripts take from the rung: they read no source.
  std::vector<Constants> constants = {};
  /// A launch for this problem, whose pointers, factors and stream may change from call to call: what follows from its size is worked
  /// out once. Null where `launch` is all that there is. The pointers of the problem are not set. For one thread at a time.
  std::function<void(const Problem&)> (*prepare)(const Problem&) = nullptr;
  const char* source = nullptr;  ///< the file of the registration; Registration fills it in

  std::string stem() const { return std::string(number) + "_" + name; }
  Sum sum(Type type) const {
    for (const Type t : fp16_sums)
      if (t == type) return Sum::fp16;
    return Sum::fp32;
  }
};

/// Registers a rung before main() starts. Adding a rung is adding a file that ends in one of these. `variant`: the name in place of
/// the rung's own that bench/sweep.py gives it.
struct Registration {
  explicit Registration(Rung rung, const char* variant = TUNABLE(VARIANT, nullptr),
                        std::source_location where = std::source_location::current());
};

/// All rungs of this program, sorted by number, 06b after 06.
const std::vector<Rung>& rungs();

/// Rung::arch taken apart. Throws std::invalid_argument for anything but "sm_" and a number, with or without an "a".
struct Arch {
  int sm;      ///< compute capability, 80 for sm_80
  bool exact;  ///< this one and no other, as with the "a" of sm_90a; without it, later ones, too
};
Arch parse_arch(const std::string& text);

/// Why code for `arch` does not run on a GPU of compute capability `sm`; empty where it does.
std::string why_not_on(const std::string& arch, int sm);

/// What a launch may choose its tile or its grid by, as the driver states it. Programs reach less than both rates.
struct DeviceLimits {
  int sm;                ///< compute capability, 90 for sm_90
  int sms;               ///< how many SMs
  int smem_block_bytes;  ///< shared memory that a block may ask for
  double clock_mhz;      ///< of the SMs, at most
  double memory_mhz;     ///< the memory's clock; 0 where the driver does not state it
  int memory_bus_bits;   ///< likewise

  /// Of the memory: two transfers per clock over the whole bus.
  double memory_bytes_per_us() const { return 2 * memory_mhz * memory_bus_bits / 8; }
};

/// Of the current device. The driver is asked once per device. Throws CudaError.
DeviceLimits device_limits();

/// Least whole number of tiles of `tile` that cover `extent`; both positive.
constexpr __host__ __device__ int ceil_div(int extent, int tile) { return extent / tile + (extent % tile != 0); }

/// Throws CudaError naming the caller's file and line where `status` is not cudaSuccess. In every build type.
void cuda_check(cudaError_t status, std::source_location where = std::source_location::current());

}  // namespace ladder
