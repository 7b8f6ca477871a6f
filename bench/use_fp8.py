"""Scaled products of E4M3 and grouped products: PyTorch's own beside those of the library, in one process in shuffled rounds.

usage: PYTHONPATH=lib/python python3 bench/use_fp8.py [--csv FILE] [--rounds N]

torch._scaled_mm with one scale per tensor, per row, and, where this PyTorch has them, per block; torch._grouped_mm with 64 groups
of 4096 x 7168 in BF16, and torch._scaled_grouped_mm where the library has a rung for it. Results are BF16. A sample is some
launches behind a kernel that hides what they cost the host, with operands that do not fit into L2. A time is the median of all
rounds. Writes rows of what, scales, m, n, k, groups, ours_us, torch_us, times, apart, rung: `apart` is the norm of the difference
over that of PyTorch's result. Exit status 1 where they differ by more than rounding, 77 without PyTorch, a GPU, or the library.
"""

import argparse
import csv
import random
import statistics
import sys

WAIVED = 77
SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (128, 4096, 7168),
    (4096, 7168, 2048),
    (4096, 2112, 7168),
    (128, 24576, 1536),
)
GROUPS, GROUP_N, GROUP_K = 64, 4096, 7168
ROTATED_BYTES = 200e6
MOST_APART = 1e-2  # two roundings to BF16 and a sum of 13 bits are 2e-3 to 4e-3
COLUMNS = ("what", "scales", "m", "n", "k", "groups", "ours_us", "torch_us", "times", "apart", "rung")


def waive(why: str) -> None:
    print(f"use_fp8.py: {why}", file=sys.stderr)
    sys.exit(WAIVED)


try:
    import torch
except ImportError:
    waive("needs PyTorch")
try:
    import gemm_ladder

    gemm_ladder.Library.get()
except ImportError:
    waive("gemm_ladder is not found: PYTHONPATH=lib/python")
except OSError as error:
    waive(str(error))


def fp8(*shape: int) -> "torch.Tensor":
    """Normal numbers, the largest of which becomes E4M3's largest."""
    x = torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    return (x * (448 / x.abs().amax().float())).to(torch.float8_e4m3fn)


def scale(*shape: int) -> "torch.Tensor":
    return torch.rand(*shape, device="cuda") / 448 + 1 / 448


def blocks(extent: int) -> int:
    return -(-extent // 128)


def scales(mode: str, m: int, n: int, k: int) -> tuple["torch.Tensor", "torch.Tensor"]:
    """In the layouts that torch._scaled_mm takes."""
    if mode == "tensor":
        return scale(1), scale(1)
    if mode == "rows":
        return scale(m, 1), scale(1, n)
    return scale(blocks(k), m).T, scale(blocks(n), blocks(k)).T


class Pair:
    """The same product by the library and by PyTorch, with as many sets of operands as do not fit into L2."""

    def __init__(self, ours, theirs, operands, set_bytes: float):
        self.calls = {"ours": ours, "theirs": theirs}
        self.sets = [operands() for _ in range(max(1, min(64, round(ROTATED_BYTES / set_bytes))))]

    def why_not(self) -> str:
        """Why PyTorch does not compute it; empty where it does."""
        try:
            self.calls["theirs"](*self.sets[0])
        except (AttributeError, NotImplementedError, RuntimeError, ValueError) as error:
            return str(error).splitlines()[0]
        return ""

    def apart(self) -> float:
        ours, theirs = (call(*self.sets[0]).double() for call in self.calls.values())
        return ((ours - theirs).norm() / theirs.norm()).item()

    def microseconds(self, who: str, launches: int) -> float:
        """Of one launch."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first = random.randrange(len(self.sets))
        torch.cuda._sleep(600_000 * launches)  # clocks, some 300 us: longer than a call takes the host
        begin.record()
        for i in range(launches):
            self.calls[who](*self.sets[(first + i) % len(self.sets)])
        end.record()
        end.synchronize()
        return 1e3 * begin.elapsed_time(end) / launches

    def times(self, rounds: int) -> tuple[float, float]:
        """Microseconds of the library and of PyTorch."""
        warm = max(self.microseconds(who, 2) for who in ("ours", "theirs", "ours", "theirs"))
        launches = max(1, min(16, round(200 / warm)))
        order = [who for who in self.calls for _ in range(rounds)]
        random.shuffle(order)
        found = {who: [] for who in self.calls}
        for who in order:
            found[who].append(self.microseconds(who, launches))
        return statistics.median(found["ours"]), statistics.median(found["theirs"])


def scaled_products():
    """What, scales, sizes, groups, the pair, and what explains the library's."""
    for m, n, k in SHAPES:
        for mode in ("tensor", "rows", "blocks"):

            def operands(m=m, n=n, k=k, mode=mode):
                return fp8(m, k), fp8(n, k).T, *scales(mode, m, n, k)

            def ours(a, b, scale_a, scale_b):
                return gemm_ladder.matmul(a, b, scale_a=scale_a, scale_b=scale_b)

            def theirs(a, b, scale_a, scale_b, fast=mode != "blocks"):
                return torch._scaled_mm(a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)

            def explain(a, b, scale_a, scale_b):
                return gemm_ladder.explain(a, b, scale_a=scale_a, scale_b=scale_b)

            size = m * k + n * k + 2 * m * n
            yield "torch._scaled_mm", mode, m, n, k, 0, Pair(ours, theirs, operands, size), explain


def grouped_products():
    for what, rows in (("equal", [128] * GROUPS), ("16 to 240", [16 + 224 * i // (GROUPS - 1) for i in range(GROUPS)])):
        random.shuffle(rows)
        m, n, k = sum(rows), GROUP_N, GROUP_K
        offs = torch.tensor(rows, device="cuda").cumsum(0).to(torch.int32)

        def bf16(m=m, n=n, k=k):
            a, b = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (GROUPS, n, k)))
            return a, b.transpose(1, 2)

        def ours(a, b, offs=offs):
            return gemm_ladder.grouped_matmul(a, b, offs)

        def theirs(a, b, offs=offs):
            return torch._grouped_mm(a, b, offs=offs)

        size = 2 * (m * k + GROUPS * n * k + m * n)
        yield f"torch._grouped_mm, rows {what}", "none", m, n, k, GROUPS, Pair(ours, theirs, bf16, size), gemm_ladder.explain

        def rowwise(m=m, n=n, k=k):
            return fp8(m, k), fp8(GROUPS, n, k).transpose(1, 2), scale(m), scale(GROUPS, n)

        def ours_scaled(a, b, scale_a, scale_b, offs=offs):
            return gemm_ladder.grouped_matmul(a, b, offs, scale_a=scale_a, scale_b=scale_b)

        def theirs_scaled(a, b, scale_a, scale_b, offs=offs):
            return torch._scaled_grouped_mm(a, b, scale_a, scale_b, offs=offs, out_dtype=torch.bfloat16, use_fast_accum=True)

        def explain(a, b, scale_a, scale_b):
            return gemm_ladder.explain(a, b, scale_a=scale_a, scale_b=scale_b)

        pair = Pair(ours_scaled, theirs_scaled, rowwise, size / 2)
        yield f"torch._scaled_grouped_mm, rows {what}", "rows", m, n, k, GROUPS, pair, explain


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--csv", help="write the rows here, too")
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        waive("needs a GPU")
    random.seed(1)
    torch.manual_seed(1)
    rows, wrong = [], 0
    for produce in (scaled_products, grouped_products):
        for what, mode, m, n, k, groups, pair, explain in produce():
            label, rung = f"{what:42} {mode:6} {m:6} {n:6} {k:6}", explain(*pair.sets[0]).split(":")[0]
            if rung == "plain kernel":
                print(f"{label} no rung of the library", flush=True)
                continue
            if reason := pair.why_not():
                print(f"{label} not in this PyTorch: {reason[:120]}", flush=True)
                continue
            apart = pair.apart()
            ours, theirs = pair.times(options.rounds)
            wrong += not apart <= MOST_APART
            rows.append(
                (what, mode, m, n, k, groups, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.3f}", f"{apart:.1e}", rung)
            )
            print(f"{label} {ours:9.1f} us {theirs:9.1f} us {theirs / ours:6.2f} times, {apart:.1e} apart, {rung}", flush=True)
            del pair
            torch.cuda.empty_cache()
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
