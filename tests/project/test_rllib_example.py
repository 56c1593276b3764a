"""The example for RLlib in docs/clusters.md trains. RLlib is not among what the tests install:

pip install 'ray[rllib]' --constraint constraints.txt torch '.[dev]'
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .markdown import blocks_of

pytest.importorskip("ray.rllib", reason="RLlib is not installed: pip install 'ray[rllib]'", exc_type=ImportError)

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
def test_the_example_trains(root: Path, tmp_path: Path) -> None:
    (block,) = [block for block in blocks_of(root / "docs/clusters.md") if "rllib" in block.text and block.not_run]
    script = tmp_path / "example.py"
    script.write_text(block.text, encoding="utf-8")
    quiet = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = re.findall(r"^(\d+) steps, mean return (\S+)$", done.stdout, re.MULTILINE)
    assert [int(steps) > number * 512 for number, (steps, _) in enumerate(told)] == [True, True]
    assert all(abs(float(mean)) <= 1 for _, mean in told)
