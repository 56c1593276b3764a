"""From a scene to pixels, one block at a time: two planes of stain amounts, looked up and multiplied (Beer-Lambert)."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from cv2.typing import MatLike
from numpy.typing import NDArray

from .scene import MAP, Nuclei, Scene, Shape, SoftMap
from .sprites import sprites
from .textures import BLOCK, HALO, ORIENTATIONS, Textures, textures

__all__ = ["Renderer"]

_FULL_HAEMATOXYLIN = 2.25
_FULL_EOSIN = 1.65
"""Optical density units that 255 of a plane stands for."""

_REACH = 110
"""No sprite reaches farther from its centre, in px."""

_SUPPORT = 4
"""Map pixels around a block that cubic interpolation may touch."""

Plane = MatLike
"""uint8 (side, side): an amount of stain, ink or texture."""


class Renderer:
    """Renders the blocks of one scene. Memory is a few blocks, whatever the slide's size."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._textures = textures()
        self._sprites = sprites()
        self._nuclei = scene.all_nuclei()
        self._shapes = scene.shapes_by_block()
        self._tissue = _padded(scene.tissue, 70, 128)
        self._eosin = _padded(scene.eosin, 1, 0)
        self._haematoxylin = _padded(scene.haematoxylin, 1, 0)
        self._fold = _padded(scene.fold, 255, 0)
        self._smear = _padded(scene.smear, 1, 0)
        self._weights = [_padded(_weight(scene.angle, k * np.pi / ORIENTATIONS), 255, 0) for k in range(ORIENTATIONS)]
        self._lut_h = [_lut(v, _FULL_HAEMATOXYLIN, 255) for v in scene.stain.haematoxylin]
        self._lut_e = [
            _lut(v, _FULL_EOSIN, glass) for v, glass in zip(scene.stain.eosin, scene.stain.glass, strict=True)
        ]

    @property
    def blocks(self) -> int:
        """Blocks along a side."""
        return self._scene.side // BLOCK

    def rows(self) -> Iterator[list[NDArray[np.uint8] | None]]:
        """Block rows from the top: for each block RGB (BLOCK, BLOCK, 3), or None where there is only glass."""
        for row in range(self.blocks):
            top = row * BLOCK - HALO
            first = np.searchsorted(self._nuclei.y, top - _REACH)
            last = np.searchsorted(self._nuclei.y, top + BLOCK + 2 * HALO + _REACH)
            near = Nuclei(self._nuclei.x[first:last], self._nuclei.y[first:last], self._nuclei.sprite[first:last])
            yield [self._block(column, row, near) for column in range(self.blocks)]

    def _block(self, column: int, row: int, near: Nuclei) -> NDArray[np.uint8] | None:
        side = BLOCK + 2 * HALO
        x0, y0 = column * BLOCK - HALO, row * BLOCK - HALO
        ink = self._ink(x0, y0, side)
        soft = self._map(self._tissue, column, row)
        if ink is None and int(soft.max()) < 90:
            return None
        tex = self._textures
        mottle = Textures.at(tex.mottle, x0 + 700, y0 + 300, side)
        grain = Textures.at(tex.grain, x0, y0, side)

        inside = cv2.addWeighted(soft, 1.0, mottle, 0.14, -128 * 0.14)
        inside = cv2.convertScaleAbs(cv2.subtract(inside, np.full_like(inside, 118)), alpha=14)
        eosin: Plane = np.zeros((side, side), np.uint8)
        for k in range(ORIENTATIONS):
            weight = self._map(self._weights[k], column, row)
            if weight.any():
                eosin = cv2.add(eosin, cv2.multiply(Textures.at(tex.fibres[k], x0, y0, side), weight, scale=1 / 255))
        fibres = eosin
        eosin = cv2.multiply(eosin, self._map(self._eosin, column, row), scale=1 / 128)
        haematoxylin = self._map(self._haematoxylin, column, row)
        eosin = cv2.multiply(eosin, inside, scale=1 / 255)
        haematoxylin = cv2.multiply(haematoxylin, inside, scale=1 / 255)

        for shape in self._shapes.get((column, row), ()):
            _paint(shape, x0, y0, eosin, haematoxylin)
        smear = self._map(self._smear, column, row)
        if smear.any():
            streaks = cv2.GaussianBlur(cv2.addWeighted(fibres, 0.45, fibres, 0, 128 * 0.55), (0, 0), 1.5)
            haematoxylin = cv2.max(haematoxylin, cv2.multiply(smear, streaks, scale=1 / 128))
        eosin = cv2.GaussianBlur(eosin, (0, 0), 1.2)
        self._stamp(near, x0, y0, side, eosin, haematoxylin)
        eosin = cv2.multiply(eosin, grain, scale=1 / 128)
        eosin = cv2.multiply(eosin, cv2.addWeighted(mottle, 0.35, mottle, 0.0, 128 * 0.65), scale=1 / 128)
        haematoxylin = cv2.GaussianBlur(haematoxylin, (3, 3), 0.8)
        eosin, haematoxylin = self._folded(eosin, haematoxylin, column, row)
        crop = slice(HALO, HALO + BLOCK)
        rgb = self._coloured(haematoxylin[crop, crop], eosin[crop, crop])
        return rgb if ink is None else self._inked(rgb, ink[crop, crop], mottle[crop, crop])

    def _map(self, padded: Plane, column: int, row: int) -> Plane:
        """A soft map over one block and its halo, at level 0."""
        per_block, halo = BLOCK // MAP, HALO // MAP
        span = per_block + 2 * halo + 2 * _SUPPORT
        y, x = row * per_block, column * per_block
        crop = padded[y : y + span, x : x + span]
        low, high = int(crop.min()), int(crop.max())
        side = BLOCK + 2 * HALO
        if low == high:
            return np.full((side, side), low, np.uint8)
        big = cv2.resize(crop, (span * MAP, span * MAP), interpolation=cv2.INTER_CUBIC)
        edge = _SUPPORT * MAP
        return np.asarray(big[edge : edge + side, edge : edge + side])

    def _stamp(self, near: Nuclei, x0: int, y0: int, side: int, eosin: Plane, haematoxylin: Plane) -> None:
        keep = (near.x > x0 - _REACH) & (near.x < x0 + side + _REACH)
        xs, ys = (near.x[keep] - x0).tolist(), (near.y[keep] - y0).tolist()
        numbers = near.sprite[keep].tolist()
        library = self._sprites
        for x, y, number in zip(xs, ys, numbers, strict=True):
            sprite = library[number]
            if sprite.cell is not None:
                _stamp_max(eosin, sprite.cell, x, y, side)
            _stamp_max(haematoxylin, sprite.nucleus, x, y, side)

    def _folded(self, eosin: Plane, haematoxylin: Plane, column: int, row: int) -> tuple[Plane, Plane]:
        fold = self._map(self._fold, column, row)
        if not fold.any():
            return eosin, haematoxylin
        out = []
        for plane, gain in ((eosin, 1.0), (haematoxylin, 0.8)):
            twice = cv2.convertScaleAbs(cv2.GaussianBlur(plane, (0, 0), 2.2), alpha=1 + gain, beta=10)
            out.append(
                cv2.add(cv2.multiply(twice, fold, scale=1 / 255), cv2.multiply(plane, 255 - fold, scale=1 / 255))
            )
        return out[0], out[1]

    def _coloured(self, haematoxylin: Plane, eosin: Plane) -> NDArray[np.uint8]:
        channels = [
            cv2.multiply(cv2.LUT(haematoxylin, lut_h), cv2.LUT(eosin, lut_e), scale=1 / 255)
            for lut_h, lut_e in zip(self._lut_h, self._lut_e, strict=True)
        ]
        return np.asarray(cv2.merge(channels), dtype=np.uint8)

    def _ink(self, x0: int, y0: int, side: int) -> Plane | None:
        lines = self._scene.ink
        if not lines:
            return None
        plane = np.zeros((side, side), np.uint8)
        for line, width in lines:
            points = np.round(line - (x0, y0)).astype(np.int32)
            cv2.polylines(plane, [points], False, 255, width, cv2.LINE_AA)
        return cv2.GaussianBlur(plane, (0, 0), 3.0) if plane.any() else None

    def _inked(self, rgb: NDArray[np.uint8], ink: Plane, mottle: Plane) -> NDArray[np.uint8]:
        amount = cv2.multiply(ink, cv2.addWeighted(mottle, 0.8, mottle, 0, 40), scale=1 / 150)
        channels = []
        for channel, through in zip(cv2.split(rgb), self._scene.ink_colour, strict=True):
            table = np.clip(255 - np.arange(256) * (255 - through) / 255, 0, 255).astype(np.uint8)
            channels.append(cv2.multiply(channel, cv2.LUT(amount, table), scale=1 / 255))
        return np.asarray(cv2.merge(channels), dtype=np.uint8)


def _lut(vector: float, full: float, base: int) -> Plane:
    return np.clip(np.round(base * np.exp(-vector * full * np.arange(256) / 255)), 0, 255).astype(np.uint8)


def _padded(values: NDArray[np.float32], scale: float, offset: float) -> Plane:
    stored = np.clip(np.round(values * scale + offset), 0, 255).astype(np.uint8)
    return np.pad(stored, HALO // MAP + _SUPPORT, mode="edge")


def _weight(angle: SoftMap, other: float) -> SoftMap:
    """How much of the fibres runs along `other`: 1 there, 0 at the neighbouring orientations (undirected angles)."""
    turn = np.abs((angle - other + np.pi / 2) % np.pi - np.pi / 2)
    return np.asarray(np.clip(1 - turn * ORIENTATIONS / np.pi, 0, 1), dtype=np.float32)


def _paint(shape: Shape, x0: int, y0: int, eosin: Plane, haematoxylin: Plane) -> None:
    points = [np.round((shape.outline - (x0, y0)) * 8).astype(np.int32)]
    cv2.fillPoly(eosin, points, shape.eosin, cv2.LINE_AA, 3)
    cv2.fillPoly(haematoxylin, points, shape.haematoxylin, cv2.LINE_AA, 3)
    if shape.rim_px:
        cv2.polylines(eosin, points, True, shape.rim_eosin, shape.rim_px, cv2.LINE_AA, 3)


def _stamp_max(plane: Plane, sprite: Plane, x: int, y: int, side: int) -> None:
    half = sprite.shape[0] >> 1
    left, top, right, bottom = x - half, y - half, x + half + 1, y + half + 1
    if left < 0 or top < 0 or right > side or bottom > side:
        if right <= 0 or bottom <= 0 or left >= side or top >= side:
            return
        sprite = sprite[max(0, -top) : side - top, max(0, -left) : side - left]
        left, top = max(0, left), max(0, top)
    view = plane[top : top + sprite.shape[0], left : left + sprite.shape[1]]
    np.maximum(view, sprite, out=view)
