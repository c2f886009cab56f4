"""`python -m taynode.lab.cli`."""

from . import main


main()
