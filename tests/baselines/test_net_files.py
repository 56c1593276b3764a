"""Networks in files: whatever a file holds, it is a network that plays, or one error that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wsigym.baselines.registry import EXPLORATION, make_policy
from wsigym.errors import InvalidArgumentError

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'wsigym[rl]'")

from safetensors.torch import save_file  # noqa: E402

from wsigym.baselines.learned_scorer import FORMAT, TileNet  # noqa: E402
from wsigym.baselines.tile_chooser import KIND, ChooserNet  # noqa: E402

MAGNIFICATIONS = (2.5, 10.0, 40.0)
NETS: dict[str, tuple[str, Any]] = {"choose": (KIND, ChooserNet), "tile-scorer": (FORMAT, TileNet)}


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> str:
    """How a policy with a network of a file is asked for."""
    return str(request.param)


def write(path: Path, net: str, header: str, state: dict[str, Any] | None = None) -> str:
    kind, made = NETS[net]
    save_file(made(MAGNIFICATIONS).state_dict() if state is None else state, path, {kind: header})
    return f"{net}:{path}"


WORDS = json.dumps({"magnifications": MAGNIFICATIONS})


def test_a_whole_file_plays(net: str, tmp_path: Path) -> None:
    make_policy(write(tmp_path / "net", net, WORDS), EXPLORATION)


@pytest.mark.parametrize(
    "header",
    [
        "{}",
        "[1]",
        "3",
        "null",
        "",
        "nonsense",
        "[" * 100_000,
        '{"magnifications": "abc"}',
        '{"magnifications": []}',
        '{"magnifications": 3}',
        '{"magnifications": {"2.5": 1}}',
        '{"magnifications": [2.5, "10", 40]}',
        '{"magnifications": [2.5, NaN, 40]}',
        '{"magnifications": [2.5, Infinity, 40]}',
        '{"magnifications": [0, 10, 40]}',
        '{"magnifications": [true, 10, 40]}',
        '{"magnifications": [40, 10, 2.5]}',
    ],
)
def test_a_damaged_header(net: str, tmp_path: Path, header: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"net: its header .*`wsigym tiles train.*` makes one"):
        make_policy(write(tmp_path / "net", net, header), EXPLORATION)


def test_networks_of_another_shape(net: str, tmp_path: Path) -> None:
    state = NETS[net][1](MAGNIFICATIONS).state_dict()
    name = next(iter(state))
    for damaged in (
        {name: state[name]},
        {**state, "more": torch.zeros(1)},
        {**state, name: torch.zeros(1)},
    ):
        with pytest.raises(InvalidArgumentError, match=r"net: its network does not fit"):
            make_policy(write(tmp_path / "net", net, WORDS, damaged), EXPLORATION)
    with pytest.raises(InvalidArgumentError, match=r"net: its network does not fit"):
        make_policy(write(tmp_path / "net", net, json.dumps({"magnifications": [2.5, 10]})), EXPLORATION)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_networks_that_are_no_numbers(net: str, tmp_path: Path, value: float) -> None:
    """Those among the parameters, and those that inputs are standardised by."""
    whole = NETS[net][1](MAGNIFICATIONS)
    buffer = next(name for name, part in whole.named_buffers() if part.is_floating_point())
    for name in (next(name for name, _ in whole.named_parameters()), buffer):
        state = {**whole.state_dict(), name: torch.full_like(whole.state_dict()[name], value)}
        with pytest.raises(InvalidArgumentError, match=rf"net: .*no numbers, in {name}"):
            make_policy(write(tmp_path / "net", net, WORDS, state), EXPLORATION)
