"""Which solver, tolerance and order suit a vector field."""

from .advice import Advice as Advice, Audit as Audit
from .advise import advise as advise
