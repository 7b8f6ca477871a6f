// 14x_exercise_3 · exercise 3: the waits of a pipeline
//
// Goal              no fragment is loaded before its k tile has landed, no stage is overwritten while somebody reads it, and the
//                   copies of one k tile always stay under way
// Changed from 14   the waits before and in the main loop are holes
// Simulator         256 256 256 --type bf16
// GPU               4096 4096 4096 --type bf16
// Run               ./run_all.sh exercise 3
// Read              docs/exercises.md, docs/14_multistage.md

// [first-wait]
// HOLE: two groups of copies are under way, k tile 0 and then k tile 1. Next, fragments of k tile 0 are loaded.
// [/first-wait]

// [wait]
// HOLE: next, fragments are loaded: in the last step, which is K_STEPS - 1, those of the next k tile.
// cp_async_wait_group<N>() waits until at most the N youngest groups of this thread's copies are under way.
// [/wait]
