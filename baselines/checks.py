"""What is checked before a training begins, so that a fault is told in a second and not when all is learned."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsigym.errors import InvalidArgumentError

__all__ = ["MAX_SEED", "check_seed", "extra_rl", "new_file"]

MAX_SEED = 2**32 - 1
"""NumPy's old generator, which stable-baselines3 seeds, takes no larger one."""


def check_seed(seed: int) -> None:
    """Raises `InvalidArgumentError` for a seed that is not 0 to 2^32 - 1."""
    if not 0 <= seed <= MAX_SEED:
        raise InvalidArgumentError(f"seed is {seed}; allowed is 0 to {MAX_SEED}.")


@contextmanager
def extra_rl(asked: str) -> Iterator[None]:
    """Raises `InvalidArgumentError` that says what to install for what was `asked`, where an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InvalidArgumentError(
            f"{asked} needs {error.name}, which is not installed: pip install 'wsigym[rl]'."
        ) from None


@contextmanager
def new_file(out: Path) -> Iterator[Path]:
    """An empty file beside `out` to write to, which becomes `out` if the block ends well, and is removed if not.

    Raises `InvalidArgumentError` where `out` is there, be it before or after, or cannot be written.
    """
    try:
        if out.exists():
            raise InvalidArgumentError(f"{out} exists; name a new file, or remove it first.")
        out.parent.mkdir(parents=True, exist_ok=True)
        aside = out.with_name(f".{out.name}.{os.getpid()}.part")
        aside.touch()
    except OSError as error:
        raise InvalidArgumentError(f"{out} cannot be written ({error}); name another file.") from None
    try:
        yield aside
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if out.exists():
        raise InvalidArgumentError(f"{out} was written by another process meanwhile; what was made here is in {aside}.")
    aside.replace(out)
