// 42x_exercise_9 · exercise 9: a promotion with block scales
//
// Goal              the sum of each k tile, times the scales of its rows and columns, is added to accumulators in FP32
// Changed from 42   the wgmma of a k tile, its scales and its promotion are holes
// Simulator         256 256 768 --scales blocks --out same
// GPU               4096 4096 4096 --scales blocks --out same
// Run               ./run_all.sh exercise 9
// Read              docs/exercises.md, docs/42_fp8_block.md

// [multiply]
// HOLE: wgmma adds to `partial` where its last argument is not 0. Where should it?
#pragma unroll
for (int k_step = 0; k_step < K_STEPS; ++k_step)
  wgmma<type, BN>(partial, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16), 1);
// [/multiply]

// [scale]
// HOLE: this lane has results in two rows, those of mma_c(lane, 0) and of mma_c(lane, 2) among the 16 rows of its warp. In shared
// memory, scale_a has a float for each of the block's 128 rows, scale_b those of the k tiles k_tile / 4 * 4 to k_tile / 4 * 4 + 3.
scale[0] = scale[1] = 1;
// [/scale]

// [promote]
// HOLE: next, the sums are added to acc[0][j][e]. The k tile's stage may be filled again when wgmma has read it.
// [/promote]
