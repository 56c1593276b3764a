"""Image files with transparent pixels: what lies under them is nobody's picture, and is shown as white."""

from __future__ import annotations

from PIL import Image

__all__ = ["on_white"]


def on_white(image: Image.Image) -> Image.Image:
    """The image in RGB, on a white ground where it is transparent or partly so."""
    if not image.has_transparency_data:
        return image.convert("RGB")
    ground = Image.new("RGBA", image.size, "white")
    ground.alpha_composite(image.convert("RGBA"))
    return ground.convert("RGB")
