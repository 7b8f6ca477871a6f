// 47y_exercise_7 · exercise 7: an elect
//
// Goal              one lane does what one thread does, a whole warp what a warp does, and everyone knows when it is done
// Changed from 47   the set-up of a block, and who issues the mma of a k tile, are holes
// Simulator         300 264 200 --type bf16 --sim-gpu b200
// GPU               4096 4096 4096 --type bf16
// Run               ./run_all.sh exercise 7
// Read              docs/exercises.md, docs/21_tma.md, docs/47_tcgen05.md

// [set-up]
// HOLE: to be done once per block, each by as many threads as it takes, in this order:
//   mbarrier_init(full + stage * 8, 1) for every stage, mbarrier_init(multiplied, 1), then fence_mbarrier_init();
//   tcgen05_alloc(address, BN), which is .aligned: all lanes of a warp execute it together; tcgen05_relinquish_alloc_permit(), too.
// After the hole all threads read `address` and use the mbarriers. elect_sync() is true in one lane of a warp; all execute it.
// [/set-up]

// [issue]
// HOLE: all lanes of warp 0 are here. Who issues the mma of this k tile, and their commit?
for (int k_step = 0; k_step < K_STEPS; ++k_step)
  Tcgen05<type>::mma(acc, a + k_step * (Tile::MMA_K_BYTES / 16), b + k_step * (Tile::MMA_K_BYTES / 16), INSTRUCTION,
                     !first || k_step > 0);
tcgen05_commit(multiplied);
// [/issue]
