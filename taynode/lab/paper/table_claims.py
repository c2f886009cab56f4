"""Claims that several tables make."""

import math
from collections.abc import Sequence

from .statistics import spread
from .study import Claim, judged, Numbers
from .table_rows import ratios
from .verdicts import ratio


def time_claims(numbers: Numbers, steps: int, factor: float, hours: str) -> list[Claim]:
    """The training time of R_2 over that of RNODE, on equal grids and with equal quadratures.

    **Arguments:**

    - `steps`: the number of steps of the grid.
    - `factor`, `hours`: the paper's ratio, and the times that it is made of.
    """
    about = "time of R_2 over RNODE"
    augmented = ratios(numbers, "seconds", "R_2, Augmented", "RNODE, Augmented", steps=steps)
    sampled = ratios(numbers, "seconds", "R_2", "RNODE", steps=steps)
    return [
        time_claim(
            f"R_2 takes about {factor:g} times as long to train as RNODE, at equal steps",
            augmented,
            hours,
            about=about,
            words=f"{{}} with Augmented, as in the paper, on {steps} steps",
            # The paper's own times differ from its factor by as much, from task to task.
            at_least=0.8 * factor,
            at_most=1.25 * factor,
        ),
        time_claim(
            "With Sampled, it takes as long as RNODE",
            sampled,
            about=about,
            words=f"{{}}, on {steps} steps",
            at_most=1.1,
            is_ours=True,
        ),
    ]


def takes_no_longer(numbers: Numbers, training: str, paper: str = "") -> Claim:
    """That the adaptive training of R_2 by Sampled costs no more than without regularization."""
    return time_claim(
        f"With an adaptive solver and Sampled, {training} takes no longer",
        ratios(numbers, "seconds", "R_2"),
        paper,
        at_most=1.05,
        is_ours=True,
    )


def time_claim(
    statement: str,
    found: Sequence[float],
    paper: str = "",
    *,
    about: str = "time with over without",
    words: str = "{}",
    at_least: float = 0.0,
    at_most: float = math.inf,
    is_ours: bool = False,
) -> Claim:
    """A claim on a ratio of training times; `words` has a place for the measured ratio."""
    if at_least and at_most < math.inf:
        rule = f"{at_least:.2g} to {at_most:.2g} times"
    else:
        rule = f"at least {at_least:g} times" if at_least else f"at most {at_most:g} times"
    bound = ratio(about, found, at_least=at_least, at_most=at_most)
    measured = words.format(times_in_words(found))
    return judged(statement, paper, measured, bound, rule=rule, is_ours=is_ours)


def fewer_claim(
    statement: str,
    paper: str,
    measured: str,
    nfe: Sequence[float],
    about: str = "evaluations with over without",
) -> Claim:
    """A claim that a regularizer lowers the number of evaluations."""
    bound = ratio(about, nfe, at_most=0.97)
    return judged(statement, paper, measured, bound, rule="at least 3 % fewer")


def times_in_words(found: Sequence[float]) -> str:
    """A ratio of times in words, and the number of seeds with comparable times."""
    many = "" if len(found) == 1 else "s"
    return f"{spread(found)} times ({len(found)} seed{many})" if found else "times not comparable"


def time_in_words(numbers: Numbers, arm: str) -> str:
    """The training time of a row relative to the unregularized one, as the end of a sentence."""
    found = ratios(numbers, "seconds", arm)
    return f", in {spread(found)} of the training time" if found else ", times not comparable"
