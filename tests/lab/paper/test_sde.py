"""Claims on stochastic equations, from made-up runs."""

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.sampling import ENDS
from taynode.lab.paper.study import GROUPS

from .synthetic import result_of


SEEDS = [0, 1, 2]


def claim_of(name, *, nfe=0.6, hidden=1.0, energy=None, **changes):
    """The claim if the chosen arm has such shares of the other numbers, seed by seed.

    - `hidden`: so many times the loss with a tighter tolerance.
    - `energy`: the energy distance, which is 0.01 without a penalty.
    """
    study = find_study(name)
    chosen, results = study.arms[study.chosen], []
    for job in study.jobs("laptop", SEEDS):
        result, seed = result_of(job), job.config.seed
        row = {"test_nfe": 50.0 + seed, "test_loss": 0.5 + 0.01 * seed, "test_error": 0.05}
        if job.config.regularizer == chosen:
            row["test_nfe"] *= nfe + 0.001 * seed
            if energy is not None:
                result["measured"] = {ENDS: {"energy": energy + 0.001 * seed}}
            for key, change in changes.items():
                row[f"test_{key}"] = change(row[f"test_{key}"])
        result["row"] |= row
        for numbers in result["evaluations"].values():
            is_chosen = job.config.regularizer == chosen
            numbers["test_loss"] = row["test_loss"] * (hidden if is_chosen else 1.0)
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


@pytest.mark.parametrize("name", ["sde-spiral", "sde-digits", "sde-mnist"])
def test_saved_steps_do_not_count_if_they_hide_a_loss(name):
    assert claim_of(name, hidden=1.3).verdict == "does not hold"


@pytest.mark.parametrize(("energy", "verdict"), [(0.007, "holds"), (0.02, "does not hold")])
def test_samples_are_compared_by_differences(energy, verdict):
    """As a ratio of numbers near zero, better samples did not count as good."""
    assert claim_of("sde", energy=energy).verdict == verdict


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
