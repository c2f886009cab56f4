"""The environment of PyTorch, apart from that of JAX."""

import os
import pathlib
import subprocess
import sys

from rich.console import Console


# A Python that has torch, torchdiffeq and torchode already.
VARIABLE = "TAYNODE_TORCH_PYTHON"
PACKAGES = ("torch==2.13.0", "torchdiffeq==0.2.5", "torchode==1.0.1")
PLACE = pathlib.Path(__file__).parents[2] / ".venv-torch"


def torch_python(console: Console) -> str | None:
    """A Python with torch, made if there is none; `None`, with a message, if that fails."""
    if given := os.environ.get(VARIABLE):
        return given
    python = PLACE / ("Scripts" if os.name == "nt" else "bin") / "python"
    ready = PLACE / ".ready"
    if not ready.exists():
        console.print(f"Installing {', '.join(PACKAGES)} in {PLACE} ...")
        try:
            subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
            install = [python, "-m", "pip", "install", "--quiet", *PACKAGES]
            subprocess.run(install, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            console.print(f"Without PyTorch ({error}). {VARIABLE} may name a Python that has it.")
            return None
        ready.touch()
    return str(python)
