"""Makes one slide in a process of its own: `python -m wsigym.cohorts.synthetic.worker FOLDER SEED INDEX SIZE_PX`.

Prints the slide's annotations as JSON. Ends quietly if the parent process dies.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import cv2

from .slide import make_slide


def main(folder: str, seed: str, index: str, size_px: str) -> None:
    """Make the slide and print what is annotated on it."""
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            sys.exit(1)

    cv2.setNumThreads(1)
    annotations = make_slide(Path(folder), int(seed), int(index), int(size_px), check)
    sys.stdout.write(json.dumps(dataclasses.asdict(annotations)))


if __name__ == "__main__":
    main(*sys.argv[1:])
