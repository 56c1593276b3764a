"""What `wsigym` tells on stderr: the user's words as they are, without emoji for codes or colours for brackets."""

from __future__ import annotations

import signal
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from wsigym import cli
from wsigym.errors import InvalidArgumentError, WsigymWarning

WORDS = "stain-density=num_cpus:a:2 [red]x[/red]"


def test_errors_have_the_users_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise InvalidArgumentError(WORDS)

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == f"wsigym: {WORDS}\n"


def test_warnings_have_them_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        warnings.warn(WORDS, WsigymWarning, stacklevel=1)

    monkeypatch.setattr(cli, "app", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        cli.main()
    assert capsys.readouterr().err == f"wsigym: warning: {WORDS}\n"


def test_a_handler_of_sigterm_that_python_did_not_set_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`signal` returns None for one of C's, and takes none."""
    given: list[Any] = []
    signals = SimpleNamespace(**vars(signal) | {"signal": lambda _, handler: given.append(handler)})
    monkeypatch.setattr(cli, "signal", signals)
    monkeypatch.setattr(cli, "app", lambda: None)
    cli.main()
    assert given[1:] == [signal.SIG_DFL]
