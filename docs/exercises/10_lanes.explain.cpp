// Which lanes and columns of tensor memory the loads of a tile of 47 reach, which row a thread takes them for, and whether it waits.
#include <set>
#include <string>

#include "docs/exercises/explain.h"

namespace {

// 47's numbers, under 47's names, for the learner's lines
struct Tile {
  static constexpr int BM = 128, BN = 256, THREADS = 128;
};
constexpr int BM = Tile::BM, BN = Tile::BN, COLUMNS = 512;
constexpr uint32_t acc = 256;  // columns 256 to 511, as another block of the SM might have the first
constexpr int tile_row = 3;

struct {
  unsigned x;
} threadIdx;

struct Wrong : std::runtime_error {
  using runtime_error::runtime_error;
};

int column = 0;                  // j of the load that is looked at
const float* loading = nullptr;  // registers that a load still fills
bool loaded = false, waited = false;

const std::string TENSOR_MEMORY = " (chapter 47, Tensor memory).";

/// The sum of this row and column of the tile, as one number.
float sum(int row, int col) { return static_cast<float>(row * BN + col); }

std::string lanes(int first) { return "lanes " + std::to_string(first) + " to " + std::to_string(first + 31); }

template <int COUNT>
void load(float* x, uint32_t address) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = address >> 16, col = address & 0xFFFF;
  const std::string of = "Warp " + std::to_string(warp) + ", j = " + std::to_string(column) + ": it loads ";
  const std::string quarter = "Of the 128 lanes a warp reaches a quarter, warp " + std::to_string(warp) + " " +
                              lanes(warp * 32) + ". The lane is in bits 16 and up of an address: ";
  if (first != warp * 32)
    throw Wrong(of +
                (first == 0                       ? "lanes 0 to 31, those of warp 0"
                 : first < 128 && first % 32 == 0 ? lanes(first) + ", those of warp " + std::to_string(first / 32)
                                                  : "from lane " + std::to_string(first) + " on") +
                ". " + quarter + "warp * 32 << 16, which is warp << 21" + TENSOR_MEMORY);
  if (col < static_cast<int>(acc) || col + COUNT > COLUMNS)
    throw Wrong(of + "columns " + std::to_string(col) + " to " + std::to_string(col + COUNT - 1) +
                ", and the sums of this block are in columns " + std::to_string(acc) + " to " +
                std::to_string(COLUMNS - 1) +
                (col < static_cast<int>(acc) ? ": they begin at acc, which is not always 0"
                                             : ": an address counts columns of 32 bits, not bytes") +
                TENSOR_MEMORY);
  if (col != static_cast<int>(acc) + column)
    throw Wrong(of + "columns " + std::to_string(col - acc) + " to " + std::to_string(col - acc + COUNT - 1) +
                " of the tile, and the results of columns " + std::to_string(column) + " to " +
                std::to_string(column + 7) + " are computed from them" +
                (column > 0 && col - static_cast<int>(acc) == column * 4
                     ? ": an address counts columns of 32 bits, not bytes"
                     : "") +
                TENSOR_MEMORY);
  for (int i = 0; i < COUNT; ++i) x[i] = sum(first + lane, col - acc + i);
  loading = x, loaded = true, waited = false;
}

void tcgen05_ld_32x32b_x8(float (&x)[8], uint32_t address) { load<8>(x, address); }
void tcgen05_ld_32x32b_x32(float* x, uint32_t address) { load<32>(x, address); }

template <int COUNT>
void tcgen05_wait_ld(float (&x)[COUNT]) {
  if (!loaded)
    throw Wrong(
        "tcgen05_wait_ld stands before the load: it waits for the loads that this warp has issued before, and this one "
        "is under way when x is used (chapter 47, The lines that matter).");
  if (loading == x) waited = true;
}

// The holes

int row() {
#include "hole/row"
  return m;
}

/// Of columns j to j + 7.
void look_at(int j) {
  const int warp = threadIdx.x / 32;
  [[maybe_unused]] const int lane = threadIdx.x % 32;
  [[maybe_unused]] const int m = row();
  column = j, loaded = waited = false;
#include "hole/tensor-memory"
  const std::string of = "Warp " + std::to_string(warp) + ", j = " + std::to_string(j) + ": ";
  if (!loaded)
    throw Wrong(of + "nothing is loaded. The sums are in tensor memory, and a result is computed from registers" +
                TENSOR_MEMORY);
  if (!waited)
    throw Wrong(of +
                "x is used and nobody has waited for it. tcgen05.ld is asynchronous: until tcgen05.wait::ld the "
                "registers may still hold what they held before (chapter 47, The lines that matter).");
  for (int i = 0; i < 8; ++i)
    if (x[i] != sum(threadIdx.x, j + i))
      throw Wrong(of + "x[" + std::to_string(i) + "] is not the sum of column " + std::to_string(j + i) + '.');
}

void rows() {
  std::set<int> found;
  for (threadIdx.x = 0; threadIdx.x < Tile::THREADS; ++threadIdx.x) found.insert(row());
  for (threadIdx.x = 0; threadIdx.x < Tile::THREADS; ++threadIdx.x) {
    const int mine = row(), real = tile_row * BM + static_cast<int>(threadIdx.x);
    if (mine == real) continue;
    finding("Thread ", threadIdx.x, " of the tile at row ", tile_row * BM, " stores row ", mine, ". Its warp reaches ",
            lanes(threadIdx.x / 32 * 32), " of tensor memory, lane i has the sums of row i of the ",
            "tile, and thread t of a warp gets the t-th of its lanes: it has the sums of row ", real,
            found.size() == 1 ? ". All threads have the same row" : "", TENSOR_MEMORY);
    return;
  }
}

}  // namespace

int main() {
  rows();
  try {
    for (int j = 0; j < BN; j += 8)
      for (threadIdx.x = 0; threadIdx.x < Tile::THREADS; ++threadIdx.x) look_at(j);
  } catch (const Wrong& wrong) {
    finding(wrong.what());
  }
}
