// A descriptor field by field: which bytes of the tile wgmma would read.
#include <string>

#include "common/hopper/descriptor.h"
#include "docs/exercises/explain.h"

#define __host__
#define __device__
#define __forceinline__ inline

namespace hole {
#include "hole/descriptor"
}
namespace solution {
#include "solution/descriptor"
}

namespace {

constexpr int ROW_BYTES = 128;
constexpr uint32_t TILES[] = {0x400, 0x8000, 0x2A400};  // a block's shared memory ends before 0x38C00

uint64_t bits(uint64_t descriptor, int first, int last) {
  return descriptor >> first & ((uint64_t{1} << (last - first + 1)) - 1);
}

std::string hex(uint64_t value) {
  std::string text;
  for (; value || text.empty(); value >>= 4) text.insert(text.begin(), "0123456789ABCDEF"[value & 15]);
  return "0x" + text;
}

void address(uint32_t tile, uint64_t mine, uint64_t real) {
  const uint64_t found = bits(mine, 0, 13), other = bits(mine, 14, 15);
  if (found == bits(real, 0, 13) && other == 0) return;
  if ((mine & 0xFFFF) == (tile & 0xFFFF))
    finding("Bits 0 to 13, the address: for a tile at ", hex(tile), " they hold ", hex(found),
            ", the address as it is. wgmma takes them ", "times 16 and reads at ", hex(found * 16), ".");
  else
    finding("Bits 0 to 13, the address: for a tile at ", hex(tile), " they hold ", hex(found),
            ". wgmma takes them times 16 and reads at ", hex(found * 16),
            other ? ". And bits 14 and 15, which have no meaning, are not 0" : "", ".");
}

void stride(uint64_t mine, uint64_t real) {
  const uint64_t found = bits(mine, 32, 45), bytes = found * 16;
  if (found == bits(real, 32, 45)) return;
  std::string why;
  if (bytes == 0)
    why = "so every 8 rows are rows 0 to 7 again";
  else if (found == 8 * ROW_BYTES)
    why = "so it is 16 times too much: the field holds the offset divided by 16";
  else if (bytes % ROW_BYTES == 0)
    why = "which is row " + std::to_string(bytes / ROW_BYTES) + ", so only the first 8 rows of each operand are right";
  else
    why = "which is inside row " + std::to_string(bytes / ROW_BYTES) +
          ", so only the first 8 rows of each operand are right";
  finding("Bits 32 to 45, the stride offset: they hold ", found, ". wgmma looks for row 8 of the tile ", bytes,
          " bytes after row 0, ", why, ". A row has ", ROW_BYTES, " bytes (chapter 22, A K-major tile).");
}

void swizzle(uint64_t mine, uint64_t real) {
  const uint64_t found = bits(mine, 62, 63);
  if (found == bits(real, 62, 63)) return;
  const char* const bytes[] = {"none", "128 bytes", "64 bytes", "32 bytes"};
  finding("Bits 62 and 63, the swizzle: they hold ", found, ", which means ", bytes[found],
          ". TMA has written the tile with the swizzle of 128 bytes, chunk c of row r in place c XOR r % "
          "8. Without the same ",
          "swizzle wgmma takes other chunks of the row for it, except in row 0 (chapter 22, A K-major tile).");
}

void rest(uint64_t mine) {
  const std::pair<int, int> unused[] = {{30, 31}, {46, 48}, {49, 51}, {52, 61}};
  for (const auto [first, last] : unused)
    if (const uint64_t found = bits(mine, first, last))
      finding("Bits ", first, " to ", last, " hold ", found, ": here they have to be 0",
              first == 30 || first == 46 ? ". Does the field before them overflow?" : ".");
}

}  // namespace

int main() {
  for (const uint32_t tile : TILES) {
    const uint64_t mine = hole::descriptor(tile), real = solution::descriptor(tile);
    if ((mine ^ real) & 0xFFFF) {
      address(tile, mine, real);
      break;
    }
  }
  const uint64_t mine = hole::descriptor(TILES[0]), real = solution::descriptor(TILES[0]);
  stride(mine, real);
  swizzle(mine, real);
  rest(mine);
}
