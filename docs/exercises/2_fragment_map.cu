// 10x_exercise_2 · exercise 2: a fragment map
//
// Goal              which word of A, which word of B and which result of C each lane holds in each register of an mma.sync
// Changed from 10   mma_a(), mma_b() and mma_c() are holes
// Simulator         256 256 256 --type f16
// GPU               4096 4096 4096 --type f16
// Run               ./run_all.sh exercise 2
// Read              docs/exercises.md, docs/10_mma_ptx.md

// [fragments]
/// Row and word along k of register `r` (0 to 3) of A, 16 rows of 8 words.
constexpr LADDER_HOST_DEVICE Coord mma_a(int lane, int r) {
  return {0, 0};  // HOLE
}

/// Column and word along k of register `r` (0 or 1) of B, 8 columns of 8 words.
constexpr LADDER_HOST_DEVICE Coord mma_b(int lane, int r) {
  return {0, 0};  // HOLE
}

/// Row and column of register `r` (0 to 3) of C and D, 16 x 8 elements of FP32.
constexpr LADDER_HOST_DEVICE Coord mma_c(int lane, int r) {
  return {0, 0};  // HOLE
}
// [/fragments]
