"""Opening a slide: where it is, which backend reads it, and what to say when none does."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wsigym.errors import SlideOpenError, UnknownNameError, WsigymWarning

from .backends import BACKENDS, Backend, backend_class
from .backends._tiff import check_tiff_file, is_tiled_tiff
from .files import file_state
from .resolution import checked_mpp, disagreement, resolution_from
from .slide import ON_BAD_TILE, Slide

__all__ = ["open_slide"]


def open_slide(
    path_or_url: str | os.PathLike[str],
    *,
    mpp: float | None = None,
    backend: str = "auto",
    on_bad_tile: str = "raise",
) -> Slide:
    """Open a whole-slide image: a local path, or a URL that fsspec knows (http, https, s3 ...).

    `mpp` (microns per level-0 pixel, 0.05 to 20) overrides what the file says. It also says that a flat image (PNG,
    JPEG, TIFF without tiles) is meant to be used as a slide of one level.

    `backend="auto"` takes wsigym's own fast reader ("tiles") for local SVS and plain TIFF files of 8-bit JPEG tiles,
    OpenSlide for the other local files that it recognises, TiffSlide for URLs and for tiled TIFF files that OpenSlide
    does not open (such as JPEG 2000 under compression 34712), and Pillow for flat images when `mpp` is given. "tiles",
    "openslide", "tiffslide" and "image" insist on one. `slide.backend` says which it is.

    `on_bad_tile` says what becomes of a damaged tile: "raise" (`BadTileError`) or "background", in which case
    `slide.bad_tiles` counts them.

    Raises `SlideOpenError` if there is no such file, or it is no slide, truncated or broken, and
    `UnsupportedSlideError` if its pixels are not 8-bit RGB or grey. Warns (`WsigymWarning`) if the file's mpp and
    objective power differ by more than 10 %; mpp is used.
    """
    given_mpp = None if mpp is None else checked_mpp(mpp)
    if on_bad_tile not in ON_BAD_TILE:
        raise UnknownNameError("on_bad_tile", str(on_bad_tile), ON_BAD_TILE)
    location = _locate(os.fspath(path_or_url))
    state = file_state(location)
    if backend == "auto":
        name, opened = _open_first(location, given_mpp)
    else:
        name = _insist(location, backend)
        opened = backend_class(name)(location)
    resolution = resolution_from(opened.properties, given_mpp)
    if (warning := disagreement(resolution)) is not None:
        warnings.warn(f"{location}: {warning}", WsigymWarning, stacklevel=2)
    return Slide(location, name, opened, resolution, on_bad_tile=on_bad_tile, state=state)


def _locate(text: str) -> str:
    """The absolute path of a local file, once it is known to be there and not empty; URLs as they are."""
    if _is_url(text):
        return text
    path = Path(unquote(urlsplit(text).path) if text.startswith("file://") else text).absolute()
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise SlideOpenError(f"{path}: no such file.") from None
    except (OSError, ValueError) as error:
        raise SlideOpenError(f"{path}: cannot be opened ({error}).") from error
    if path.is_dir():
        raise SlideOpenError(f"{path}: is a folder; a slide is a file.")
    if size == 0:
        raise SlideOpenError(f"{path}: is empty (0 bytes), not a slide.")
    if not os.access(path, os.R_OK):
        raise SlideOpenError(f"{path}: may not be read; check its permissions.")
    return str(path)


def _is_url(text: str) -> bool:
    return "://" in text and not text.startswith("file://")


def _open_first(location: str, given_mpp: float | None) -> tuple[str, Backend]:
    """The first backend that recognises the file and opens it; if none does, what the first has to say."""
    reason: SlideOpenError | None = None
    for name in BACKENDS:
        if not backend_class(name).recognises(location):
            continue
        if name == "image":
            if reason is not None:
                break  # it is a broken slide, not a flat image
            if given_mpp is None:
                raise _flat(location)
        try:
            return name, backend_class(name)(location)
        except SlideOpenError as error:
            reason = reason or error
    raise reason or _not_a_slide(location, "no backend knows its format")


def _insist(location: str, name: str) -> str:
    if backend_class(name).recognises(location):
        return name
    if _is_url(location):
        raise SlideOpenError(
            f"{location}: the backend {name!r} reads local files only; URLs take 'tiffslide' or 'auto'."
        )
    if backend_class("image").recognises(location):
        raise _flat(location)
    if is_tiled_tiff(location):
        check_tiff_file(location)  # says what is amiss
    raise _not_a_slide(location, f"the backend {name!r} does not know its format; backend='auto' tries them all")


def _flat(location: str) -> SlideOpenError:
    return SlideOpenError(
        f"{location}: is a flat image, not a tiled slide, and its scale is unknown. Give its microns per pixel "
        f"to open it as a slide of one level: open_slide(..., mpp=0.5)."
    )


def _not_a_slide(location: str, reason: str) -> SlideOpenError:
    with Path(location).open("rb") as file:
        head = file.read(8)
    return SlideOpenError(
        f"{location}: not a slide: {reason} (it begins with the bytes {head.hex(' ')}). Slides are pyramids such as "
        f"SVS, tiled TIFF, NDPI, MRXS, SCN, BIF or DICOM."
    )
