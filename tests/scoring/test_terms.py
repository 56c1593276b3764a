"""Entity recall by hand."""

from __future__ import annotations

import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.answers import Vocabulary, parse_terms
from wsigym.scoring.terms import entity_recall


def test_by_hand() -> None:
    assert entity_recall(["stroma"], ["stroma", "gland"]) == 0.5
    assert entity_recall(["stroma", "gland", "necrosis"], ["stroma", "gland"]) == 1
    assert entity_recall(["necrosis"], ["stroma"]) == 0
    assert entity_recall([], ["stroma"]) == 0
    assert entity_recall(["stroma"], ["stroma", "stroma"]) == 1


def test_aliases_and_duplicates() -> None:
    named = parse_terms("TILs, lymphocytes", Vocabulary(["lymphocyte", "gland"], {"TIL": "lymphocyte"}))
    assert entity_recall(named or (), ["lymphocyte", "gland"]) == 0.5


def test_an_empty_truth() -> None:
    with pytest.raises(InvalidArgumentError, match="no term"):
        entity_recall(["stroma"], [])
