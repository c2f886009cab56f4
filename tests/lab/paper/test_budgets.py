"""Claims on budgets, from made-up runs."""

import pytest

from taynode.lab.paper import find_study

from .synthetic import result_of


SEEDS = [0, 1, 2]
NEED = 118.0


def front_at(nfe):
    """The loss of constant weights: it rises as evaluations are saved, ever faster."""
    return 0.5 + 0.5 * NEED / nfe


def claims_of(*, miss=lambda seed, share: 1.0, paid=lambda seed, share: 0.0, spent=1.0):
    """The claims of runs on the front, with what budgets miss, pay and spend in training."""
    study = find_study("budgets-digits")
    results = []
    for job in study.jobs("laptop", SEEDS):
        charged, seed = job.config.regularizer, job.config.seed
        if charged.budget is None:
            largest = {"none": 1.0, "r2": 1.0, "r3": 0.1, "nfe": 0.01}[charged.name]
            nfe = NEED - 70.0 * (charged.weight / largest) ** 0.25
            row = {"test_loss": front_at(nfe), "training_nfe": 1000.0 * nfe}
        else:
            share = charged.budget / NEED
            nfe = charged.budget * miss(seed, share)
            row = {
                "test_loss": front_at(nfe) + paid(seed, share),
                "training_nfe": 1000.0 * nfe * spent,
            }
        result = result_of(job)
        result["row"] |= row | {"test_nfe": nfe}
        results.append(result)
    return {c.statement: c for c in study.claims(study.numbers(results, "laptop"))}


def starting(claims, start):
    return next(claim for statement, claim in claims.items() if statement.startswith(start))


@pytest.mark.parametrize(
    ("miss", "verdict"), [(0.96, "holds"), (1.06, "does not hold"), (0.89, "does not hold")]
)
def test_budgets_are_kept_within_a_twentieth(miss, verdict):
    claim = starting(claims_of(miss=lambda seed, share: miss), "Evaluations per test sample end")
    assert claim.verdict == verdict
    assert "of 12 within 5 %" in claim.measured


def test_one_run_in_ten_may_miss_by_a_tenth():
    far = lambda seed, share: 1.08 if (seed, share) == (0, 0.5) else 1.0
    claims = claims_of(miss=far)
    kept = starting(claims, "Evaluations per test sample end")
    # A run of R_2 and one of R_3.
    assert (kept.verdict, "10 of 12" in kept.measured) == ("does not hold", True)


@pytest.mark.parametrize(
    ("paid", "verdict"),
    [
        (lambda seed, share: -0.1, "holds"),
        (lambda seed, share: 0.1 + 0.01 * seed, "does not hold"),
        (lambda seed, share: 0.1 * (seed - 1), "undecided"),
        (lambda seed, share: 0.01, "holds"),
    ],
)
def test_losses_are_compared_at_as_many_evaluations(paid, verdict):
    claim = starting(claims_of(paid=paid, miss=lambda seed, share: 0.97), "R_2: a budget costs")
    assert claim.verdict == verdict


def test_two_budgets_of_a_seed_count_once():
    """Were they independent, the interval would be shorter, and the claim would not hold."""
    claims = claims_of(paid=lambda seed, share: (0.03, 0.1, 0.02)[seed])
    claim = starting(claims, "R_3: a budget costs")
    assert "n = 3" in claim.interval
    assert "with zero or better" in claim.measured
    assert claim.verdict == "undecided"
    spent = starting(claims, "Training to a budget")
    assert "n = 3" in spent.interval


@pytest.mark.parametrize(("spent", "verdict"), [(1.02, "holds"), (1.3, "does not hold")])
def test_evaluations_in_training_are_compared(spent, verdict):
    assert starting(claims_of(spent=spent), "Training to a budget").verdict == verdict
