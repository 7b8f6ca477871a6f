// CUTLASS's GEMMs, to choose the fastest of as a baseline. NVIDIA's templates take minutes to compile, so they are in a library of
// their own, build/bin/libcutlass_baseline.so, which is built where there is a GPU to time them on: by ./run_all.sh, not for one rung.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/problem.h"

namespace ladder {

struct CutlassKernel {
  std::string name;  ///< "sm90 pingpong 128x128x64 cluster 2x1 swizzle 8"
  const char* arch;  ///< as Rung::arch
  size_t smem_bytes;
  /// Whether it computes this problem: types, scales, layout, alignment of rows.
  bool (*takes)(const Problem&);
  size_t (*workspace_bytes)(const Problem&);
  /// Queues the launch. Throws std::runtime_error where CUTLASS refuses it.
  void (*run)(const Problem&, void* workspace);
};

/// Those in a library; empty where there is no such file. Throws std::runtime_error where it cannot be loaded, or is of other sources.
std::vector<CutlassKernel> load_cutlass(const std::string& path);

/// Those in the library beside this program, likewise.
const std::vector<CutlassKernel>& cutlass_kernels();

// In the library: one function per file.
std::vector<CutlassKernel> cutlass_simt();
std::vector<CutlassKernel> cutlass_mma_sync();
std::vector<CutlassKernel> cutlass_wgmma_tf32();
std::vector<CutlassKernel> cutlass_wgmma_bf16();
std::vector<CutlassKernel> cutlass_wgmma_f16();
std::vector<CutlassKernel> cutlass_wgmma_e4m3();

}  // namespace ladder

/// What the library exports. The number goes up when CutlassKernel changes: a library of older sources is then refused.
extern "C" const std::vector<ladder::CutlassKernel>* ladder_cutlass_kernels_1();
constexpr const char* cutlass_symbol = "ladder_cutlass_kernels_1";
