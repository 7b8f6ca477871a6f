// 22x_exercise_4 · exercise 4: a descriptor for wgmma
//
// Goal              64 bits by which wgmma finds every row and every chunk of a tile that TMA has swizzled
// Changed from 22   descriptor() is a hole
// Simulator         256 256 256 --type bf16
// GPU               4096 4096 4096 --type bf16
// Run               ./run_all.sh exercise 4
// Read              docs/exercises.md, docs/22_wgmma.md

// [descriptor]
/// A tile in shared memory, for wgmma: rows of 128 bytes along k, swizzled, at address `tile`, a multiple of 1024.
///   bits  0-13  address / 16
///        16-29  leading offset / 16; of no meaning here
///        32-45  stride offset / 16: bytes from 8 rows to the next 8
///        62-63  swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32
constexpr __host__ __device__ uint64_t descriptor(uint32_t tile) {
  return 0;  // HOLE
}
// [/descriptor]
