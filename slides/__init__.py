"""Reading pixels: geometry, backends, tissue and stain maps."""

from wsigym.slides.geometry import Box

__all__ = ["Box"]
