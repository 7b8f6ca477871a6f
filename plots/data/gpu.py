"""Which GPU there is here."""

import os
import shutil
import subprocess


def _lines(*arguments: str) -> list[str]:
    """What nvidia-smi says."""
    if not shutil.which("nvidia-smi"):
        return []
    return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True).stdout.splitlines()


def has_gpu() -> bool:
    return any(line.startswith("GPU") for line in _lines("--list-gpus"))


def folder(gpu: str) -> str:
    """Of its results, in `results` or `bench/recorded`."""
    return gpu.lower().replace(" ", "-")


def name() -> str:
    """Of the GPU that CUDA takes, where it numbers them as nvidia-smi does: with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES") or "0"
    return _lines("--query-gpu=name", "--format=csv,noheader", f"--id={device}")[0]
