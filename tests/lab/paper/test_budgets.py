"""Claims on budgets, from made-up runs."""

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.budget_claims import as_good_claim, Budgeted

from .synthetic import result_of


SEEDS = [0, 1, 2]
NEED = 118.0


def front_at(nfe):
    """The loss of constant weights: it rises as evaluations are saved, ever faster."""
    return 0.5 + 0.5 * NEED / nfe


def claims_of(
    *,
    miss=lambda name, seed, share: 1.0,
    paid=lambda seed, share: 0.0,
    spent=1.0,
    failed=lambda name, seed, share: False,
):
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
            nfe = charged.budget * miss(charged.name, seed, share)
            row = {
                "test_loss": front_at(nfe) + paid(seed, share),
                "training_nfe": 1000.0 * nfe * spent,
            }
        result = result_of(job)
        result["row"] |= row | {"test_nfe": nfe}
        if charged.budget is not None and failed(charged.name, seed, charged.budget / NEED):
            result |= {"state": "failed", "message": "Step 3 failed"}
        results.append(result)
    return {c.statement: c for c in study.claims(study.numbers(results, "laptop"))}


def starting(claims, start):
    return next(claim for statement, claim in claims.items() if statement.startswith(start))


KEPT = "With R_2 and R_3, evaluations per test sample end"


@pytest.mark.parametrize(
    ("miss", "verdict"), [(0.96, "holds"), (1.06, "does not hold"), (0.89, "does not hold")]
)
def test_budgets_are_kept_within_a_twentieth(miss, verdict):
    claim = starting(claims_of(miss=lambda name, seed, share: miss), KEPT)
    assert claim.verdict == verdict
    assert "of 12 within 5 %" in claim.measured


@pytest.mark.parametrize(
    ("misses", "by", "verdict", "words"),
    [
        ([("r2", 0, 0.5)], 1.08, "holds", "11 of 12 within 5 %, 12 within 10 %"),
        ([("r2", 0, 0.5)], 1.11, "does not hold", "11 of 12 within 5 %, 11 within 10 %"),
        ([("r2", 0, 0.5), ("r3", 0, 0.5)], 1.08, "does not hold", "10 of 12 within 5 %"),
        # The claim is on R_2 and R_3, and all others are told.
        ([("nfe", 1, 0.5), ("nfe", 2, 0.5)], 1.2, "holds", "16 and 16 of 18"),
    ],
)
def test_one_run_in_ten_may_miss_by_a_tenth(misses, by, verdict, words):
    claims = claims_of(miss=lambda *run: by if run in misses else 1.0)
    kept = starting(claims, KEPT)
    assert kept.verdict == verdict
    assert words in kept.measured


def test_failed_runs_have_not_kept_their_budgets():
    """The claim held when all runs but a few had failed."""
    kept = starting(claims_of(failed=lambda name, seed, share: (name, seed) == ("r2", 1)), KEPT)
    assert kept.verdict == "does not hold"
    assert "10 of 12 within 5 %" in kept.measured
    assert "2 without a number" in kept.measured


def test_budgets_that_constant_weights_do_not_reach_are_told():
    """Their losses were left out without a word."""
    paid = lambda seed, share: 5.0 + seed if share == 0.75 else 0.0
    claims = claims_of(paid=paid, miss=lambda name, seed, share: 1.5 if share == 0.75 else 1.0)
    claim = starting(claims, "R_2: a budget costs")
    # 1.5 times the budget of 0.75 is more than any constant weight needs.
    assert "not compared: R_2, budget 0.75, loss" in claim.measured
    assert "R_2, budget 0.5, loss" not in claim.measured


def test_weights_with_equal_evaluations_do_not_change_the_interpolation():
    """A tie made the front a chord, which lies above it, so that budgets seemed to pay less."""
    study = find_study("budgets-digits")
    counts = {"unregularized": 120.0, "R_2, weight 0.003": 60.0, "R_2, weight 0.03": 20.0}

    def at(last):
        nfe = counts | {"R_2, weight 0.1": last, "R_2, weight 1": last, "R_2, budget 0.5": 30.0}
        jobs = dict(zip(study.arms, study.jobs("laptop", [0]), strict=True))
        results = []
        for arm, count in nfe.items():
            result = result_of(jobs[arm])
            result["row"] |= {"test_nfe": count, "test_loss": 1 / count, "training_nfe": 1.0}
            results.append(result)
        found = Budgeted(study.numbers(results, "laptop"), None, 60.0, study.basis.weights)
        return float(as_good_claim(found, "r2").measured.split()[0])

    # The chord from 20 to 60 gives -0.0083.
    assert at(20.0) == pytest.approx(at(19.999), abs=1e-4)


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
    claim = starting(
        claims_of(paid=paid, miss=lambda name, seed, share: 0.97), "R_2: a budget costs"
    )
    assert claim.verdict == verdict


def test_two_budgets_of_a_seed_count_once():
    """Were they independent, the interval would be shorter, and the claim would not hold."""
    claims = claims_of(paid=lambda seed, share: (0.03, 0.1, 0.02)[seed])
    claim = starting(claims, "R_3: a budget costs")
    assert "n = 3" in claim.interval
    assert "includes zero or lies below" in claim.measured
    assert claim.verdict == "undecided"
    spent = starting(claims, "Training to a budget")
    assert "n = 3" in spent.interval


@pytest.mark.parametrize(("spent", "verdict"), [(1.02, "holds"), (1.3, "does not hold")])
def test_evaluations_in_training_are_compared(spent, verdict):
    assert starting(claims_of(spent=spent), "Training to a budget").verdict == verdict
