// Rungs that fail, for the program `broken_ladder`: one right, three wrong, one that ends the GPU's context, one that no GPU has
// the shared memory for.
#include "common/rung.h"
#include "tests/gpu/broken/broken.h"

using namespace ladder;
using broken::Fault;

namespace {

__global__ void write_to_nowhere(float* nowhere) { *nowhere = 1.0F; }

template <Fault fault>
void launch(const Problem& p) {
  broken::launch(fault, p);
}

void launch_into_nowhere(const Problem& p) {
  write_to_nowhere<<<1, 32, 0, p.stream>>>(reinterpret_cast<float*>(16));
  cuda_check(cudaGetLastError());
}

template <int smem_bytes>
Resources resources(const Problem&) {
  return {(const void*)write_to_nowhere, 1024, smem_bytes, {32, 32, 32}};
}

Rung rung(const char* number, const char* name, void (*launch)(const Problem&),
          Resources (*resources)(const Problem&) = resources<0>) {
  return {.number = number,
          .name = name,
          .idea = "fails on purpose",
          .predecessor = "",
          .types = {Type::f32},
          .arch = "sm_70",
          .instruction = MathInstruction::ffma,
          .layout_b = MatrixLayout::row_major,
          .row_align_bytes = 4,
          .resources = resources,
          .launch = launch};
}

const Registration right(rung("90", "right", launch<Fault::none>));
const Registration edge(rung("91", "edge_unwritten", launch<Fault::edge_unwritten>));
const Registration barrier(rung("92", "missing_barrier", launch<Fault::missing_barrier>));
const Registration nan(rung("93", "one_nan", launch<Fault::one_nan>));
const Registration nowhere(rung("94", "illegal_address", launch_into_nowhere));
const Registration after(rung("95", "after_it", launch<Fault::none>));
const Registration large(rung("96", "large", launch<Fault::none>, resources<1 << 20>));

}  // namespace
