"""Hooks of mkdocs: pages from outside of `docs/`, tutorials, formulas and references."""

import os
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page


sys.path.insert(0, str(Path(__file__).parents[1]))

from website import formulas, outside, references, tutorials


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The address of the repository, if the workflow that deploys the site says it."""
    config.repo_url = os.environ.get("REPOSITORY_URL")
    config.site_url = os.environ.get("SITE_URL", config.site_url or "")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages and files from outside, and the tutorials."""
    for place, content in tutorials.all_rendered().items():
        files.append(File.generated(config, place, content=content))
    outside.add_pages(files, config)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the repository become links within the site."""
    return outside.relinked(markdown, page.file.src_uri)


def on_page_content(html: str, **_: Any) -> str:
    """Formulas are drawn by the browser, and names are links."""
    return references.linked(formulas.as_mathml(html))


def on_env(env: Any, config: MkDocsConfig, **_: Any) -> Any:
    """Before references are resolved: where other libraries explain their names."""
    references.register(config.plugins["autorefs"])
    return env


on_env.mkdocs_priority = 100  # pyright: ignore[reportFunctionMemberAccess]
