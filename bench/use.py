"""PyTorch's products and a training step in FP32, with and without libgemm_ladder_blas.so, in one process in turn.

usage: LD_PRELOAD=build/lib/libgemm_ladder_blas.so python3 bench/use.py [--csv FILE] [--rounds N] [--steps N]

The products, in FP32, TF32 and BF16, are those of a layer of a transformer with 7 billion parameters, forward and backward, for
128 to 4096 tokens: each is what torch.nn.functional.linear and its gradients ask of cuBLAS; and the convolutions of ResNet-50 for
32 images, as products. The step trains, in FP32, four layers of a transformer of half that width. Each time is the median of
rounds in which both take turns. Writes rows of what, type, m, n, k, layout, with, without (ms), times. The library must take all
types: GEMM_LADDER_TYPES=f32,tf32,bf16,f16.
Exit status 77 without PyTorch, a GPU, or the library.
"""

import argparse
import csv
import ctypes
import statistics
import sys

WAIVED = 77
WIDTH, HIDDEN = 4096, 11008
LAYERS = {"qkv": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN)}  # out, in
TOKENS = (128, 512, 1024, 2048, 4096)
IMAGES = 32
# ResNet-50's convolutions as products of pixels x outputs x inputs: side of the output, outputs, inputs times the filter's area
CONVOLUTIONS = [(112, 64, 3 * 49)] + [
    shape
    for side, width, before in ((56, 64, 64), (28, 128, 256), (14, 256, 512), (7, 512, 1024))
    for shape in ((side, width, before), (side, width, 9 * width), (side, 4 * width, width), (side, width, 4 * width))
]
TYPES = ("f32", "tf32", "bf16")


def waive(why: str) -> None:
    print(f"use.py: {why}", file=sys.stderr)
    sys.exit(WAIVED)


try:
    import torch
except ImportError:
    waive("needs PyTorch")


class Turns:
    """Times calls with and without the library, in turn."""

    def __init__(self, rounds: int):
        self.rounds = rounds
        try:
            self.off = ctypes.CDLL(None).gemm_ladder_blas_off
        except AttributeError:
            waive("libgemm_ladder_blas.so is not preloaded: LD_PRELOAD=build/lib/libgemm_ladder_blas.so")

    def times(self, call) -> tuple[float, float]:
        """Milliseconds with, and without."""
        found = ([], [])
        for i in range(self.rounds + 1):  # the first one warms up
            for off in ((0, 1), (1, 0))[i % 2]:
                self.off(off)
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                call()
                end.record()
                end.synchronize()
                if i > 0:
                    found[off].append(begin.elapsed_time(end))
        self.off(0)
        return statistics.median(found[0]), statistics.median(found[1])


def products(turns: Turns):
    """Forward, gradient of the input, gradient of the weight of each linear layer; and forward of each convolution."""
    for kind in TYPES:
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"

        def random(*shape: int, dtype=torch.bfloat16 if kind == "bf16" else torch.float32):
            return torch.randn(*shape, device="cuda", dtype=dtype)

        for tokens in TOKENS:
            for name, (outs, ins) in LAYERS.items():
                x, w, g = random(tokens, ins), random(outs, ins), random(tokens, outs)
                yield f"{name}, forward", kind, tokens, outs, ins, "nt", turns.times(lambda x=x, w=w: x @ w.T)
                yield f"{name}, gradient of x", kind, tokens, ins, outs, "nn", turns.times(lambda g=g, w=w: g @ w)
                yield f"{name}, gradient of w", kind, outs, ins, tokens, "tn", turns.times(lambda g=g, x=x: g.T @ x)
        for side, outs, ins in CONVOLUTIONS:
            pixels = IMAGES * side**2
            x, w = random(pixels, ins), random(outs, ins)
            yield "ResNet-50, forward", kind, pixels, outs, ins, "nt", turns.times(lambda x=x, w=w: x @ w.T)
    torch.backends.cuda.matmul.allow_tf32 = False


def step(turns: Turns, steps: int):
    """A training step of four layers, and how far the losses of both ways are apart after some steps."""

    def model():
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0, batch_first=True)
        return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()

    data = torch.randn(4, 512, 2048, device="cuda")

    def train(trained, optimizer):
        optimizer.zero_grad()
        loss = (trained(data) - data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for off in (0, 1):
        turns.off(off)
        trained = model()
        optimizer = torch.optim.SGD(trained.parameters(), lr=1e-2)
        losses.append([train(trained, optimizer).item() for _ in range(steps)])
    apart = max(abs(a / b - 1) for a, b in zip(*losses, strict=True))
    print(f"losses of {steps} steps: at most {apart:.1e} apart, from {losses[0][0]:.4f} to {losses[0][-1]:.4f}", file=sys.stderr)
    turns.off(0)
    trained = model()
    optimizer = torch.optim.SGD(trained.parameters(), lr=1e-2)
    yield "training step, 4 layers of 2048", "f32", 2048, 2048, 2048, "", turns.times(lambda: train(trained, optimizer))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--csv", help="write the rows here, too")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        waive("needs a GPU")
    turns = Turns(options.rounds)
    rows = []
    for what, kind, m, n, k, layout, (ours, theirs) in [*products(turns), *step(turns, options.steps)]:
        rows.append((what, kind, m, n, k, layout, f"{ours:.4f}", f"{theirs:.4f}", f"{theirs / ours:.3f}"))
        sizes = f"{m:6} {n:6} {k:6} {layout:3}"
        print(f"{what:32} {kind:5} {sizes} {ours:9.3f} ms {theirs:9.3f} ms {theirs / ours:6.2f} times", flush=True)
    for kind in TYPES:
        times = [float(row[-1]) for row in rows if row[1] == kind and row[5]]
        print(f"products in {kind}: {statistics.geometric_mean(times):.3f} times as fast (geometric mean of {len(times)})")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["what", "type", "m", "n", "k", "layout", "with_ms", "without_ms", "times"])
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
