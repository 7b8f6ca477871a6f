// 30x_exercise_8 · exercise 8: the fix-up of split-K in a cluster
//
// Goal              each block of a cluster gets the partial sums of its own columns from all others, waits for them, and adds them
// Changed from 30   who sends what where, what is waited for and what is added are holes; one tile, clusters of eight splits alone
// Constants         ONLY 9, ONLY_CLUSTER 5
// Simulator         128 128 2048 --type bf16
// GPU               256 256 16384 --type bf16
// Run               ./run_all.sh exercise 8
// Read              docs/exercises.md, docs/30_split_k_cluster.md

// [bytes]
// HOLE: how many bytes do the other blocks send to block `split`? It owns those parts j for which j % splits is `split`. A part has
// 64 x 8 sums of 4 bytes; there are Tile::BN / 8 of them in every 64 of Tile::BM rows.
return 0;
// [/bytes]

// [slot]
// HOLE: block `to` has received parts of splits - 1 blocks, each in a slot of its own, 0 to splits - 2. Which one is of block `from`?
const int slot = 0;
// [/slot]

// [sends]
// HOLE: acc[i][j] is a part that block `owner` owns, the k-th of its own. st_async4(address, acc[i][j], mbarrier) sends four sums to
// `address` and counts their bytes at `mbarrier`; both are addresses of the other block: mapa(address, block).
// [/sends]

// [wait]
// HOLE: next, what the others have sent is read. mbarrier_wait_parity_cluster(mbarrier, parity) also sees what they have stored.
// [/wait]

// [adds]
// HOLE: for_parts<Tile>(splits, [&](int i, int j, int owner, int k) { ... }) goes over the parts of acc, and load4_shared(part, address)
// loads four sums. To acc[i][j] belong those at place(from, split, i, k), for every other block `from`.
// [/adds]
