"""Which solver, tolerance and order suit a vector field."""

from .advice import Advice as Advice, Audit as Audit
from .search import advise as advise
