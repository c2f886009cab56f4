"""Figures are valid plotly, with the data of the runs, in colors that all can distinguish."""

import itertools
import json
import re

import numpy as np
import pytest

from taynode.lab.report.figures import metric_figure, nfe_figure, tradeoff_figure
from taynode.lab.report.groups import group_runs
from taynode.lab.report.histograms import histogram_figures
from taynode.lab.report.palette import DARK, LIGHT
from taynode.lab.report.runs import read_runs
from taynode.lab.report.trajectories import draw_paths
from taynode.lab.report.views import view_paths

from .synthetic import make_config, make_rows, make_samples, write_pair, write_run


def read_groups(paths):
    return group_runs(read_runs(paths))


def validate(figure):
    """Plotly's own check, with real colors."""
    import plotly.graph_objects as go

    text = re.sub(r'"@[a-z]+\d?(:[\d.]+)?"', '"#123456"', json.dumps(figure, allow_nan=False))
    assert "@" not in text
    return go.Figure(json.loads(text))


def test_curves(tmp_path):
    groups = read_groups(write_pair(tmp_path, error=True))
    nfe = validate(nfe_figure(groups))
    bands, lines = nfe.data[:2], nfe.data[2:]
    assert [band.fill for band in bands] == ["toself", "toself"]
    assert lines[0].x == (0, 2, 4, 6, 8, 10)
    assert lines[1].y[-1] == 27.4
    assert len({line.marker.symbol for line in lines}) == 2
    loss = validate(metric_figure(groups, "loss"))
    assert loss.layout.yaxis.type == "log"
    assert [trace.line.dash for trace in loss.data] == ["solid", "dot"] * 2
    validate(metric_figure(groups, "error"))


def test_curves_are_means_over_seeds(tmp_path):
    runs = [
        write_run(
            tmp_path / str(seed),
            config=make_config(seed=seed),
            rows=make_rows(nfe, None, seed=seed),
        )
        for seed, nfe in enumerate((30.0, 40.0))
    ]
    figure = validate(nfe_figure(read_groups(runs)))
    assert figure.data[-1].y[-1] == 35.0


def test_steps_serve_as_time_without_epochs(tmp_path):
    rows = make_rows(30.0, None)
    del rows[2]["epoch"]
    figure = nfe_figure(read_groups([write_run(tmp_path / "a", config=make_config(), rows=rows)]))
    assert figure["layout"]["xaxis"]["title"]["text"] == "Step"
    assert figure["data"][-1]["x"] == [0, 100, 200, 300, 400, 500]


def test_histograms_are_shares_in_common_bins(tmp_path):
    figures = histogram_figures(read_groups(write_pair(tmp_path)))
    train, test = validate(figures["train"]), validate(figures["test"])
    assert train.data[0].x == test.data[1].x
    # Dopri5 adds six evaluations a step: a bin for each count.
    assert set(np.diff(train.data[0].x)) == {6.0}
    for figure in (train, test):
        for bars in figure.data:
            assert sum(bars.y) == pytest.approx(1.0, abs=1e-3)


def test_tradeoff_takes_three(tmp_path):
    assert tradeoff_figure(read_groups(write_pair(tmp_path / "pair"))) is None
    runs = [
        write_run(tmp_path / str(w), config=make_config("r2", w), rows=make_rows(50 - w, 0.1 * w))
        for w in (0.1, 0.2, 0.3)
    ]
    figure = validate(tradeoff_figure(read_groups(runs)))
    assert [trace.x[0] for trace in figure.data] == [49.9, 49.8, 49.7]


@pytest.mark.parametrize("size", [1, 2, 12])
def test_paths_share_axes_and_colors(tmp_path, size):
    panels = draw_paths(read_groups(write_pair(tmp_path, size=size)))
    assert panels.order == 2  # what was penalized
    assert panels.is_line == (size == 1)
    without, with_ = (figure for _, figure in panels.figures)
    assert without["layout"] == with_["layout"]
    for figure in (without, with_):
        validate(figure)
        *lines, starts, dots = figure["data"]
        assert len(lines) > 5
        assert len(starts["x"]) == 24
        assert len(dots["x"]) == len(dots["text"])
    # 44 evaluations are 7 steps and 26 are 4; half of the paths lack the last.
    assert [len(f["data"][-1]["x"]) for f in (without, with_)] == [24 * 7 - 12, 24 * 4 - 12]


def test_one_dimensional_paths_are_drawn_over_time(tmp_path):
    panels = draw_paths(read_groups(write_pair(tmp_path)))
    _, figure = panels.figures[0]
    states = read_runs([tmp_path / "without"])[0].samples["path_states"]
    xs = [x for line in figure["data"][:-2] for x in line["x"] if x is not None]
    ys = [y for line in figure["data"][:-2] for y in line["y"] if y is not None]
    assert (min(xs), max(xs)) == (0.0, 1.0)
    assert max(ys) == pytest.approx(states.max(), rel=1e-3)


def test_slices_of_several_runs_are_the_same_plane(tmp_path):
    """The same paths in other coordinates must look the same."""
    samples = make_samples(44, size=12)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]
    # A 12-dimensional path in the span of 8 directions, so nothing is left out.
    turned = samples | {
        "path_states": samples["path_states"] @ turn,
        "path_basis": turn.T @ samples["path_basis"],
    }
    runs = [
        write_run(tmp_path / str(i), config=make_config("r2", 0.1 + i), samples=s)
        for i, s in enumerate((samples, turned))
    ]
    first, second = (figure for _, figure in draw_paths(read_groups(runs)).figures)
    for a, b in zip(first["data"], second["data"], strict=True):
        assert np.array([x for x in a["x"] if x is not None]) == pytest.approx(
            np.array([x for x in b["x"] if x is not None]), abs=2e-3
        )


def test_share_counts_what_was_left_out(tmp_path):
    """Of 12 dimensions with the same variance, two hold a sixth, whatever was stored of them."""
    random = np.random.default_rng(0)
    samples = make_samples(44, size=12)
    states = random.standard_normal((24, 41, 12))
    samples["path_states"] = states[..., :8]
    samples["path_basis"] = np.eye(12)[:8]
    samples["path_variance"] = np.asarray(states.reshape(-1, 12).var(axis=0).sum())
    run = write_run(tmp_path / "a", config=make_config(), samples=samples)
    view = view_paths(read_groups([run]))
    assert view.share == pytest.approx(2 / 12, rel=0.15)


def test_groups_without_such_paths_are_named(tmp_path):
    sizes = {"none": 12, "r2": 2, "r3": None}
    runs = [
        write_run(
            tmp_path / name,
            config=make_config(name, 0.1),
            samples=make_samples(44, size=size) if size else None,
        )
        for name, size in sizes.items()
    ]
    panels = draw_paths(read_groups(runs))
    assert [group.label for group, _ in panels.figures] == ["no regularizer"]
    assert panels.remarks[-1] == "Without such paths, and not drawn: R_2; R_3."


def test_more_groups_than_colors(tmp_path):
    weights = [0.1 * k for k in range(1, 12)]
    runs = [
        write_run(tmp_path / str(i), config=make_config("r2", w), rows=make_rows(40 - w, 0.1))
        for i, w in enumerate(weights)
    ]
    groups = read_groups(runs)
    assert len({(group.color, group.repeats_color) for group in groups}) == 10
    assert len({group.key for group in groups}) == 11
    lines = [t for t in validate(nfe_figure(groups)).data if t.mode == "lines+markers"]
    pairs = zip(lines, groups, strict=True)
    looks = {(line.line.dash, line.marker.symbol, group.color) for line, group in pairs}
    assert len(looks) == 11


def test_derivative_that_all_runs_know(tmp_path):
    """A run without regularizer stores three derivatives, one with R_5 five."""
    runs = [
        write_run(tmp_path / "a", config=make_config(), samples=make_samples(44)),
        write_run(tmp_path / "b", config=make_config("r5", 0.1), samples=make_samples(26, order=5)),
    ]
    assert draw_paths(read_groups(runs)).order == 3
    assert draw_paths(read_groups(runs[1:])).order == 5


def test_paths_that_blew_up_are_drawn_as_far_as_they_go(tmp_path):
    samples = make_samples(44)
    samples["path_states"][3, 20:] = np.nan
    samples["path_derivative"][:, 4, 10:] = np.inf
    run = write_run(tmp_path / "a", config=make_config(), samples=samples)
    _, figure = draw_paths(read_groups([run])).figures[0]
    validate(figure)
    samples["path_states"][:] = np.nan
    run = write_run(tmp_path / "b", config=make_config(), samples=samples)
    assert draw_paths(read_groups([run])) is None


# Machado, Oliveira and Fernandes (2009), full severity, for linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(color):
    x = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def seen(color, vision):
    return TO_OKLAB @ np.cbrt(TO_CONES @ np.clip(np.asarray(vision) @ linear(color), 0, 1))


def contrast(first, second):
    low, high = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] for c in (first, second))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_groups_can_be_told_apart(colors, vision):
    for i, j in itertools.combinations(range(6), 2):
        a, b = (seen(colors[f"g{k}"], VISIONS[vision]) for k in (i, j))
        assert 100 * np.linalg.norm(a - b) > 10, (i, j)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(colors):
    for ground in ("bg", "surface"):
        for text in ("ink", "muted", "link", "warn"):
            assert contrast(colors[text], colors[ground]) > 4.5, (text, ground)
    assert contrast(colors["ink"], colors["mark"]) > 4.5
    for k in range(6):
        assert contrast(colors[f"g{k}"], colors["surface"]) > 3, k
    # A ramp of one direction: what is larger stands out more.
    steps = [contrast(colors[f"seq{k}"], colors["surface"]) for k in range(5)]
    assert steps == sorted(steps)
    assert set(LIGHT) == set(DARK)
