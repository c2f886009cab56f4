"""Pages: a single HTML file each."""

import base64
import functools
import gzip
import json
import re
from pathlib import Path

from ..config import ConfigError
from ..files import drafted, Json
from . import palette
from .figures import Figure


TEMPLATES = Path(__file__).parent / "templates"


def render_page(template: str, content: Json, file: Path) -> Path:
    """Write a page, in one step, and return its path.

    **Arguments:**

    - `template`: the name of the template.
    - `content`: the variables of the template.
    - `file`: the path of the page; its directory is made if it is missing.
    """
    try:
        import jinja2
        import markupsafe
        import plotly.offline
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The page needs {error.name}: run `pip install 'taynode[report]'`."
        ) from None

    def with_index(text: object) -> str:
        """Escaped text, with `R_2` as a formula."""
        safe = str(markupsafe.escape(text))
        return markupsafe.Markup(re.sub(r"\bR_(\w)", r"R<sub>\1</sub>", safe))

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_index"] = with_index
    text = environment.get_template(template).render(
        **content,
        light=markupsafe.Markup(palette.variables(palette.LIGHT)),
        dark=markupsafe.Markup(palette.variables(palette.DARK)),
        library=_packed(plotly.offline.get_plotlyjs()),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    with drafted(file) as draft:
        draft.write_text(text, encoding="utf-8")
    return file


def as_script(figures: dict[str, Figure]) -> str:
    """Figures as JSON that is safe within a script element; a `markupsafe.Markup`."""
    import markupsafe

    text = json.dumps(figures, allow_nan=False, separators=(",", ":"))
    return markupsafe.Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


@functools.cache
def _packed(library: str) -> str:
    """The drawing library, compressed to a third of its size; browsers unpack it."""
    return base64.b64encode(gzip.compress(library.encode(), 9, mtime=0)).decode()
