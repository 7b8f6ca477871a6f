// The PTX and the machine code that nvcc put into a program: the fat binary that start-up code hands to __cudaRegisterFatBinary.
//
//   wrapper (24 bytes) ──► container ─┬─ entry: PTX for sm_90a   (text, as one zstd frame, an LZ4 block, or as it is)
//                                     ├─ entry: machine code     (an ELF file; not run, but it says how many registers)
//                                     └─ ...
//
// The layout is not documented; it was established by looking at what nvcc 13.0 writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sim {

/// What an image was compiled for.
struct Target {
  enum Scope : uint8_t { later, family, alone };

  unsigned arch = 0;  ///< 90 for sm_90 and sm_90a
  Scope scope =
      later;  ///< where PTX runs besides: sm_90 on all later ones, sm_100f on later ones of its family, sm_90a nowhere

  std::string name() const;  ///< "sm_90a"
  bool operator==(const Target&) const = default;
};

struct PtxImage {
  Target target;
  std::string text;
};

/// Every PTX of the fat binary, in its order; empty where there is machine code alone. Throws Error where the wrapper is
/// of a kind that the simulator does not know (-rdc=true) or damaged.
std::vector<PtxImage> ptx_images(const void* wrapper);

/// The same from a container on its own, as it lies in an object file's section .nv_fatbin.
std::vector<PtxImage> ptx_images(std::span<const std::byte> container);

/// The newest that a GPU of capability `sm` can run, one made for it before a general one; null where there is none.
const PtxImage* newest_for(unsigned sm, const std::vector<PtxImage>& images);

/// Machine code for one architecture, a "cubin".
struct CodeImage {
  Target target;
  std::string elf;
};

/// Every machine code of the fat binary; empty where there is PTX alone.
std::vector<CodeImage> code_images(const void* wrapper);
std::vector<CodeImage> code_images(std::span<const std::byte> container);

/// As for PTX. Machine code runs on no other major version than its own.
const CodeImage* newest_for(unsigned sm, const std::vector<CodeImage>& images);

}  // namespace sim
