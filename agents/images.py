"""An episode's images, encoded when they are asked for and kept for that episode alone.

Reading and encoding happen in a thread, so that other episodes go on. The bytes of an image depend on nothing but its
pixels and the endpoint's settings: a request that is made again is the same request.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from wsigym.envs.views import ImageSource

from .client import ImagesSent
from .endpoints import Endpoint
from .messages import ImageRef

__all__ = ["EpisodeImages", "encoded"]


@dataclass(frozen=True)
class _Encoded:
    url: str
    bytes: int
    pixels: int


class EpisodeImages:
    """The images of one episode as one endpoint gets them: by its longest side, format and quality."""

    def __init__(self, source: ImageSource, endpoint: Endpoint) -> None:
        self._source, self._endpoint = source, endpoint
        self._kept: dict[ImageRef, _Encoded] = {}

    async def ref(self, name: str) -> ImageRef:
        """The reference of an image that the episode shows now; its bytes are kept until `forget_but`."""
        ref, image = await asyncio.to_thread(self._read, name)
        self._kept[ref] = image
        return ref

    def url(self, ref: ImageRef) -> str:
        """The data URL of an image that is kept."""
        return self._kept[ref].url

    def sent(self, refs: Iterable[ImageRef]) -> ImagesSent:
        """How many images these are, their bytes before base64, and their pixels."""
        images = [self._kept[ref] for ref in refs]
        return ImagesSent(len(images), sum(image.bytes for image in images), sum(image.pixels for image in images))

    def forget_but(self, refs: frozenset[ImageRef]) -> None:
        """Let go of all images but these."""
        self._kept = {ref: image for ref, image in self._kept.items() if ref in refs}

    def _read(self, name: str) -> tuple[ImageRef, _Encoded]:
        view = self._source.image(name, self._endpoint.max_image_px)
        data = encoded(view.image, self._endpoint.image_format, self._endpoint.image_quality)
        x, y, width, height = view.box.to_list()
        on_slide = view.magnification > 0
        ref = ImageRef(
            name,
            (x, y, width, height) if on_slide else None,
            round(view.magnification, 4) if on_slide else None,
            view.size,
        )
        url = f"data:image/{self._endpoint.image_format};base64,{base64.b64encode(data).decode('ascii')}"
        return ref, _Encoded(url, len(data), view.size[0] * view.size[1])


def encoded(image: npt.NDArray[np.uint8], image_format: str, quality: int) -> bytes:
    """An image, uint8 (h, w, 3) RGB, as JPEG of `quality` 1 to 100 with full colour resolution, or as PNG."""
    bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    if image_format == "png":
        done, data = cv2.imencode(".png", bgr)
    else:
        settings = [
            cv2.IMWRITE_JPEG_QUALITY,
            quality,
            cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
            cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        ]
        done, data = cv2.imencode(".jpg", bgr, settings)
    assert done, "an image of 1 px a side or more can be encoded"
    return data.tobytes()
