"""Claims on trained models that were made cheap, from made-up runs."""

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.easing import EASED, SCRATCH, TRAINED_ON

from .synthetic import result_of


def claims_of(*, left=0.5, paid=1.0, failed=()):
    """The claim on half of the evaluations, of seeds whose needs differ."""
    study, results = find_study("easing-mnist"), []
    for job in study.jobs("laptop", [0, 1, 2]):
        seed = job.config.seed
        need, loss = 50.0 + 20 * seed, 0.4 + 0.01 * seed
        made = lambda nfe, times, loss=loss: {
            "test_loss": times * loss,
            "test_nfe": nfe,
            "test_num_failed": 0,
        }
        eased = {share: made(share * need, paid) for share in (0.75, 0.5)}
        eased[0.5] = made(left * need, paid)
        result = result_of(job)
        result["row"] |= {"test_nfe": need, "test_loss": loss}
        result["measured"] = {
            TRAINED_ON: made(need, 1.0),
            **{EASED.format(share): row for share, row in eased.items()},
            **{SCRATCH.format(share): made(share * need, 1.1) for share in (0.75, 0.5)},
        }
        if seed in failed:
            result["measured"][EASED.format(0.5)] = {"failed": "Step 3 failed"}
        results.append(result)
    return study.claims(study.numbers(results, "laptop"))[1]


# The claim held without a single evaluation saved, and seeds that failed were left out.
@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "holds"),
        ({"left": 0.52, "paid": 1.005}, "holds"),
        ({"left": 1.0}, "does not hold"),
        ({"left": 0.56}, "does not hold"),
        ({"paid": 1.05}, "does not hold"),
        ({"failed": [1]}, "undecided"),
        ({"failed": [0, 1, 2]}, "does not hold"),
    ],
)
def test_evaluations_are_saved_on_every_seed_at_no_more_loss(changes, verdict):
    assert claims_of(**changes).verdict == verdict


def test_failures_are_told():
    assert "1 of 3 failed" in claims_of(failed=[2]).measured
