"""Makes slides in a process of its own: `python -m wsigym.cohorts.synthetic.worker FOLDER SEED SIZE_PX`.

Reads the number of a slide a line from stdin, makes it, and prints what is annotated on it as a line of JSON. Ends when
stdin does, or at the next row of blocks once the parent process is gone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import cv2

from .slide import make_slide


def main(folder: str, seed: str, size_px: str) -> None:
    """Serve until stdin ends."""
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            sys.exit(1)

    cv2.setNumThreads(1)
    for line in sys.stdin:
        annotations = make_slide(Path(folder), int(seed), int(line), int(size_px), check)
        sys.stdout.write(json.dumps(dataclasses.asdict(annotations)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
