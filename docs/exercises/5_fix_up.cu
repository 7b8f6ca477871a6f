// 18x_exercise_5 · exercise 5: the fix-up of stream-K
//
// Goal              the last block of a shared tile adds the sums of all others, once they are there, and leaves the locks at 0
// Changed from 18f  who is added, and what is done with the locks, are holes
// Simulator         640 768 128 --sim-gpu t4
// GPU               1152 1280 512
// Run               ./run_all.sh exercise 5
// Read              docs/exercises.md, docs/18_stream_k.md

// [left]
// HOLE: every thread has stored its sums. lock_of(blockIdx.x) is the lock of this warp, and the block that adds waits for a 1
// there. st_release_gpu(lock, 1) sets it.
// [/left]

// [adds]
// HOLE: which blocks have left sums for this tile? Those of first_block to blockIdx.x - 1 are added.
const int first_block = blockIdx.x - 1;
// [/adds]

// [wait]
// HOLE: next, the sums of these blocks are added. ld_acquire_gpu(lock_of(block)) reads the lock of such a block.
// [/wait]

// [clear]
// HOLE: the sums are added. The next launch needs the locks of these blocks, too.
// [/clear]
