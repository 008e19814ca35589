"""What the pictures share: letters, colours of text, the frame. Used by *_svg."""

from __future__ import annotations

__all__ = ["svg_frame"]

SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
STYLE = (
    f"<style>text{{font:13px {SANS};fill:#16191f}}.h{{font-weight:bold}}.t{{fill:#5b6472}}</style>"
)


def svg_frame(width: int, height: int, title: str, title_y: int) -> list[str]:
    """The begin of a document: size, escaped title (also as its first line), style, background."""
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{title}</title>",
        STYLE,
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d9dee7"/>',
        f'<text class="h" x="16" y="{title_y}">{title}</text>',
    ]
