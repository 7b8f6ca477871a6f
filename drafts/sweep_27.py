#!/usr/bin/env python3
"""Variants of the draft of rung 27, timed side by side: the order of its FMAs, registers, lanes, barriers, and design T.

usage: python3 drafts/sweep_27.py [--shapes SHAPES] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Sweep

DRAFT = ROOT / "drafts/27_sgemm_hopper.cu"
Change = Callable[[str], str]


def replaced(old: str, new: str) -> Change:
    def change(s: str) -> str:
        if old not in s:
            sys.exit(f"sweep_27: the draft does not have: {old}")
        return s.replace(old, new)

    return change


def order(backwards_i: bool, backwards_j: bool) -> Change:
    """The FMAs of a k step, row by row, each second row from right to left; all that mirrored."""

    def change(s: str) -> str:
        begin = s.index(
            "#pragma unroll\n          for (int i = 0; i < TM; ++i) {\n#pragma unroll\n            for (int j = 0; j < TN; ++j) {"
        )
        end = s.index("        }\n        ring_k = next_k;")
        loop = f"""#pragma unroll
          for (int ii = 0; ii < TM; ++ii)
#pragma unroll
            for (int j = 0; j < TN; ++j) {{
              const int i = {"TM - 1 - ii" if backwards_i else "ii"}, js = ii % 2 ? TN - 1 - j : j;
              const int jj = {"TN - 1 - js" if backwards_j else "js"};
              acc[i][jj] += rA[k % 2][i] * rB[k % 2][jj];
            }}
"""
        return s[:begin] + loop + s[end:]

    return change


REGISTERS = replaced("PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224", "PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216")
NO_SHARES = replaced(
    "SchedulePlan plan(const Problem& p) { return best_schedule(costs, share_costs, tiled(p, shape, device_limits().sms)); }",
    "SchedulePlan plan(const Problem& p) { const TiledProduct t = tiled(p, shape, device_limits().sms); "
    "return {Schedule(min(t.c_tiles, t.sms), t.c_tiles, t.k_tiles, 1, t.c_tiles), 0}; }",
)
LANES_OF_08 = [
    replaced("return (lane ^ lane >> 2) & 3", "return lane & 3"),
    replaced("return lane / 16 * 4 + lane % 4", "return lane / 4"),
]
BARRIER_EVERY_16 = [replaced("BK = 32;", "BK = 16;"), replaced("STAGES = 4;", "STAGES = 8;")]
UNIT_16 = replaced("UNIT = 8;", "UNIT = 16;")


def cut(s: str, a: str, b: str, new: str) -> str:
    """`s` with what begins with `a` and ends before `b` replaced."""
    i = s.index(a)
    return s[:i] + new + s[s.index(b, i) :]


def transposed_first(s: str, pdl: bool, producer: int = 40, consumer: int = 232) -> str:
    """Design T: a kernel transposes A first, so that one thread can ask for all tiles."""
    s = cut(
        s,
        "    constexpr int BOXES = Tile::BOXES, BOX_K",
        "    return;\n  }\n  // [/producer]",
        """    if (threadIdx.x == 0) {
      %s
      Segment segment;
#pragma unroll 1
      for (int i_segment = 0; (segment = segment_of(schedule, blockIdx.x, i_segment)).k_tiles > 0; ++i_segment) {
        const auto [a, b] = raster(segment.c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
        const int a_row = a * BM, b_col = b * BN;
#pragma unroll 1
        for (int k_tile = segment.first; k_tile < segment.first + segment.k_tiles; ++k_tile) {
          mbarrier_sleep_parity(empty + stage * 8, parity ^ 1);
          mbarrier_arrive_expect_tx(full + stage * 8, BK * (BM + BN) * 4);
          cp_async_bulk_tensor_2d(sA + stage * BK * BM * 4, map_a, a_row, k_tile * BK, full + stage * 8);
          cp_async_bulk_tensor_2d(sB + stage * BK * BN * 4, map_b, b_col, k_tile * BK, full + stage * 8);
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
      }
    }
"""
        % ('asm volatile("griddepcontrol.wait;" ::: "memory");' if pdl else ""),
    )
    s = s.replace("mbarrier_init(full + stage * 8, Tile::PRODUCERS / 32 + 1);", "mbarrier_init(full + stage * 8, 1);")
    s = s.replace("return i / 32 * 32 + i % 4 * 8 + i / 4 % 8;", "return i;")
    s = s.replace(
        "PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224", f"PRODUCER_REGISTERS = {producer}, CONSUMER_REGISTERS = {consumer}"
    )
    s = s.replace("BOXES = 4;", "BOXES = 0;")
    s = re.sub(r"__host__ __device__ constexpr int swizzle_64b.*?\n", "", s)
    s = re.sub(r"__device__ __forceinline__ void store4_shared.*?\n}\n", "", s, flags=re.S)
    s = s.replace(
        "/// partial_sums and flags: of the blocks that leave",
        """__global__ void __launch_bounds__(256) transpose(int M, int K, const float* __restrict__ A, int lda,
                                                 float* __restrict__ AT, int ld) {
  __shared__ float tile[64][65];
  const int m0 = blockIdx.y * 64, k0 = blockIdx.x * 64;
  const int x4 = threadIdx.x %% 16 * 4, y = threadIdx.x / 16;
  for (int i = y; i < 64; i += 16) {
    if (m0 + i < M && k0 + x4 < K) {
      const float4 v = *reinterpret_cast<const float4*>(A + static_cast<size_t>(m0 + i) * lda + k0 + x4);
      tile[i][x4] = v.x, tile[i][x4 + 1] = v.y, tile[i][x4 + 2] = v.z, tile[i][x4 + 3] = v.w;
    } else {
      tile[i][x4] = tile[i][x4 + 1] = tile[i][x4 + 2] = tile[i][x4 + 3] = 0;
    }
  }
  __syncthreads();
  for (int i = y; i < 64; i += 16)
    if (k0 + i < K && m0 + x4 < M)
      *reinterpret_cast<float4*>(AT + static_cast<size_t>(k0 + i) * ld + m0 + x4) =
          float4{tile[x4][i], tile[x4 + 1][i], tile[x4 + 2][i], tile[x4 + 3][i]};
%s}

/// partial_sums and flags: of the blocks that leave"""
        % ('  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");\n' if pdl else ""),
        1,
    )
    s = s.replace(
        """  cudaLaunchAttribute resident{};""",
        """  const int at_ld = ceil_div(p.m, 4) * 4;
  float* const at = static_cast<float*>(p.workspace);
  float* const sums = at + static_cast<size_t>(at_ld) * ceil_div(p.k, 64) * 64;
  transpose<<<dim3(ceil_div(p.k, 64), ceil_div(p.m, 64)), 256, 0, p.stream>>>(p.m, p.k, p.A<float>(), p.lda, at, at_ld);
  cudaLaunchAttribute resident[2]{};""",
    )
    s = (
        s.replace("resident.id =", "resident[0].id =")
        .replace("resident.val.coop", "resident[0].val.coop")
        .replace(
            "config.attrs = &resident, config.numAttrs = schedule.shared_tiles > 0;",
            (
                """config.attrs = resident;
  resident[0].id = cudaLaunchAttributeProgrammaticStreamSerialization, resident[0].val.programmaticStreamSerializationAllowed = 1;
  config.numAttrs = 1;"""
                if pdl
                else "config.attrs = resident, config.numAttrs = schedule.shared_tiles > 0;"
            ),
        )
    )
    s = s.replace(
        "tensor_map(p.a, p.m, p.k, p.lda, Tile::BM, Tile::BOX_K, CU_TENSOR_MAP_SWIZZLE_64B)",
        "tensor_map(at, p.k, p.m, at_ld, Tile::BK, Tile::BM, CU_TENSOR_MAP_SWIZZLE_NONE)",
    )
    s = s.replace("schedule, static_cast<float*>(p.workspace), p.flags", "schedule, sums, p.flags")
    s = s.replace(
        "leave * size_t{4} * Tile::BM * Tile::BN,",
        "leave * size_t{4} * Tile::BM * Tile::BN + size_t{4} * ceil_div(p.m, 4) * 4 * ceil_div(p.k, 64) * 64,",
    )
    return s


VARIANTS: dict[str, list[Change]] = {
    "as_written": [],
    "no_shares": [NO_SHARES],
    "j_backwards": [order(False, True), REGISTERS],
    "i_backwards": [order(True, False)],
    "registers_72_216": [REGISTERS],
    "lanes_of_08": LANES_OF_08,
    "barrier_every_16": BARRIER_EVERY_16,
    "unit_16": [order(False, True), REGISTERS, UNIT_16],
    "t": [lambda s: transposed_first(s, False)],
    "t_launched_early": [lambda s: transposed_first(s, True)],
    "t_i_backwards": [order(True, False), lambda s: transposed_first(s, False)],
    "t_j_backwards": [order(False, True), lambda s: transposed_first(s, False, 72, 216)],
    "again": [],
}


class DraftSweep(Sweep):
    source, arch, types = DRAFT, "sm_90a", ("f32",)

    def varied(self, name: str) -> str:
        text = DRAFT.read_text(encoding="utf-8")
        for change in VARIANTS[name]:
            text = change(text)
        return replaced('.name = "sgemm_hopper"', f'.name = "{name}"')(text)


SWEEP = DraftSweep(
    "27_sgemm_hopper",
    {name: [] for name in VARIANTS},
    shapes="4096x4096x4096,8192x8192x8192,2048x2048x2048,1024x1024x1024,16384x16384x1024",
    protocol="rounds",
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
