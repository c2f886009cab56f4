"""Pages and files of the repository that are not in `docs/`, and links to them.

A file is written once and read in two places: on the site, and where the repository is browsed. Its
links are relative, as the latter wants it; here they become links within the site.
"""

import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


ROOT = Path(__file__).parents[1]
# Where a file of the repository is on the site.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "contributing/conduct.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "SECURITY.md": "contributing/security.md",
    "benchmarks/README.md": "benchmarks.md",
    "results/laptop/README.md": "results.md",
}
TUTORIALS = "examples/tutorials"
INSTEAD = {"README.md": "docs/index.md", "docs": "docs/index.md"}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=[)\s])")
CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.M | re.S)


def add_pages(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of `PAGES`, and the files that any page links to."""
    for source, page in PAGES.items():
        if (ROOT / source).is_file():
            files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    for page in list(files.documentation_pages()):
        for target in targets(page.content_string, source_of(page.src_uri)):
            place = placed(target, page.src_uri)
            if place and not files.get_file_from_path(place):
                files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))


def source_of(page: str) -> str:
    """The path of a page within the repository."""
    sources = {place: source for source, place in PAGES.items()}
    return sources.get(page, f"docs/{page}")


def targets(text: str, source: str) -> Iterable[str]:
    """The paths within the repository that a page links to."""
    for part in CODE.split(text)[::2]:
        for link in LINK.finditer(part):
            yield resolved(link[1], source)


def resolved(link: str, source: str) -> str:
    """The path within the repository that a link of a file stands for."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    path = INSTEAD.get(path, path)
    readme = f"{path}/README.md"
    return readme if readme in PAGES else path


def placed(target: str, page: str) -> str | None:
    """The place on the site of a path within the repository; `None` if there is no such file.

    `page` is that with the link. The script of a tutorial is the page of it, except on this page.
    """
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    folder, name = posixpath.split(target)
    tutorial = f"tutorials/{name.removesuffix('.py')}.md"
    if folder == TUTORIALS and tutorial != page:
        return tutorial
    return f"files/{target}" if (ROOT / target).is_file() else None


def relinked(text: str, page: str) -> str:
    """The text of a page with its links to the repository as links within the site."""
    source, folder = source_of(page), posixpath.dirname(page)

    def replace(link: re.Match[str]) -> str:
        place = placed(resolved(link[1], source), page)
        return link[0] if place is None else os.path.relpath(place, folder or ".") + (link[2] or "")

    parts = CODE.split(text)
    parts[::2] = [LINK.sub(replace, part) for part in parts[::2]]
    return "".join(parts)
