"""Data sets as numpy arrays: embedded, generated, or downloaded once and verified."""

from .digits import load_digits as load_digits
from .errors import DataError as DataError
from .manage import (
    DataStatus as DataStatus,
    fetch as fetch,
    FileStatus as FileStatus,
    list_data as list_data,
    verify as verify,
)
from .miniboone import load_miniboone as load_miniboone, MinibooneSplit as MinibooneSplit
from .mnist import load_mnist as load_mnist
from .oscillators import oscillators as oscillators
from .physionet import load_physionet as load_physionet
from .series import Series as Series, SeriesSplit as SeriesSplit
from .spirals import spirals as spirals
from .split import Examples as Examples, Split as Split
from .synthetic import (
    checkerboard as checkerboard,
    cubic_map as cubic_map,
    DENSITIES as DENSITIES,
    eight_gaussians as eight_gaussians,
    pinwheel as pinwheel,
    rings as rings,
    two_moons as two_moons,
)
