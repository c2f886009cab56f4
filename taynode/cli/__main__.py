"""`python -m taynode.cli`."""

from . import main


main()
