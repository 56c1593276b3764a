"""What files say about their scale, and what is believed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.slides.resolution import disagreement, resolution_from

MPP = "openslide.mpp-x"
MPP_Y = "openslide.mpp-y"
POWER = "openslide.objective-power"


@pytest.mark.parametrize(
    ("properties", "mpp", "source"),
    [
        ({}, None, "none"),
        ({MPP: "0.25", MPP_Y: "0.25"}, 0.25, "mpp"),
        ({MPP: "0.25", MPP_Y: "0.25", POWER: "20"}, 0.25, "mpp"),
        ({MPP: "0.24", MPP_Y: "0.26"}, 0.25, "mpp"),
        ({MPP: "0.25", MPP_Y: "0.5"}, None, "none"),  # pixels are not square
        ({MPP: "0.25"}, None, "none"),
        ({MPP: "0,2520", MPP_Y: "0,2520"}, 0.252, "mpp"),
        ({"aperio.MPP": "0,2520"}, 0.252, "mpp"),
        ({MPP: "0", MPP_Y: "0", "aperio.MPP": "0.5"}, 0.5, "mpp"),
        ({MPP: "nan", MPP_Y: "nan", POWER: "40"}, 0.25, "objective power"),
        ({MPP: "0", MPP_Y: "0", POWER: "40"}, 0.25, "objective power"),
        ({MPP: "-0.25", MPP_Y: "-0.25", POWER: "40"}, 0.25, "objective power"),
        ({MPP: "inf", MPP_Y: "inf", POWER: "40"}, 0.25, "objective power"),
        ({MPP: "352.8", MPP_Y: "352.8", POWER: "20"}, 0.5, "objective power"),  # a 72 dpi tag
        ({MPP: "352.8", MPP_Y: "352.8"}, None, "none"),
        ({MPP: "0.04", MPP_Y: "0.04"}, None, "none"),
        ({MPP: "0.05", MPP_Y: "0.05"}, 0.05, "mpp"),
        ({MPP: "20", MPP_Y: "20"}, 20.0, "mpp"),
        ({MPP: "", MPP_Y: ""}, None, "none"),
        ({MPP: "a quarter", MPP_Y: "a quarter"}, None, "none"),
        ({POWER: "40.000000"}, 0.25, "objective power"),
        ({POWER: "40x"}, 0.25, "objective power"),
        ({POWER: "20 X"}, 0.5, "objective power"),
        ({"aperio.AppMag": "40"}, 0.25, "objective power"),
        ({POWER: "0"}, None, "none"),
        ({POWER: "-40"}, None, "none"),
        ({POWER: "1000"}, None, "none"),
        ({POWER: "x"}, None, "none"),
    ],
)
def test_what_is_believed(properties: dict[str, str], mpp: float | None, source: str) -> None:
    resolution = resolution_from(properties)
    assert resolution.mpp == pytest.approx(mpp)
    assert resolution.source == source


def test_what_was_found_is_kept_whether_believed_or_not() -> None:
    found = resolution_from({MPP: "352.8", "tiff.XResolution": "72", "aperio.MPP": "", "other": "1"}).found
    assert "openslide.mpp-x = 352.8" in found
    assert "tiff.XResolution = 72" in found
    assert "aperio.MPP = (empty)" in found
    assert "other" not in found
    assert resolution_from({}).found == "nothing about its scale"


@pytest.mark.parametrize("given", [0.5, np.float32(0.5), np.float64(0.5)])
def test_a_given_mpp_overrides_the_file(given: float) -> None:
    resolution = resolution_from({MPP: "0.25", MPP_Y: "0.25", POWER: "40"}, given)
    assert (resolution.mpp, resolution.source) == (0.5, "given")
    assert disagreement(resolution) is None


@pytest.mark.parametrize("given", [0, -1, 0.049, 20.1, math.nan, math.inf, "0.25"])
def test_a_given_mpp_must_be_plausible(given: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"from 0\.05 to 20"):
        resolution_from({}, given)


@pytest.mark.parametrize(
    ("mpp", "power", "warns"),
    [
        ("0.25", "40", False),
        ("0.2527", "40", False),
        ("0.274", "40", False),
        ("0.276", "40", True),
        ("0.5", "40", True),
        ("0.226", "40", True),
    ],
)
def test_mpp_and_power_that_disagree_by_more_than_ten_percent(mpp: str, power: str, warns: bool) -> None:
    message = disagreement(resolution_from({MPP: mpp, MPP_Y: mpp, POWER: power}))
    assert (message is not None) == warns
    if message is not None:
        assert "mpp=" in message
        assert mpp in message


def test_nothing_disagrees_with_itself() -> None:
    assert disagreement(resolution_from({POWER: "40"})) is None
    assert disagreement(resolution_from({MPP: "0.5", MPP_Y: "0.5"})) is None
