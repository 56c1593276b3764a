"""Servers' words, and how long they ask to be left alone."""

from __future__ import annotations

import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.agents.failures import LONGEST_SAID, retry_after, said_by


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7), ("0", 0), ("1.5", 1.5), ("-3", 0), ("", None), ("soon", None), ("nan", None), ("inf", float("inf"))],
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}) == seconds


def test_retry_after_as_a_date() -> None:
    later = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert retry_after({"retry-after": later}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": email.utils.formatdate(time.time() - 30, usegmt=True)}) == 0
    assert retry_after({}) is None


@given(st.text())
def test_any_retry_after_is_a_wait_or_none(value: str) -> None:
    wait = retry_after({"retry-after": value})
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": {"message": "too long", "code": "context_length_exceeded"}}', "too long context_length_exceeded"),
        ('{"error": "model not found"}', "model not found"),
        ('{"detail": "Not Found"}', "Not Found"),
        ('{"detail": [{"msg": "field required"}]}', '[{"msg": "field required"}]'),
        ('{"object": "error", "message": "no"}', "no"),
        ("<html><body><h1>502 Bad\nGateway</h1></body></html>", "502 Bad Gateway"),
        ("", ""),
        ("[1, 2]", "[1, 2]"),
        ("x" * 1000, "x" * (LONGEST_SAID - 3) + "..."),
    ],
)
def test_said_by(body: str, said: str) -> None:
    assert said_by(body) == said


@given(st.text())
def test_said_by_any_text_is_one_short_line(body: str) -> None:
    said = said_by(body)
    assert len(said) <= LONGEST_SAID
    assert len(said.splitlines()) <= 1
