// What a place of chunks means to 13: do two chunks collide, does an XOR step along k, do eight rows share banks?
#include <algorithm>
#include <map>
#include <set>

#include "common/layout.h"
#include "docs/exercises/explain.h"

using namespace ladder;

namespace {

#include "hole/swizzle"

constexpr int ROWS = 128, CHUNKS = 8, ROW_BYTES = 128, CHUNK_BYTES = 16;

/// Has every chunk a place of its own in the tile? Says where not.
bool places_are_distinct() {
  std::map<int, Coord> at;
  for (int row = 0; row < ROWS; ++row)
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      const int place = swizzle_128b(row, chunk);
      if (place < row * ROW_BYTES || place >= (row + 1) * ROW_BYTES) {
        finding("Chunk ", chunk, " of row ", row, " lies at byte ", place, ", but the row has the bytes ",
                row * ROW_BYTES, " to ", (row + 1) * ROW_BYTES - 1,
                ". A swizzle only changes the order of the chunks within a row ", "(chapter 12, The idea).");
        return false;
      }
      if (place % CHUNK_BYTES != 0) {
        finding("Chunk ", chunk, " of row ", row, " lies at byte ", place,
                ": copies and ldmatrix take 16 bytes at a multiple of 16.");
        return false;
      }
      const auto [other, is_new] = at.insert({place, {row, chunk}});
      if (!is_new) {
        finding("Chunk ", other->second.col, " of row ", other->second.row, " and chunk ", chunk, " of row ", row,
                " both lie at byte ", place,
                ": the later copy overwrites the earlier one. In a row each chunk needs a place of ",
                "its own (chapter 12, The picture).");
        return false;
      }
    }
  return true;
}

/// 13 computes one address per thread. Are the others where it looks for them?
bool addresses_follow() {
  for (int row = 0; row + 16 < ROWS; ++row)
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
      if (swizzle_128b(row + 16, chunk) != swizzle_128b(row, chunk) + 16 * ROW_BYTES) {
        finding("Chunk ", chunk, " of row ", row + 16, " lies at byte ", swizzle_128b(row + 16, chunk),
                ". 13 looks for it ", 16 * ROW_BYTES, " bytes after chunk ", chunk, " of row ", row, ", at byte ",
                swizzle_128b(row, chunk) + 16 * ROW_BYTES,
                ": the order of the chunks may depend on row % 8 alone (chapter 12, Where the XOR is computed).");
        return false;
      }
  for (int row = 0; row < ROWS; ++row)
    for (int k_step = 1; k_step < 4; ++k_step)
      for (int chunk = 0; chunk < 2; ++chunk)
        if (const int there = swizzle_128b(row, chunk) ^ k_step * 32; swizzle_128b(row, chunk + 2 * k_step) != there) {
          finding(
              "Chunk ", chunk + 2 * k_step, " of row ", row, " lies at byte ", swizzle_128b(row, chunk + 2 * k_step),
              ". In k step ", k_step, " ldmatrix looks for it at the address of chunk ", chunk, " XOR ", k_step * 32,
              ", at byte ", there,
              ". So a chunk's place in its row has to be the chunk's number XOR something of the row: a sum carries ",
              "from bit to bit, an XOR does not (chapter 13, The lines that matter).");
          return false;
        }
  return true;
}

void conflicts() {
  int most = 1, of_row = 0, of_chunk = 0;
  size_t columns = CHUNKS;
  for (int row = 0; row < ROWS; row += 8)
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      std::multiset<int> column;
      for (int i = 0; i < 8; ++i) column.insert(swizzle_128b(row + i, chunk) % ROW_BYTES / CHUNK_BYTES);
      int shared = 1;
      for (const int place : column) shared = std::max(shared, static_cast<int>(column.count(place)));
      if (shared > most)
        most = shared, of_row = row, of_chunk = chunk, columns = std::set<int>(column.begin(), column.end()).size();
    }
  if (most == 1) return;
  if (columns == 1)
    finding("No chunk is lost, but chunk ", of_chunk, " of rows ", of_row, " to ", of_row + 7,
            " lies in one and the same 16-byte ",
            "column, in the same four banks: your place in the row does not depend on the row. ldmatrix reads these "
            "eight rows at ",
            "once, and takes 8 wavefronts in place of 1 (chapter 12, The picture).");
  else
    finding("No chunk is lost, but chunk ", of_chunk, " of rows ", of_row, " to ", of_row + 7, " lies in only ",
            columns, " of the 8 columns of 16 bytes. ldmatrix reads these eight rows at once; ", most,
            " of them share four banks, which takes ", most, " wavefronts in place of 1 (chapter 12, The picture).");
}

}  // namespace

int main() {
  if (places_are_distinct() && addresses_follow()) conflicts();
}
