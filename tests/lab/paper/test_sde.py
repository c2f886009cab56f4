"""Claims on stochastic equations, from made-up runs."""

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.study import GROUPS

from .synthetic import result_of


SEEDS = [0, 1, 2]


def claim_of(name, *, nfe=0.6, **changes):
    """The claim if the chosen arm has such shares of the other numbers, seed by seed."""
    study = find_study(name)
    chosen, results = study.arms[study.chosen], []
    for job in study.jobs("laptop", SEEDS):
        result, seed = result_of(job), job.config.seed
        row = {"test_nfe": 50.0 + seed, "test_loss": 0.5 + 0.01 * seed, "test_error": 0.05}
        if job.config.regularizer == chosen:
            row["test_nfe"] *= nfe + 0.001 * seed
            for key, change in changes.items():
                row[f"test_{key}"] = change(row[f"test_{key}"])
        result["row"] |= row
        results.append(result)
    (claim,) = study.claims(study.numbers(results, "laptop"))
    return claim


@pytest.mark.parametrize("name", GROUPS["sde-all"])
def test_three_tenths_of_the_steps_have_to_be_saved(name):
    found = claim_of(name)
    assert (found.verdict, "39.9" in found.measured) == ("holds", True)
    assert claim_of(name, nfe=0.75).verdict == "does not hold"


@pytest.mark.parametrize("name", ["sde-spiral", "sde-digits", "sde-mnist"])
def test_saved_steps_do_not_count_if_the_loss_rises(name):
    assert claim_of(name, loss=lambda x: 1.05 * x).verdict == "holds"
    assert claim_of(name, loss=lambda x: 1.2 * x).verdict == "does not hold"


def test_accuracy_has_to_stay_the_same():
    found = claim_of("sde-digits", error=lambda x: x + 0.004)
    assert found.verdict == "holds"
    assert "0.004 more error" in found.measured
    assert claim_of("sde-digits", error=lambda x: x + 0.02).verdict == "does not hold"


def test_the_settings_of_the_claim_are_among_the_arms():
    for name in GROUPS["sde-all"]:
        study = find_study(name)
        assert study.chosen in study.arms
        assert len(study.jobs("smoke", [0])) == 2
