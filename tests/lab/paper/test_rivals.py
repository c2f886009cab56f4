"""Methods at equal evaluations."""

import dataclasses

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.rival_claims import Compared, looks_fooled
from taynode.lab.paper.rivals import LOW, OTHERS

from .synthetic import result_of


@pytest.mark.parametrize(
    ("name", "num_rows"),
    [("rivals-digits", 35), ("rivals-two-moons", 34), ("rivals-physionet", 28)],
)
def test_every_row_has_its_own_settings(name, num_rows):
    study = find_study(name)
    jobs = study.jobs("laptop", [0])
    assert len(jobs) == len(set(jobs)) == num_rows
    assert len(study.methods) >= 12
    keys = {study.row_key(job.config) for job in jobs}
    assert len(keys) == len(jobs)
    # All other settings are equal.
    plain = jobs[0].config
    for job in jobs:
        config = dataclasses.replace(
            job.config,
            regularizer=plain.regularizer,
            steer=0.0,
            spectral_norm=None,
            augment=0,
            training=plain.training,
        )
        assert config == plain


def result_with(job, nfe, loss):
    result = result_of(job)
    result["row"] |= {"test_nfe": nfe, "test_loss": loss}
    return result


def compared(points):
    """The numbers of a study whose fronts go through given points, (evaluations, loss) by row."""
    study = find_study("rivals-digits")
    jobs = dict(zip(study.rivals, study.jobs("laptop", [0]), strict=True))
    results = [result_with(jobs[row], *point) for row, point in points.items()]
    rows = {name: tuple(rows) for name, rows in study.methods.items()}
    return Compared(study.numbers(results, "laptop"), None, 100.0, rows, OTHERS)


UNREGULARIZED = {"unregularized": (120.0, 1.0)}


def loss_at(nfe, price=100.0):
    """A front that is a straight line in the inverse of evaluations."""
    return 1.0 + price * (1 / nfe - 1 / 120.0)


@pytest.mark.parametrize(
    ("ends", "is_known"),
    [
        # Within a twentieth of the budget on either side, and at another one, too.
        ((77.0, 48.0), True),
        ((73.0, 51.0), True),
        ((72.0,), True),
        # No run is near, or there is none.
        ((80.0, 48.0), False),
        ((70.0, 80.0), False),
        ((), False),
    ],
)
def test_losses_at_equal_evaluations_are_those_of_runs_that_are_near(ends, is_known):
    """Methods on the same front are equal, wherever on it their runs ended."""
    rows = dict(zip(("R_2, budget 0.75", "R_2, budget 0.5"), ends, strict=False))
    points = {row: (nfe, loss_at(nfe)) for row, nfe in rows.items()}
    losses = compared(UNREGULARIZED | points).losses_at("R_2", 0.75)
    assert losses == ({0: pytest.approx(loss_at(75.0))} if is_known else {})


def test_a_method_that_nothing_steers_has_no_loss_at_a_budget():
    points = UNREGULARIZED | {"spectral norms at most, 1": (75.0, 1.0)}
    assert compared(points).losses_at("spectral norms at most", 0.75) == {}


def test_a_method_with_less_loss_is_found():
    study = find_study("rivals-digits")
    seeds = [0, 1, 2]
    jobs = study.jobs("laptop", seeds)
    results = []
    for job in jobs:
        budget, name = job.config.regularizer.budget, job.config.regularizer.name
        cost = {"r3": 0.1, "r2": 0.05, "curvature": 0.3}.get(name, 0.1)
        nfe = 118.0 if budget is None else budget
        loss = 1.0 + 0.01 * job.config.seed + (0 if budget is None else cost * 118 / budget)
        results.append(result_with(job, nfe, loss))
    claims = {
        c.statement.partition(" costs")[0]: c
        for c in study.claims(study.numbers(results, "laptop"))
        if " costs" in c.statement
    }
    assert claims["R_2"].verdict == "holds"
    assert claims["curvature"].verdict == "does not hold"
    assert "-0.06" in claims["R_2"].measured
    assert not claims.keys() & OTHERS.keys()


# The claim held by the seeds that reached the budget; others were left out.
def test_a_method_that_does_not_reach_a_budget_on_every_seed_is_not_better():
    study = find_study("rivals-digits")
    results = []
    for job in study.jobs("laptop", [0, 1, 2]):
        charged, seed = job.config.regularizer, job.config.seed
        is_decay, budget = charged.name == "decay", charged.budget
        nfe = 118.0 if budget is None else budget
        nfe = 112.0 if is_decay and seed == 2 else nfe
        results.append(result_with(job, nfe, 0.9 if is_decay else 1.0 + 0.01 * seed))
    claims = study.claims(study.numbers(results, "laptop"))
    claim = next(c for c in claims if c.statement.startswith("weight decay costs"))
    assert claim.verdict == "undecided"
    assert "reached on 2 of 3 seeds" in claim.measured


def measured(errors, nfe):
    """What solvers do on a model, by their errors and evaluations."""
    found = {
        name: {"nfe": nfe, "rejected": 0.1, "error": error}
        for name, error in zip(("dopri5", "tsit5", "bosh3"), errors, strict=True)
    }
    return {
        "solving": {"solvers": found, "cheapest": {"solver": "Tsit5", "rtol": 1e-4, "nfe": nfe}}
    }


def test_a_fooled_solver_is_found_out_by_true_errors():
    """Those of the solver that a model was trained against, which another one has, too, or not."""
    study, results = find_study("rivals-digits"), []
    for job in study.jobs("laptop", [0, 1, 2]):
        charged, wobble = job.config.regularizer, 1 + 0.05 * job.config.seed
        grown = {"error": 5.0, "r5": 1.1, "curvature": 2.0 * wobble**8 / 1.4}.get(charged.name, 1.0)
        results.append(result_of(job))
        errors = 1.3 * wobble * grown, 0.3 * wobble, 9.0
        results[-1]["measured"] = measured(errors, 118.0 if charged.name == "none" else 60.0)
    claims = {c.statement: c for c in study.claims(study.numbers(results, "laptop"))}
    verdict = lambda name: claims[f"{name}: the solver is not fooled"].verdict
    assert verdict("R_5") == verdict("STEER") == "holds"
    assert verdict("error of steps (ERNODE)") == "does not hold"
    assert verdict("curvature") == "undecided"
    told = claims["error of steps (ERNODE): the solver is not fooled"].measured
    assert "5 with Dopri5, 1 with Tsit5" in told
    assert "(error of steps (ERNODE), budget 0.5)" in told


# An infinite error was left out.
def test_a_solve_that_fails_is_no_sign_of_an_honest_solver():
    study, results = find_study("rivals-digits"), []
    for job in study.jobs("laptop", [0, 1, 2]):
        is_bad = job.config.regularizer.name == "curvature" and job.config.seed == 0
        error = float("inf") if is_bad else 1.0 + 0.1 * job.config.seed
        results.append(result_of(job))
        results[-1]["measured"] = measured((error, 0.3, 9.0), 60.0)
    numbers = study.numbers(results, "laptop")
    claims = {c.statement: c.verdict for c in study.claims(numbers)}
    assert claims["curvature: the solver is not fooled"] == "undecided"
    assert claims["R_5: the solver is not fooled"] == "holds"
    assert looks_fooled(study.compared(numbers), "curvature")
    assert not looks_fooled(study.compared(numbers), "R_5")


def test_what_was_not_measured_decides_nothing():
    study = find_study("rivals-digits")
    results = [result_of(job) | {"measured": {}} for job in study.jobs("laptop", [0, 1])]
    numbers = study.numbers(results, "laptop")
    fooled = [c for c in study.claims(numbers) if "fooled" in c.statement]
    assert {claim.verdict for claim in fooled} == {"undecided"}
    assert study.table(numbers)[0]["rejected"] == "nan"


def test_the_method_closest_to_what_nobody_published_is_told():
    study, results = find_study("rivals-physionet"), []
    for job in study.jobs("laptop", [0, 1, 2]):
        charged, seed = job.config.regularizer, job.config.seed
        is_low = charged.budget == LOW * 144 and charged.name == "stiffness"
        results.append(result_with(job, 34.0 if is_low else 144.0, 17.0 + seed))
        results[-1]["row"]["train_seconds"] = 120.0 if is_low else 240.0
        results[-1]["environment"] |= {"busy": False}
    claim = study.claims(study.numbers(results, "laptop"))[-1]
    row = f"stiffness of steps (SRNODE), budget {LOW:g}"
    assert f"closest, by the other seeds: {row}" in claim.measured
    assert claim.verdict == "holds"


def test_a_rival_is_not_taken_for_the_unregularized_run():
    """That run has no count if a sample was not solved. Then the claims failed, or the first run
    of the method took its place."""
    rows = {
        f"R_2, budget {share:g}": (share * 100.0, loss_at(share * 100.0)) for share in (0.75, 0.5)
    }
    study = find_study("rivals-digits")
    jobs = dict(zip(study.rivals, study.jobs("laptop", [0]), strict=True))
    results = [result_with(jobs[row], *point) for row, point in (UNREGULARIZED | rows).items()]
    results[0]["row"]["test_num_failed"] = 1
    methods = {name: tuple(rows) for name, rows in study.methods.items()}
    found = Compared(study.numbers(results, "laptop"), None, 100.0, methods, OTHERS)
    assert found.column("unregularized", "NFE") == {}
    assert found.losses_at("R_2", 0.75) == {0: pytest.approx(loss_at(75.0))}
    assert study.claims(study.numbers(results, "laptop"))
