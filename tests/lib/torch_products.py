"""PyTorch's products under libgemm_ladder_blas.so against FP64: prints how many were right; exit status 1 where one is wrong.

usage: LD_PRELOAD=build/lib/libgemm_ladder_blas.so python3 tests/lib/torch_products.py [N]
"""

import random
import sys

import torch


def right(got: torch.Tensor, want: torch.Tensor, scale: torch.Tensor, k: int, unit: float) -> bool:
    allowed = scale * (unit + (k + 8) * 2.0**-23) + want.abs() * unit + 1e-6
    return bool(((got.double() - want).abs() <= allowed).all())


def main(count: int) -> int:
    random.seed(3)
    torch.manual_seed(3)
    wrong = 0
    for i in range(count):
        m, n, k = (random.choice([1, 3, 8, 64, 100, 256, 513, 1024]) for _ in range(3))
        tf32 = random.random() < 0.2
        torch.backends.cuda.matmul.allow_tf32 = tf32
        unit = 2.0**-9 if tf32 else 2.0**-22
        x = torch.randn(m, k, device="cuda") if random.random() < 0.5 else torch.randn(k, m, device="cuda").T
        y = torch.randn(k, n, device="cuda") if random.random() < 0.5 else torch.randn(n, k, device="cuda").T
        kind = random.choice(["mm", "addmm", "bmm", "linear", "grad", "graph"])
        want, scale = x.double() @ y.double(), x.double().abs() @ y.double().abs()
        if kind == "addmm":
            c = torch.randn(m, n, device="cuda")
            got, want = torch.addmm(c, x, y, beta=0.5, alpha=-1.5), 0.5 * c.double() - 1.5 * want
            scale = 1.5 * scale + c.double().abs()
        elif kind == "bmm":
            got = torch.bmm(x.expand(3, m, k), y.expand(3, k, n))[1]
        elif kind == "linear":
            bias = torch.randn(n, device="cuda")
            got, want, scale = torch.nn.functional.linear(x, y.T, bias), want + bias.double(), scale + bias.double().abs()
        elif kind == "grad":
            a = x.clone().requires_grad_()
            (a @ y).backward(g := torch.randn(m, n, device="cuda"))
            got, want, scale, k = a.grad, g.double() @ y.double().T, g.double().abs() @ y.double().abs().T, n
        elif kind == "graph" and i % 10 == 0:
            got = torch.empty(m, n, device="cuda")
            torch.mm(x, y, out=got)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                torch.mm(x, y, out=got)
            got.fill_(float("nan"))
            graph.replay()
        else:
            got = x @ y
        if not right(got, want, scale, k, unit):
            wrong += 1
            print(f"wrong: {kind} {m} x {n} x {k}, TF32 {tf32}, strides {x.stride()} {y.stride()}")
    print(f"{count - wrong} of {count} products right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
