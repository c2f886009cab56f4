"""Notes on runs: times that are not comparable, failures, and measurements to be redone."""

from taynode.lab.paper import find_study
from taynode.lab.paper.notes import remarks_on
from taynode.lab.paper.run import record_of
from taynode.lab.paper.table_rows import column, ratios

from .synthetic import result_of


STUDY = find_study("table4-miniboone")
SEEDS = [0, 1, 2]


def results_of():
    return [result_of(job) for job in STUDY.jobs("laptop", SEEDS)]


def noted(results, pick, **note):
    """Results, with a note on those that `pick` chooses."""
    return [x | {"note": note} if pick(x["config"]) else x for x in results]


def test_times_of_a_busy_machine_enter_no_claim():
    results = noted(results_of(), lambda config: config["seed"] == 0, busy=True)
    numbers = STUDY.numbers(results, "laptop")
    assert list(column(numbers, "R_2", 4, "seconds")) == [1, 2]
    assert list(column(numbers, "R_2", 4, "NFE")) == SEEDS
    assert len(ratios(numbers, "seconds", "R_2", steps=4)) == 2
    assert STUDY.table(numbers)[0]["runs"] == "3; 1 not timed on a quiet machine"
    slower, *_ = STUDY.claims(numbers)
    assert "(2 seeds)" in slower.measured
    assert "n = 2" in slower.interval


def test_times_of_a_busy_machine_are_not_shown():
    for count in (1, 3):
        results = noted(results_of(), lambda config, n=count: config["seed"] < n, busy=True)
        numbers = STUDY.numbers(results, "laptop")
        titles = [panel.title for panel in STUDY.chart(numbers).panels]
        assert ("training, s" in titles) == (count < 3)
        assert (STUDY.table(numbers)[0]["seconds"] == "-") == (count == 3)


def test_times_of_two_machines_are_not_compared():
    there = lambda config: config["regularizer"]["name"] == "r2" and config["seed"] > 0
    results = noted(results_of(), there, machine="another machine")
    numbers = STUDY.numbers(results, "laptop")
    assert len(ratios(numbers, "seconds", "R_2", steps=4)) == 1
    # Both on the other one.
    assert len(ratios(numbers, "seconds", "R_2, Augmented", "R_2", steps=4)) == 3
    assert len(ratios(numbers, "NFE", "R_2", steps=4)) == 3


def test_failed_and_unsolved_runs_are_counted_not_dropped_silently():
    study = find_study("fig6-order-of-regularization")
    results = [result_of(job) for job in study.jobs("laptop", SEEDS)]
    results[1] |= {"state": "failed", "message": "Step 3 failed"}
    results[2]["row"]["test_num_failed"] = 4
    record, claims = record_of(study, results, scale="laptop", seeds=SEEDS)
    assert "1 of 99 runs failed, 1 had unsolved samples" in record["remarks"]
    # Seed 0 of the two weights is missing, not the whole seed.
    assert all("n = 3" in claim.interval for claim in claims)
    assert remarks_on([]) == []


def test_unsolved_runs_are_counted_in_the_row_of_a_table():
    results = results_of()
    results[0]["row"]["test_num_failed"] = 4
    numbers = STUDY.numbers(results, "laptop")
    assert STUDY.table(numbers)[0]["runs"] == "3; 1 with unsolved samples"
    assert list(column(numbers, "unregularized", 4, "NFE")) == [1, 2]


def test_a_remark_on_all_runs_is_made_once():
    results = noted(results_of(), lambda config: True, remarks=["to be redone"])
    record, _ = record_of(STUDY, results, scale="laptop", seeds=SEEDS)
    assert {row["runs"] for row in record["table"]} == {"3"}
    assert "to be redone (66 runs)" in record["remarks"]
    some = noted(results_of(), lambda config: config["seed"] == 0, remarks=["to be redone"])
    record, _ = record_of(STUDY, some, scale="laptop", seeds=SEEDS)
    assert {row["runs"] for row in record["table"]} == {"3; see the remarks"}
