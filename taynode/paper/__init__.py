"""The paper, reproduced: a study for each of its figures and tables."""

from .study import (
    AbstractStudy as AbstractStudy,
    Claim as Claim,
    find_study as find_study,
    STUDIES as STUDIES,
)
