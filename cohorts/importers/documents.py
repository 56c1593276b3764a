"""Bytes to XML and JSON, with one error for all that can be wrong in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from wsigym.errors import AnnotationError

__all__ = ["children", "label_of", "read_json", "read_xml", "text_of"]


def read_xml(file: str, content: bytes, root: str, dialect: str) -> Element:
    """The root element, which must be called `root`. No entities, no document type, nothing from outside the file."""
    try:
        element: Element = fromstring(content, forbid_dtd=True)
    except ParseError as error:
        line, column = error.position
        raise AnnotationError(file, f"line {line}, column {column}", f"not XML: {_without_place(error)}") from None
    except DefusedXmlException as error:
        raise AnnotationError(
            file, "", f"refused: it declares a document type or entities ({type(error).__name__}); remove them"
        ) from None
    except (ValueError, LookupError) as error:  # an unknown encoding
        raise AnnotationError(file, "line 1", f"not XML that can be decoded: {error}") from None
    if element.tag != root:
        raise AnnotationError(
            file,
            "line 1",
            f"the root element is <{element.tag}>; {dialect} files have <{root}>. Is it another dialect?",
        )
    return element


def children(file: str, parent: Element, tag: str) -> Iterator[Element]:
    """The children of `parent`, which must all be called `tag`: what is not known is not read as nothing."""
    for child in parent:
        if child.tag != tag:
            raise AnnotationError(file, f"<{parent.tag}>", f"found a <{child.tag}> in it; only <{tag}> is known")
        yield child


def _without_place(error: ParseError) -> str:
    return str(error).split(":", 1)[0]


def read_json(file: str, content: bytes) -> Any:
    """The parsed document. NaN and Infinity parse, as some writers emit them; shapes that hold them are faulty."""
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise AnnotationError(file, f"line {error.lineno}, column {error.colno}", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise AnnotationError(file, "", "not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # bytes that are no text, or a number of thousands of digits
        raise AnnotationError(file, "", f"not JSON: {error}") from None


def label_of(value: object) -> str | None:
    """A class name without blanks around it; None where there is none."""
    return text_of(value).strip() or None


def text_of(value: object) -> str:
    """Text that can be written again: JSON can escape half a surrogate pair, which no file holds. "" if it is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
