try:
    from .solvers.adams import Adams, AdamsController
except ImportError:
    class Adams: pass
    class AdamsController: pass
