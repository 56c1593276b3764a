"""Every exception that wsigym raises on purpose, in one tree.

    WsigymError                      base of all; the command line prints its message as one line
    |-- SlideError                   anything about a slide file
    |   |-- SlideOpenError           the file cannot be opened as a slide
    |   |   `-- UnsupportedSlideError    it opens, but is not 8-bit RGB brightfield
    |   |-- SlideReadError           pixels of an opened slide cannot be read
    |   |   `-- BadTileError           a tile is damaged; on_bad_tile="background" shows the background instead
    |   |-- MissingResolutionError   a magnification was asked for and the scale is unknown
    |   `-- UpsamplingError          a magnification above the scan's was asked for
    |-- CohortError                  a cohort's files are wrong; carries every fault found
    |-- AnnotationError              an annotation file that cannot be imported: file, position, reason
    |-- UnknownNameError             a name (policy, budget, suite, query ...) that does not exist
    |-- InvalidArgumentError         a value outside what is allowed
    |-- EpisodeOverError             step() after the episode ended, or before reset()
    |-- ConformanceError             an environment breaks rules of wsigym.envs.conformance; carries each
    |-- ParseError                   a model's text that cannot be read; agents answer it
    |-- BuildError                   a synthetic slide could not be made
    |-- EndpointError                a model's server gives no usable answer
    |-- EgressError                  pixels would leave for a place that --egress forbids
    |-- CostLimitError               a request to a model would exceed the run's cost limit
    `-- RunError                     a run folder that is locked, broken or belongs to another run
        `-- RunWriteError              an episode cannot be written, such as on a full disk

    WsigymWarning                    something to know that changes no result, such as two figures that disagree

A message says what was asked, what was found, what is allowed and what to do next. Bad input raises at
the border (load, open, parse). A policy's invalid request inside an episode is data, never an exception.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

__all__ = [
    "AnnotationError",
    "BadTileError",
    "BuildError",
    "CohortError",
    "ConformanceError",
    "CostLimitError",
    "EgressError",
    "EndpointError",
    "EpisodeOverError",
    "Fault",
    "InvalidArgumentError",
    "MissingResolutionError",
    "ParseError",
    "RunError",
    "RunWriteError",
    "SlideError",
    "SlideOpenError",
    "SlideReadError",
    "UnknownNameError",
    "UnsupportedSlideError",
    "UpsamplingError",
    "WsigymError",
    "WsigymWarning",
]


class WsigymError(Exception):
    """Base of every error that wsigym raises on purpose.

    `bad_input` says whose fault it is: True when the caller's arguments or files must change (the command
    line exits with 2), False when the work itself failed (it exits with 1).
    """

    bad_input = True


class SlideError(WsigymError):
    """Anything about a slide file."""


class SlideOpenError(SlideError):
    """The file cannot be opened as a slide: missing, truncated, flat, or not a slide at all."""


class UnsupportedSlideError(SlideOpenError):
    """The file is a slide, but not 8-bit RGB brightfield, so its pixels would be shown wrongly."""


class SlideReadError(SlideError):
    """Pixels of an opened slide cannot be read, such as a corrupt tile."""

    bad_input = False


class BadTileError(SlideReadError):
    """A tile of an opened slide is damaged. Other tiles still read."""


class MissingResolutionError(SlideError):
    """A magnification was asked for on a slide whose microns per pixel are unknown."""


class UpsamplingError(SlideError):
    """A magnification more than 10 % above the scan's was asked for without `allow_upsampling=True`."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong in a cohort: where it is, what was found, and what is allowed.

    `line` is 1-based, or None where a file has no lines to speak of. `field` is a dotted path.
    """

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}"


class CohortError(WsigymError):
    """A cohort's files are wrong. `faults` holds every fault; the message lists them, one a line."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type[CohortError], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)


class AnnotationError(WsigymError):
    """An annotation file cannot be imported: truncated, of another dialect, or without one valid shape.

    `position` says where in the file, such as `line 3, column 7` or `features[2]`; empty where it is the whole file.
    """

    def __init__(self, file: str, position: str, reason: str) -> None:
        self.file, self.position, self.reason = file, position, reason
        super().__init__(": ".join(part for part in (file, position, reason) if part))

    def __reduce__(self) -> tuple[type[AnnotationError], tuple[str, str, str]]:
        return type(self), (self.file, self.position, self.reason)


class UnknownNameError(WsigymError):
    """A name that does not exist. The message offers the nearest one and lists what there is."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(name, self.known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(self.known[:20]) + (", ..." if len(self.known) > 20 else "")
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {listed or 'none'}.")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.kind, self.name, self.known)


class InvalidArgumentError(WsigymError):
    """A value outside what is allowed."""


class EpisodeOverError(WsigymError):
    """`step()` was called after the episode ended, or before `reset()`."""


class ConformanceError(WsigymError):
    """An environment breaks rules of `wsigym.envs.conformance`. `broken` maps each to how; the message lists them."""

    def __init__(self, env_id: str, broken: Mapping[str, str]) -> None:
        self.env_id, self.broken = env_id, dict(broken)
        listed = "".join(f"\n  {rule}: {how}" for rule, how in self.broken.items())
        super().__init__(f"{env_id} breaks {len(self.broken)} of the rules of wsigym.envs.conformance:{listed}")

    def __reduce__(self) -> tuple[type[ConformanceError], tuple[str, dict[str, str]]]:
        return type(self), (self.env_id, self.broken)


class ParseError(WsigymError):
    """A model's text does not hold what was asked for. The message is told to the model, and says what to write."""


class BuildError(WsigymError):
    """A synthetic slide could not be made: its process failed or was killed."""

    bad_input = False


class CostLimitError(WsigymError):
    """A request to a model would exceed the run's cost limit. Ends the run; the episode is played on resume."""

    bad_input = False


class EndpointError(WsigymError):
    """A model's server gives no usable answer: not reachable, refusing the key, the model or the request, or broken.

    An infrastructure error to a run. `lasting` says that asking again changes nothing: the settings must change.
    """

    bad_input = False

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        self.lasting = lasting
        super().__init__(message)

    def __reduce__(self) -> tuple[Callable[..., EndpointError], tuple[str]]:
        return partial(type(self), lasting=self.lasting), (str(self),)


class EgressError(WsigymError):
    """Pixels would leave for a place that `--egress` forbids. Nothing was sent."""


class RunError(WsigymError):
    """A run folder that is locked by another process, broken, or made with other arguments."""


class RunWriteError(RunError):
    """An episode cannot be written to its run folder, such as on a full disk. What was written before is kept."""

    bad_input = False


class WsigymWarning(UserWarning):
    """Something to know that does not stop the work, such as a file whose two figures for its scale disagree."""
