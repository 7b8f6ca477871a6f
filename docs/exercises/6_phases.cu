// 23x_exercise_6 · exercise 6: the phases of a pipeline
//
// Goal              the producer fills no stage that a warp still multiplies, no warp multiplies a k tile that has not landed, and
//                   nobody waits for ever
// Changed from 23   how many arrive on each mbarrier, both waits, and the release of a stage are holes
// Simulator         256 256 512 --type bf16
// GPU               4096 4096 4096 --type bf16
// Run               ./run_all.sh exercise 6
// Read              docs/exercises.md, docs/21_tma.md, docs/23_warp_specialized.md

// [arrivals]
// HOLE: how many arrivals complete a phase of each mbarrier?
mbarrier_init(full + stage * 8, 1);
mbarrier_init(empty + stage * 8, 1);
// [/arrivals]

// [producer-acquire]
// HOLE: next, the copies of this k tile go into stage state.index, which may still be in use.
// mbarrier_wait_parity(mbarrier, parity) waits until the phase with this parity is complete. state.phase has the parity.
// [/producer-acquire]

// [consumer-wait]
// HOLE: next, this warp issues the wgmma of the k tile in stage state.index.
// [/consumer-wait]

// [consumer-release]
// HOLE: the wgmma of the k tile in stage `multiplied` are complete (-1: there is none). Those of state.index may still run.
// mbarrier_arrive(mbarrier) counts one arrival of the thread that executes it.
// [/consumer-release]
