"""What turns `docs/` into the site: mkdocs finds it through `hooks.py`."""
