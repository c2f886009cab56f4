"""The paper, reproduced: a study for each of its figures and tables."""

from .study import (
    AbstractStudy as AbstractStudy,
    Claim as Claim,
    find_study as find_study,
    seeds_of as seeds_of,
    STUDIES as STUDIES,
)
