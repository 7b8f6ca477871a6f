"""Whether there is a GPU here."""

import shutil
import subprocess


def has_gpu() -> bool:
    return bool(shutil.which("nvidia-smi")) and not subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True).returncode
