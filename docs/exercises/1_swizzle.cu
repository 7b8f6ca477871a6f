// 13x_exercise_1 · exercise 1: a swizzle
//
// Goal              a place for every 16-byte chunk of a tile, so that no access of shared memory has a bank conflict
// Changed from 13   swizzle_128b() is a hole
// Simulator         256 256 256 --type bf16
// GPU               4096 4096 4096 --type bf16
// Run               ./run_all.sh exercise 1
// Read              docs/exercises.md, docs/12_swizzle.md, docs/13_ldmatrix.md

// [swizzle]
/// Byte of a tile at which chunk `chunk` (0 to 7) of row `row` lies. A chunk has 16 bytes, a row 128.
constexpr LADDER_HOST_DEVICE int swizzle_128b(int row, int chunk) {
  return row * 128 + chunk * 16;  // HOLE: no swizzle yet
}
// [/swizzle]
