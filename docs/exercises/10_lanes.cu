// 47x_exercise_10 · exercise 10: the lanes of tensor memory
//
// Goal              each thread gets eight neighbouring sums of its row of C out of tensor memory, and uses them when they are there
// Changed from 47   the row of a thread, and its loads of tensor memory, are holes
// Simulator         300 264 200 --type bf16 --sim-gpu b200
// GPU               4096 4096 4096 --type bf16
// Run               ./run_all.sh exercise 10
// Read              docs/exercises.md, docs/47_tcgen05.md

// [row]
// HOLE: which row of C has this thread? The tile begins at row tile_row * BM.
const int m = tile_row * BM;
// [/row]

// [tensor-memory]
// HOLE: x[i] is to be the sum of row m and of column j + i of the tile, whose sums begin at address acc.
// tcgen05_ld_32x32b_x8(x, address) loads 32 lanes and 8 columns, tcgen05_wait_ld(x) waits for this warp's loads.
float x[8] = {};
// [/tensor-memory]
