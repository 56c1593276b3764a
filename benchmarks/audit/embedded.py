"""Texts that an image file holds beside its pixels: EXIF, PNG text, XMP, IPTC, comments, TIFF tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from PIL import ExifTags, Image, ImageFile, IptcImagePlugin

__all__ = ["texts_in"]

MAX_CHARACTERS = 1_000_000
"""Of one entry; a longer one is looked through so far."""

NO_TEXT = ("icc_profile", "photoshop", "exif", "transparency", "gamma", "jfif_density", "dpi")
"""Entries that are told otherwise, or hold colours and numbers of the file format."""


def texts_in(image: Image.Image) -> dict[str, str]:
    """The texts of an opened and loaded image by where they stand, such as "EXIF ImageDescription"."""
    return {name: text[:MAX_CHARACTERS] for name, text in _entries(image) if text.strip()}


def _entries(image: Image.Image) -> Iterator[tuple[str, str]]:
    for name, value in image.info.items():
        if name not in NO_TEXT:
            yield str(name), _text(value)
    exif = image.getexif()
    for place, tags in (("EXIF", exif), *((f"EXIF {ifd.name}", exif.get_ifd(ifd)) for ifd in _FOLDERS)):
        names: Mapping[int, str] = ExifTags.GPSTAGS if place.endswith("GPSInfo") else ExifTags.TAGS
        for tag, value in tags.items():
            yield f"{place} {names.get(tag, tag)}", _text(value)
    iptc = IptcImagePlugin.getiptcinfo(image) if isinstance(image, ImageFile.ImageFile) else None
    for (record, dataset), value in (iptc or {}).items():
        yield f"IPTC {record}:{dataset}", _text(value)


_FOLDERS = (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo, ExifTags.IFD.Interop)


def _text(value: Any) -> str:
    """A value in words; bytes as UTF-8, as UTF-16 where every other is zero (Windows' own EXIF tags), else Latin-1."""
    if isinstance(value, bytes):
        return _decoded(value.removeprefix(b"ASCII\0\0\0").removeprefix(b"UNICODE\0")).strip("\0")
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    if isinstance(value, dict):
        return " ".join(f"{key} {_text(entry)}" for key, entry in value.items())
    return value if isinstance(value, str) else "" if isinstance(value, int | float) else str(value)


def _decoded(value: bytes) -> str:
    for zeros, encoding in ((value[1::2], "utf-16-le"), (value[0::2], "utf-16-be")):
        if zeros.count(0) * 4 > len(value):
            return value.decode(encoding, "replace")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
