"""Trains a transformer and a ResNet in FP32 with and without libgemm_ladder_blas.so: their losses and the time of a step.

usage: LD_PRELOAD=build/lib/libgemm_ladder_blas.so python3 bench/train.py [--csv FILE] [--steps N]

Two models with one start take turns, step by step, in one process: one with the library, the other without it. Both see the same
synthetic data. DRAWS more models show what rounding alone does to the training. They run without the library. Their weights begin
one unit in the last place away, each's in random directions of its own, and they see the samples of each batch in reverse, so
that sums over samples are added up in another order. Exact arithmetic would hardly tell them from the other two.

Losses are equal within rounding if at each step they differ by at most TIMES the largest difference of these models up to that
step, or by FLOOR. All differences begin as roundings in the last bit, and training amplifies them alike. Each model is a random
draw of them: TIMES leaves room for another draw, and FLOOR for the sum of the loss itself. A product that loses bits shows
at the first steps, before much is amplified: TF32 has 11 bits of FP32's 24, so its differences begin thousands of times larger.

Writes rows of what, steps, with, without (ms, medians), times, and the largest relative difference of the losses up to a step N:
apart_N with and without the library, rounding_N of the models that show rounding. Exit status 1 where losses
are not equal within rounding, 77 without PyTorch, a GPU, or the library.
"""

import argparse
import csv
import ctypes
import statistics
import sys
from itertools import accumulate
from math import inf, isnan

WAIVED = 77
TIMES, FLOOR, DRAWS = 10, 1e-6, 3
TOKENS, WORDS, BATCH, WIDTH, LAYERS = 256, 4096, 8, 1024, 8  # of the transformer
IMAGES, CLASSES = 32, 100  # of the ResNet


def waive(why: str) -> None:
    print(f"train.py: {why}", file=sys.stderr)
    sys.exit(WAIVED)


def apart(losses: list[float], others: list[float]) -> list[float]:
    """For each step the largest relative difference up to it; from a not-a-number on infinite."""
    each = (abs(a / b - 1) for a, b in zip(losses, others, strict=True))
    return list(accumulate((inf if isnan(one) else one for one in each), max))


def beyond(differences: list[float], rounding: list[float]) -> int | None:
    """The first step, counted from 1, at which losses differ by more than rounding."""
    both = enumerate(zip(differences, rounding, strict=True), 1)
    return next((step for step, (now, one) in both if now == inf or now > max(FLOOR, TIMES * one)), None)


def columns(steps: int) -> list[int]:
    """The steps whose differences are written."""
    return sorted({step for step in (1, 10, 50, 100, 200) if step < steps} | {steps})


try:
    import torch
    from torch import nn
except ImportError:
    if __name__ == "__main__":
        waive("needs PyTorch")


def transformer():
    """A model of language, its optimizer, its loss, and the batch of a step."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, WORDS)

        def forward(self, text):
            there = torch.arange(text.shape[1], device=text.device)
            mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1], device=text.device)
            return self.head(self.layers(self.words(text) + self.places(there), mask, is_causal=True))

    def batch(generator):
        """Each word follows from the one before it, but for one of ten."""
        text = torch.randint(WORDS, (BATCH, TOKENS + 1), generator=generator, device=generator.device)
        chance = torch.rand(BATCH, TOKENS, generator=generator, device=generator.device)
        for i in range(TOKENS):
            text[:, i + 1] = torch.where(chance[:, i] < 0.9, (5 * text[:, i] + 7) % 97, text[:, i + 1])
        return text[:, :-1], text[:, 1:]

    def loss(model, text, following):
        return nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())

    return Model(), lambda parameters: torch.optim.AdamW(parameters, lr=3e-4), loss, batch


def resnet():
    """Likewise, a model of images: ResNet-50 of torchvision."""
    from torchvision.models import resnet50

    patterns = torch.randn(CLASSES, 3, 8, 8).cuda()

    def batch(generator):
        """A pattern per class, under noise."""
        labels = torch.randint(CLASSES, (IMAGES,), generator=generator, device=generator.device)
        images = torch.randn(IMAGES, 3, 224, 224, generator=generator, device=generator.device)
        return images + nn.functional.interpolate(patterns[labels], (224, 224)), labels

    def loss(model, images, labels):
        return nn.functional.cross_entropy(model(images), labels)

    model = resnet50(num_classes=CLASSES, zero_init_residual=True)  # its first steps amplify roundings less
    return model, lambda parameters: torch.optim.SGD(parameters, lr=0.005, momentum=0.9), loss, batch


def train(make, off, steps: int) -> tuple[list[list[float]], list[float]]:
    """The losses of the models, and their median times of a step: with the library, without it, and to see rounding."""
    runs = []
    for _ in range(2 + DRAWS):
        torch.manual_seed(0)
        model, optimizer, loss, batch = make()
        model = model.cuda().train()
        runs.append((model, optimizer(model.parameters()), [], []))
    with torch.no_grad():
        for model, *_ in runs[2:]:
            for weights in model.parameters():
                weights.copy_(torch.nextafter(weights, torch.randn_like(weights)))
    for step in range(steps):
        data = batch(torch.Generator("cuda").manual_seed(step))
        reverse = [one.flip(0) for one in data]
        for i, (model, optimizer, losses, times) in enumerate(runs):
            off(int(i > 0))
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            optimizer.zero_grad()
            now = loss(model, *(data if i < 2 else reverse))
            now.backward()
            optimizer.step()
            end.record()
            end.synchronize()
            losses.append(now.item())
            times.append(begin.elapsed_time(end))
    off(0)
    return [losses for _, _, losses, _ in runs], [statistics.median(times[steps // 10 :]) for _, _, _, times in runs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--csv", help="write the rows here, too")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        waive("needs a GPU")
    try:
        off = ctypes.CDLL(None).gemm_ladder_blas_off
    except AttributeError:
        waive("libgemm_ladder_blas.so is not preloaded: LD_PRELOAD=build/lib/libgemm_ladder_blas.so")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    models = {f"transformer, {LAYERS} layers of {WIDTH}": transformer, "ResNet-50": resnet}
    try:
        import torchvision  # noqa: F401
    except ImportError:
        del models["ResNet-50"]
        print("there is no torchvision, and no ResNet", file=sys.stderr)
    rows, status, at = [], 0, columns(options.steps)
    for what, make in models.items():
        (ours, theirs, *moved), (with_ms, without_ms, *_) = train(make, off, options.steps)
        differences = apart(ours, theirs)
        rounding = [max(draws) for draws in zip(*(apart(one, theirs) for one in moved), strict=True)]
        times, by_step = (
            f"{without_ms / with_ms:.3f}",
            [f"{some[step - 1]:.1e}" for some in (differences, rounding) for step in at],
        )
        rows.append((what, options.steps, f"{with_ms:.3f}", f"{without_ms:.3f}", times, *by_step))
        print(f"{what}: a step {with_ms:.2f} ms with, {without_ms:.2f} ms without, {times} times")
        print(f"  loss {theirs[0]:.4f} at first, then {ours[-1]:.4f} with, {theirs[-1]:.4f} without")
        print(f"  largest difference up to steps {', '.join(map(str, at))}: {', '.join(by_step[: len(at)])}")
        print(f"  that of rounding alone: {', '.join(by_step[len(at) :])}", flush=True)
        if step := beyond(differences, rounding):
            print(f"  not equal within rounding from step {step}: {ours[step - 1]!r} with, {theirs[step - 1]!r} without")
            status = 1
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            names = [f"{kind}_{step}" for kind in ("apart", "rounding") for step in at]
            writer.writerow(["what", "steps", "with_ms", "without_ms", "times", *names])
            writer.writerows(rows)
    return status


if __name__ == "__main__":
    sys.exit(main())
