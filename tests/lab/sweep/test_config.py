"""The file of a sweep: what it means, and what is wrong with it."""

import tomllib

import pytest

from taynode.lab.config import ConfigError, RegularizerConfig, TrainConfig
from taynode.lab.sweep.config import Range, read_sweep
from taynode.registry import UnknownNameError


DEFAULTS = TrainConfig("toy", "smoke")


def read(text, **options):
    return read_sweep("mine", tomllib.loads(text), **options)


def test_a_grid():
    """Names are those of flags, or dotted names of settings, in either form of TOML."""
    config = read("""
        task = "toy"
        scale = "smoke"
        seeds = [3, 5]
        settings = {regularizer = "r2", optimizer.learning_rate = 0.1, rtol = 1e-3}
        [grid]
        weight = [0, 0.1]
        "training.solver" = ["dopri5", "heun", "bosh3"]
        """)
    assert config.choices()[:2] == [
        {"weight": 0, "training.solver": "dopri5"},
        {"weight": 0, "training.solver": "heun"},
    ]
    assert len(config.choices()) == 6
    first, second = (job.config for job in config.jobs(config.choices()[-1], DEFAULTS))
    assert (first.seed, second.seed) == (3, 5)
    assert first.regularizer == RegularizerConfig("r2", 0.1)
    assert first.training.solver == "bosh3"
    assert (first.training.rtol, first.evaluation.rtol) == (1e-3, 1e-3)
    assert first.optimizer.learning_rate == 0.1


def test_a_search():
    config = read("""
        task = "toy"
        [search]
        trials = 7
        [search.space]
        weight = {low = 1, high = 10, log = true}
        epochs = {low = 1, high = 4}
        solver = ["dopri5", "heun"]
        """)
    assert config.search is not None
    # A number is of the type of its setting.
    ends = config.search.space["weight"]
    assert isinstance(ends, Range)
    assert isinstance(ends.low, float)
    assert config.search.space["epochs"] == Range(1, 4)
    assert config.search.space["solver"] == ("dopri5", "heun")
    assert (config.search.trials, config.seeds) == (7, (0,))


GRID = 'task = "toy"\n[grid]\nepochs = [1]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = 3", "`mine` 'epochs' is not known"),
        ('task = "toy"', "`mine` needs a table `grid` or a table `search`, and not both"),
        (GRID + "\n[search]\ntrials = 1", "and not both"),
        ("[grid]\nepochs = [1]", "`mine` needs a task"),
        ("grid = 3", "`grid` must be a table, got 3"),
        ("scale = 'labtop'\n" + GRID, "did you mean 'laptop'?"),
        ("seeds = 0\n" + GRID, "`seeds` must be positive"),
        ("seeds = [1, 1]\n" + GRID, "`seeds` must be a number or a list of different seeds"),
        ("objectives = ['test_nfe']\n" + GRID, "`objectives` must be two names"),
        ("objectives = ['trian_nfe', 'train_loss']\n" + GRID, "did you mean 'train_nfe'"),
        ("objectives = ['training_nfe', 'penalyt']\n" + GRID, "did you mean 'penalty'?"),
        (GRID + "\nepoch = [1]", "`grid` 'epoch' is not known: did you mean 'epochs'"),
        (GRID + "\nregularizer.weigth = [1]", "did you mean 'regularizer.weight'"),
        (GRID + "\nseed = [1]\nscale = ['smoke']", "`grid` 'scale' is not known"),
        (GRID + "\nweight = 0.1", "`grid.weight` must be a list of values, got 0.1"),
        (GRID + "\nweight = []", "`grid.weight` must be a list of values"),
        (GRID + "\nweight = ['much']", "`grid.weight`: `config.regularizer.weight` must be float"),
        (GRID + "\nweight = [-1]", "`grid.weight`: `weight` must not be negative"),
        (GRID + "\nsolver = ['dopri6']", "`grid.solver`: `solver` 'dopri6' is not known"),
        (GRID + "\nweight = {low = 0.1, high = 1.0}", "`grid.weight` must be a list of values"),
        (GRID + "\n[settings]\nepochs = 'two'", "`settings.epochs`: `config.epochs` must be int"),
    ],
)
def test_bad_files(text, message):
    with pytest.raises((ConfigError, UnknownNameError)) as error:
        read(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`search.trials` must be int, got None"),
        ("trials = 0\nspace.epochs = [1]", "`search.trials` must be positive"),
        ("trials = 2", "`search.space` must be a table"),
        ("trials = 2\nworkers = 3", "`search` 'workers' is not known"),
        ("trials = 2\nseed = 'x'", "`search.seed` must be int, got 'x'"),
        ("trials = 2\nspace.weight = {low = 1}", "must have numbers low and high"),
        ("trials = 2\nspace.weight = {low = 2, high = 1}", "low must be less than high"),
        ("trials = 2\nspace.weight = {low = 0, high = 1, log = true}", "and positive if log"),
        ("trials = 2\nspace.weight = {low = 1, hihg = 2}", "did you mean 'high'?"),
        ("trials = 2\nspace.solver = {low = 1, high = 2}", "`config.training.solver` must be str"),
        ("trials = 2\nspace.epochs = {low = 0.5, high = 2}", "`config.epochs` must be int"),
        ("trials = 2\nspace.optimizer.boundaries = [[1], [2]]", "cannot choose among lists"),
    ],
)
def test_bad_searches(text, message):
    with pytest.raises((ConfigError, UnknownNameError)) as error:
        read(f'task = "toy"\n[search]\n{text}')
    assert message in str(error.value)


def test_a_weight_needs_a_regularizer():
    config = read('task = "toy"\n[grid]\nweight = [0.1, 1.0]')
    with pytest.raises(ConfigError, match="`weight` changes nothing without a regularizer"):
        config.check_regularizer(DEFAULTS)
    config.check_regularizer(TrainConfig("toy", regularizer=RegularizerConfig("r2", 0.1)))
    read('task = "toy"\n[grid]\nweight = [1]\nregularizer = ["r3"]').check_regularizer(DEFAULTS)
