"""Making a trained model cheap."""

from .ease import ease as ease
from .front import Front as Front, Point as Point
from .matching import matching as matching
from .progress import EasingProgress as EasingProgress
