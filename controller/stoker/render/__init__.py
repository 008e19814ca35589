"""Stages shape and render: neutral manifests, then the same with the decisions baked in."""

from stoker.render.jail import jail_support
from stoker.render.pool import Limits
from stoker.render.reasons import REASONS
from stoker.render.render import render
from stoker.render.renderer import Renderer, RenderMemo
from stoker.render.shape import shape, shape_ahead
from stoker.render.shapes import Shapes

__all__ = [
    "shape",
    "shape_ahead",
    "render",
    "Shapes",
    "Renderer",
    "RenderMemo",
    "Limits",
    "jail_support",
    "REASONS",
]
