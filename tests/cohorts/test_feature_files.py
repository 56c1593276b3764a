"""Features of items: what a `.npy` file may hold, and one line for each that holds something else."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evidence_builder import SUITE, TASK, build_evidence, item, reference
from hypothesis import given
from hypothesis import strategies as st

from wsigym.cohorts import Cohort
from wsigym.cohorts.feature_files import feature_faults, load_features
from wsigym.cohorts.item_files import image_faults, load_items
from wsigym.cohorts.items import FeatureFiles
from wsigym.errors import InvalidArgumentError

ITEMS = f"items/{SUITE}/{TASK}.jsonl"
NAMES = {"features": "f.npy", "coordinates": "c.npy"}
FILES = FeatureFiles(features="f.npy", coordinates="c.npy")


def raw_npy(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """A `.npy` file whose header is this text, whatever it says."""
    length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + length + header.encode("latin1") + data


def claiming(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    return raw_npy(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n", bytes(96))


def saved(array: Any) -> Callable[[Path], object]:
    return lambda path: np.save(path, array)


def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def archive(path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, features=np.ones((3, 4)))
    path.write_bytes(buffer.getvalue())


def marked(value: float, order: Any = "C", dtype: Any = np.float32) -> Any:
    array = np.ones((3, 4), dtype, order)
    array[1, 2] = value
    return array


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cohort of one item with sound features, and one with another fault."""
    np.save(tmp_path / "f.npy", np.ones((3, 4), np.float32))
    np.save(tmp_path / "c.npy", np.arange(6).reshape(3, 2))
    items = [item(0, images=[], evidence=None, features=NAMES), item(1, images=[])]
    return build_evidence(tmp_path, items, [reference(0), reference(1, answer=9)], slides=(), pixels=False)


FAULTY: dict[str, tuple[Callable[[Path], object], str]] = {
    "archive": (archive, "an .npz archive"),
    "pickle": (lambda path: path.write_bytes(b"\x80\x04N."), "not in the .npy format"),
    "empty": (written(b""), "not in the .npy format"),
    "text": (written(b"1,2,3\n"), "not in the .npy format"),
    "cut in the header": (written(raw_npy("{'descr'")[:12]), "header"),
    "no header": (written(raw_npy("import os")), "header"),
    "nested header": (written(raw_npy("(" * 9000)), "header"),
    "other version": (written(raw_npy("{}", version=(3, 0))), "version 3.0"),
    "objects": (saved(np.array([[{}, 1]], object)), "of dtype object"),
    "text values": (saved(np.array([["a", "b"]])), "of dtype <U1"),
    "truth values": (saved(np.ones((3, 4), bool)), "of dtype bool"),
    "complex": (saved(np.ones((3, 4), complex)), "of dtype complex128"),
    "giant": (written(claiming((10**9, 1000))), "shape (1000000000, 1000) of float32, 4,000,000,000,000 bytes, and 96"),
    "beyond 64 bits": (written(claiming((10**30, 10**30))), "and 96"),
    "cut short": (written(claiming((3, 10))), "120 bytes, and 96"),
    "one axis": (saved(np.ones(4)), "shape (4,)"),
    "three axes": (saved(np.ones((3, 4, 1))), "shape (3, 4, 1)"),
    "negative": (written(claiming((-3, -4))), "shape (-3, -4)"),
    "no row": (saved(np.ones((0, 4))), "shape (0, 4)"),
    "no column": (saved(np.ones((3, 0))), "shape (3, 0)"),
    "nan": (saved(marked(float("nan"))), "nan in row 1, column 2"),
    "infinite": (saved(marked(float("-inf"), dtype=">f8")), "-inf in row 1, column 2"),
    "nan, by columns": (saved(marked(float("nan"), order="F")), "nan in row 1, column 2"),
    "half": (saved(marked(float("inf"), dtype=np.float16)), "inf in row 1, column 2"),
    "pipe": (os.mkfifo, "not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "f.npy"),
    "folder": (Path.mkdir, "not a regular file"),
    "missing": (lambda path: None, "No such file"),
    "loop": (lambda path: path.symlink_to(path), "symbolic links"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_file_is_one_line_among_the_others(folder: Path, name: str) -> None:
    make, said = FAULTY[name]
    (folder / "f.npy").unlink()
    make(folder / "f.npy")
    faults = Cohort.faults_of(folder)
    assert [(fault.file, fault.line, fault.field) for fault in faults] == [
        (f"references/{SUITE}/{TASK}.jsonl", 2, "answer"),
        (ITEMS, 1, "features.features"),
    ]
    assert "'f.npy'" in faults[1].message
    assert said in faults[1].message
    assert str(folder) not in faults[1].message


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones((3, 3)), "'c.npy' has shape (3, 3); (3, 2) is needed"),
        (np.ones((4, 2)), "'c.npy' has shape (4, 2); (3, 2) is needed, x and y of each of the 3 rows of 'f.npy'"),
        (np.array([[0, 1], [2, 3], [4, np.nan]]), "'c.npy' has nan in row 2, column 1"),
    ],
)
def test_the_file_at_fault_is_named(folder: Path, array: Any, said: str) -> None:
    np.save(folder / "c.npy", array)
    (fault,) = [fault for fault in Cohort.faults_of(folder) if fault.file == ITEMS]
    assert (fault.line, fault.field) == (1, "features.coordinates")
    assert said in fault.message
    with pytest.raises(InvalidArgumentError) as caught:
        load_features(Cohort.load(folder), FILES)
    assert said in str(caught.value)


def test_both_files_may_be_at_fault(folder: Path) -> None:
    (folder / "f.npy").write_bytes(claiming((10**9, 1000)))
    np.save(folder / "c.npy", np.ones((3, 3)))
    faults = [fault for fault in Cohort.faults_of(folder) if fault.file == ITEMS]
    assert [fault.field for fault in faults] == ["features.features", "features.coordinates"]
    assert "(n, 2) is needed" in faults[1].message


def test_before_a_run_values_are_not_read(folder: Path) -> None:
    np.save(folder / "f.npy", marked(float("nan")))
    cohort = Cohort.load(folder)
    assert feature_faults(cohort, FILES, decode=False) == []
    assert [field for field, _ in feature_faults(cohort, FILES, decode=True)] == ["features"]
    np.save(folder / "f.npy", np.ones(3))
    assert [field for field, _ in feature_faults(cohort, FILES, decode=False)] == ["features"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "<i8", "u1"])
def test_features_are_read_with_their_coordinates(folder: Path, order: Any, dtype: str) -> None:
    array = np.asarray(np.arange(12).reshape(3, 4), dtype, order)
    np.save(folder / "f.npy", array)
    features, coordinates = load_features(Cohort.load(folder), FILES)
    assert (features == array).all()
    assert features.dtype == array.dtype
    assert coordinates.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert type(features) is type(coordinates) is np.ndarray  # a memory map would tell where its file is
    assert features.base is None or type(features.base) is np.ndarray


def test_values_are_looked_at_in_every_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsigym.cohorts.feature_files.BLOCK", 5)
    array = np.arange(28.0).reshape(7, 4)
    np.save(folder / "f.npy", array)
    np.save(folder / "c.npy", np.ones((7, 2)))
    assert (load_features(Cohort.load(folder), FILES)[0] == array).all()
    array[6, 3] = np.nan
    np.save(folder / "f.npy", array)
    (fault,) = [fault for fault in Cohort.faults_of(folder) if fault.file == ITEMS]
    assert "nan in row 6, column 3" in fault.message


@given(header=st.binary(max_size=200) | st.text("{}()[],:' <>f48descrfortran_ordershapeTrue\\\n-*L", max_size=120))
def test_no_header_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, header: bytes | str) -> None:
    root = tmp_path_factory.getbasetemp() / "headers"
    if not root.exists():
        build_evidence(root, [item(images=[])], [reference()], pixels=False)
        np.save(root / "c.npy", np.ones((3, 2)))
    text = header.decode("latin1") if isinstance(header, bytes) else header
    (root / "f.npy").write_bytes(raw_npy(text, bytes(8)))
    assert [field for field, _ in feature_faults(Cohort.load(root), FILES, decode=True)] == ["features"]


def test_items_of_one_slide_read_its_features_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 5
    build_evidence(
        folder,
        [item(n, images=[], evidence=None, features=NAMES) for n in range(count)],
        [reference(n) for n in range(count)],
    )
    (folder / "f.npy").write_bytes(b"")
    cohort = Cohort.load(folder)
    calls: list[FeatureFiles] = []

    def counted(cohort: Cohort, files: FeatureFiles, *, decode: bool) -> list[tuple[str, str]]:
        calls.append(files)
        return feature_faults(cohort, files, decode=decode)

    monkeypatch.setattr("wsigym.cohorts.item_files.feature_faults", counted)
    found = list(image_faults(cohort, load_items(cohort, SUITE, TASK), decode=True))
    assert (len(found), len(calls)) == (count, 1)
