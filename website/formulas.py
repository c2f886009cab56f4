"""Formulas as MathML, which browsers draw by themselves: no script and no fonts."""

import html
import re

from latex2mathml.converter import convert


INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.S)


def as_mathml(page: str) -> str:
    """Replace the formulas that arithmatex marked on a page."""
    page = INLINE.sub(lambda m: convert(html.unescape(m[1])), page)
    display = lambda m: (
        f'<div class="formula">{convert(html.unescape(m[1]), display="block")}</div>'
    )
    return DISPLAY.sub(display, page)
