# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath fading`` from the command line, and against a generator of its own kind."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from scipy.io import savemat
from scipy.special import j0

from airpath.app import run as run_app
from airpath.engine import find_engine
from airpath.fading.statistics import autocorrelation, crossings, over_frequency
from airpath.fading.table import Table, of_text, read, write
from airpath.plots.fading import draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

DOCS = Path(__file__).parent.parent / "docs" / "fading.md"
CHANNEL = (
    '{ type = "jakes", speed = "75 km/h", snr = "16 dB", resources = 2, prediction_error = 0.1 }'
)


def fading(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), "fading", "generate", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


def test_a_file_has_a_line_for_each_slot_and_says_how_it_was_made(tmp_path: Path) -> None:
    for name, further in (("one", ()), ("two", ()), ("guess", ("--predicted",))):
        result = fading(CHANNEL, tmp_path / name, "--slots", 3000, "--seed", 5, *further)
        assert result.returncode == 0, result.stderr
    text = (tmp_path / "one").read_text(encoding="utf-8")
    assert text == (tmp_path / "two").read_text(encoding="utf-8")
    assert "--slots 3000 --seed 5" in text.splitlines()[0]
    values = np.loadtxt(tmp_path / "one", delimiter=",")
    assert values.shape == (3000, 2)
    # A prediction with an error of 0.1 is near, and not the same.
    guess = np.loadtxt(tmp_path / "guess", delimiter=",")
    correlation = np.corrcoef(values[:, 0], guess[:, 0])[0, 1]
    assert 0.5 < correlation < 1


def test_a_file_is_a_recorded_channel_again(tmp_path: Path) -> None:
    assert fading(CHANNEL, tmp_path / "snr.csv", "--slots", 100, "--seed", 5).returncode == 0
    channel = 'type = "recorded"\nfile = "snr.csv"\nresources = 2\n'
    (tmp_path / "again.toml").write_text(channel, encoding="utf-8")
    result = fading(tmp_path / "again.toml", tmp_path / "again.csv", "--slots", 100)
    assert result.returncode == 0, result.stderr
    first, again = (np.loadtxt(tmp_path / name, delimiter=",") for name in ("snr.csv", "again.csv"))
    assert np.abs(first - again).max() < 0.002


@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ('{ type = "jakes", sped = "3 m/s" }', "`sped` is no key"),
        ('{ type = "jakes", prediction_error = 2 }', "`prediction_error` is 2"),
        ('{ type = "jakes", snr = "nan dB" }', "snr"),
        ('{ type = "profile", profile = "tdl_a" }', "delay_spread"),
        ('{ type = "recorded", file = "none.csv" }', "none.csv"),
        ("none.toml", "cannot read the channel none.toml"),
        ('{ type = "jakes", route = "bad.gpx" }', "line 1: the point has no `lat`"),
        ('{ type = "jakes", route = "good.gpx", speed = "3 m/s" }', "`speed` has no meaning"),
        ('{ type = "cdl", profile = "f", delay_spread = "1 ns" }', "unknown variant"),
    ],
)
def test_a_wrong_channel_is_told(tmp_path: Path, channel: str, says: str) -> None:
    (tmp_path / "bad.gpx").write_text('<gpx><trkpt lon="2"/></gpx>', encoding="utf-8")
    points = (
        f'<rtept lat="60" lon="2{n}"><time>2026-01-0{n}T00:00:00Z</time></rtept>' for n in (1, 2)
    )
    (tmp_path / "good.gpx").write_text(f"<gpx>{''.join(points)}</gpx>", encoding="utf-8")
    result = fading(channel, "out.csv", "--slots", 10, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr
    assert not (tmp_path / "out.csv").exists()


def airpath(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the engine's, or one of Python's in this process, which is quicker."""
    command = [str(word) for word in words]
    if command[:2] == ["fading", "generate"]:
        return fading(*command[2:], cwd=cwd)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_app(command)
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


def test_every_example_of_the_documentation_runs(tmp_path: Path) -> None:
    text = DOCS.read_text(encoding="utf-8")
    route = re.search(r"<!-- drive.gpx -->\n```xml\n(.*?)```", text, re.S)
    assert route is not None
    (tmp_path / "drive.gpx").write_text(route[1], encoding="utf-8")
    examples = re.findall(r"^airpath (fading .*)", text, re.M)
    assert len(examples) >= 14
    for example in examples:
        result = airpath(*shlex.split(example), cwd=tmp_path)
        assert result.returncode == 0, (example, result.stderr)
    assert np.loadtxt(tmp_path / "snr.csv", delimiter=",").shape == (15_000, 25)
    # 3 dB louder, after a MAT-file on the way.
    louder, snr = (
        np.loadtxt(tmp_path / f"{name}.csv", delimiter=",") for name in ("louder", "snr")
    )
    assert np.abs(louder - snr[:100] - 3).max() < 0.002
    assert (tmp_path / "tu.png").stat().st_size > 10_000


TDL_A_DELAYS = (
    *(0.0, 0.3819, 0.4025, 0.5868, 0.4610, 0.5375, 0.6708, 0.5750, 0.7618, 1.5375, 1.8978, 2.2242),
    *(2.1718, 2.4942, 2.5119, 3.0582, 4.0810, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043, 9.6586),
)
TDL_A_DECIBELS = (
    *(-13.4, 0.0, -2.2, -4.0, -6.0, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2),
    *(-10.8, -11.3, -12.7, -16.2, -18.3, -18.9, -16.6, -19.9, -29.7),
)
DOPPLER_HZ, SPREAD_S, SPACING_HZ, RATE = 100.0, 300e-9, 200e3, 1500
SLOTS, RESOURCES, CHANNELS = 4096, 21, 16


def filtered_gaussian(generator: np.random.Generator) -> NDArray[np.float64]:
    """Return powers of TDL-A: for each tap white Gaussian noise through Clarke's spectrum.

    The noise is shaped over its Fourier transform, where a bin gets the power of the spectrum
    within it, the difference of arcsin(f/f_d)/π at its edges.
    """
    frequencies = np.fft.fftfreq(SLOTS, 1 / RATE)
    edges = np.array([frequencies - RATE / SLOTS / 2, frequencies + RATE / SLOTS / 2])
    below = np.arcsin(np.clip(edges / DOPPLER_HZ, -1, 1)) / np.pi
    amplitudes = np.sqrt(below[1] - below[0])
    powers = 10 ** (np.array(TDL_A_DECIBELS) / 10)
    offsets = (np.arange(RESOURCES) - (RESOURCES - 1) / 2) * SPACING_HZ
    response = np.zeros((SLOTS, RESOURCES), dtype=np.complex128)
    for power, delay in zip(powers / powers.sum(), TDL_A_DELAYS, strict=True):
        noise = generator.normal(size=(SLOTS, 2)) @ np.array([1, 1j]) / np.sqrt(2)
        tap = np.fft.ifft(noise * amplitudes) * SLOTS
        response += np.sqrt(power) * np.outer(tap, np.exp(-2j * np.pi * offsets * delay * SPREAD_S))
    return np.asarray(np.abs(response) ** 2)


def drawn_by_airpath(seed: int) -> NDArray[np.float64]:
    """Return powers of TDL-A as the engine draws them."""
    channel = (
        f'{{ type = "profile", profile = "tdl_a", delay_spread = "{SPREAD_S * 1e9:g} ns", '
        f'speed = "{DOPPLER_HZ * 299_792_458 / 1.9e9} m/s", resources = {RESOURCES}, '
        f'spacing = "{SPACING_HZ:g} Hz", slots_per_second = {RATE} }}'
    )
    result = fading(channel, "-", "--slots", SLOTS, "--seed", seed, "--quiet")
    assert result.returncode == 0, result.stderr
    return np.asarray(10 ** (of_text(result.stdout.encode()).decibels / 10))


def test_an_independent_generator_agrees_over_time_and_frequency() -> None:
    lags, apart = (1, 3, 6, 12), (1, 4, 10, 20)

    def correlations(powers: NDArray[np.float64]) -> NDArray[np.float64]:
        # The mean power is one, so that nothing need be estimated: E p(0) p(x) - 1.
        over_time = [(powers[:-lag] * powers[lag:]).mean() - 1 for lag in lags]
        over_band = [(powers[:, :-step] * powers[:, step:]).mean() - 1 for step in apart]
        return np.array([powers.mean() - 1, *over_time, *over_band])

    generator = np.random.default_rng(7)
    ours = np.array([correlations(drawn_by_airpath(seed)) for seed in range(CHANNELS)])
    theirs = np.array([correlations(filtered_gaussian(generator)) for _ in range(CHANNELS)])
    delays, powers = np.array(TDL_A_DELAYS) * SPREAD_S, 10 ** (np.array(TDL_A_DECIBELS) / 10)
    phases = np.exp(-2j * np.pi * np.outer(apart, delays) * SPACING_HZ)
    of_band = np.abs(phases @ (powers / powers.sum())) ** 2
    of_time = j0(2 * np.pi * DOPPLER_HZ * np.array(lags) / RATE) ** 2
    theory = np.array([0, *of_time, *of_band])
    # Four standard errors, by the scatter between channels: with 15 degrees of freedom, 99.9 % for
    # each of 9 figures.
    errors_ours, errors_theirs = (all_.std(axis=0, ddof=1) / 4 for all_ in (ours, theirs))
    assert (np.abs(ours.mean(axis=0) - theory) < 4 * errors_ours).all()
    assert (np.abs(theirs.mean(axis=0) - theory) < 4 * errors_theirs).all()
    between = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    assert (between < 4 * np.hypot(errors_ours, errors_theirs)).all()
    # And the comparison is not an empty one.
    assert errors_ours.max() < 0.12
    assert errors_theirs.max() < 0.12


def test_statistics_of_a_channel_are_those_of_theory(tmp_path: Path) -> None:
    channel = '{ type = "filtered_noise", speed = "75 km/h", snr = "16 dB" }'
    result = airpath("fading", "show", channel, "--slots", 60_000, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    figures = {one["name"]: one for one in json.loads(result.stdout)}
    # 40 s at 132 Hz: some 5000 periods, so that a few per cent are left to chance.
    for name in ("crossings of -5 dB", "crossings of 0 dB", "mean fade below 0 dB"):
        one = figures[name]
        assert one["measured"] == pytest.approx(one["theory"], rel=0.08), name
    assert abs(figures["mean SNR"]["measured"] - 16) < 0.3
    correlations = [one for name, one in figures.items() if name.startswith("autocorrelation")]
    assert len(correlations) == 4
    for one in correlations:
        assert abs(one["measured"] - one["theory"]) < 0.08, one


def test_crossings_and_fades_by_hand() -> None:
    # Below 1 in slots 1, 2 and 5, the second resource always: 2 crossings, 3 + 6 slots below.
    powers = np.array([[2, 0.5], [0.5, 0.5], [0.5, 0.5], [2, 0.5], [2, 0.5], [0.5, 0.5]])
    rate, fade = crossings(powers, 1.0, 10.0)
    assert rate == pytest.approx(2 / 1.2)
    assert fade == pytest.approx(0.9 / 2)
    assert autocorrelation(np.array([[1.0], [3.0], [1.0], [3.0]]), 1)[1] == pytest.approx(-1)
    assert over_frequency(np.array([[1.0, 3.0], [3.0, 1.0]]))[1] == pytest.approx(-1)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".mat"])
def test_a_table_comes_back_from_each_format(tmp_path: Path, suffix: str) -> None:
    values = np.random.default_rng(1).normal(size=(50, 3)).round(3)
    path = tmp_path / f"snr{suffix}"
    write(path, Table(values, {"slots_per_second": 10}))
    again = read(path)
    assert np.abs(again.decibels - values).max() < 1e-9
    assert again.theory == ({"slots_per_second": 10} if suffix == ".csv" else {})


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "u1"])
def test_matrices_of_scipy_are_read(tmp_path: Path, kind: str, compressed: bool) -> None:
    values = np.arange(12).reshape(4, 3).astype(kind)
    named = {"first": values, "text": "words", "one": np.array([[7]], dtype=kind)}
    savemat(tmp_path / "snr.mat", named, do_compression=compressed)
    assert (read(tmp_path / "snr.mat", "first").decibels == values).all()
    assert read(tmp_path / "snr.mat", "one").decibels == 7


def test_arrays_of_sionna_are_read_as_ratios_with_a_mean_of_one(tmp_path: Path) -> None:
    dice = np.random.default_rng(2)
    response = dice.normal(size=(1, 1, 1, 1, 1, 40, 3)) + 1j * dice.normal(
        size=(1, 1, 1, 1, 1, 40, 3)
    )
    np.savez(tmp_path / "sionna.npz", h=response.astype(np.complex64), other=np.zeros(3))
    found = read(tmp_path / "sionna.npz", "h").decibels
    assert found.shape == (40, 3)
    assert abs((10 ** (found / 10)).mean() - 1) < 1e-6
    powers = np.abs(response[0, 0, 0, 0, 0]) ** 2
    assert np.abs(10 ** (found / 10) * powers.mean() - powers).max() < 1e-5
    np.save(tmp_path / "flat.npy", np.arange(4))
    assert (read(tmp_path / "flat.npy").decibels == np.arange(4)[:, np.newaxis]).all()
    assert airpath("fading", "convert", "flat.npy", "flat.csv", cwd=tmp_path).returncode == 0
    assert np.loadtxt(tmp_path / "flat.csv").tolist() == [0, 1, 2, 3]


def test_other_arrays_are_refused_with_a_way_out(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", h=np.zeros((2, 40, 3), complex), words=np.array(["a"]))
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:100])
    cases = [
        (("two.npz", "out.csv"), "which array is not said; arrays are h, words (--variable)"),
        (("two.npz", "out.csv", "--variable", "h"), "the shape (2, 40, 3): only the last two"),
        (("two.npz", "out.csv", "--variable", "words"), "not numbers"),
        (("damaged.npz", "out.csv"), "it is no file of NumPy arrays"),
    ]
    for words, told in cases:
        result = airpath("fading", "convert", *words, cwd=tmp_path)
        assert result.returncode == 2, result.stderr
        assert told in result.stderr
    (tmp_path / "snr.csv").write_text("1\n2\n")
    result = airpath("fading", "convert", "snr.csv", "out.npz", cwd=tmp_path)
    assert result.returncode == 2
    assert "are read only; write text, .parquet or .mat" in result.stderr


def test_wrong_tables_are_told_with_row_and_column(tmp_path: Path) -> None:
    def says(name: str, *words: str) -> str:
        result = airpath("fading", "convert", name, "out.csv", *words, cwd=tmp_path)
        assert result.returncode == 2, result.stderr
        assert not (tmp_path / "out.csv").exists()
        return result.stderr

    texts = {
        "": "no number",
        "1,2\n3": "line 2: 1 numbers, but 2 in the lines before",
        "1,2\n3,nan": "line 2, column 2: `nan`",
        "1\n\n-inf": "line 3, column 1: `-inf`",
        "1,,2": "line 1, column 2: there is no number",
        "1\nx": "line 2, column 1: `x`",
    }
    for text, expected in texts.items():
        (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
        assert expected in says("bad.csv")
    bad = np.array([[1.0, 2.0], [3.0, np.inf]])
    pl.DataFrame({"a": bad[:, 0], "b": bad[:, 1]}).write_parquet(tmp_path / "bad.parquet")
    assert "row 2, column 2 (`b`): inf" in says("bad.parquet")
    pl.DataFrame({"a": ["x"]}).write_parquet(tmp_path / "bad.parquet")
    assert "column `a` holds String" in says("bad.parquet")
    pl.DataFrame({"a": [1.0, None]}).write_parquet(tmp_path / "bad.parquet")
    assert "row 2, column 1 (`a`): nan" in says("bad.parquet")
    savemat(tmp_path / "bad.mat", {"h": bad})
    assert "row 2, column 2: inf" in says("bad.mat")
    savemat(tmp_path / "bad.mat", {"h": bad, "g": bad})
    assert "real matrices are g, h (--variable)" in says("bad.mat")
    assert "row 2, column 2: inf" in says("bad.mat", "--variable", "g")
    savemat(tmp_path / "bad.mat", {"h": np.ones((2, 2), dtype=complex), "text": "words"})
    assert "real matrices are none" in says("bad.mat")
    (tmp_path / "bad.mat").write_bytes(b"\x89HDF\r\n")
    assert "save it with -v7" in says("bad.mat")
    for name in ("bad.mat", "bad.parquet"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        assert f"{name}: it is no" in says(name)


def test_a_picture_has_the_channel_and_its_theory() -> None:
    values = 10 * np.log10(filtered_gaussian(np.random.default_rng(2)))
    powers = 10 ** (np.array(TDL_A_DECIBELS) / 10)
    taps = [*zip(np.array(TDL_A_DELAYS) * SPREAD_S, powers / powers.sum(), strict=True)]
    theory = {"taps": taps, "k_factor": 0, "mean_db": 0, "spacing_hz": SPACING_HZ}
    theory |= {"doppler_hz": DOPPLER_HZ, "is_classical": True}
    figure = draw(Table(values, theory), RATE, "tdl").figure
    time, image, distribution, correlation = figure.get_axes()[:4]
    # 25 periods of 100 Hz are 375 slots, of the first, the middle and the last resource.
    assert [len(np.asarray(line.get_ydata())) for line in time.get_lines()] == [375] * 3
    assert np.asarray(image.get_images()[0].get_array()).shape == (RESOURCES, 375)
    assert [line.get_label() for line in distribution.get_lines()] == ["channel", "Rayleigh"]
    assert len(np.asarray(correlation.get_lines()[0].get_ydata())) == RESOURCES
    flat = {**theory, "taps": taps[:1]}
    correlation = draw(Table(values[:, :1], flat), RATE, "flat").figure.get_axes()[3]
    assert [line.get_label() for line in correlation.get_lines()] == ["channel", "J₀²"]


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 1), (200, 2)])
def test_a_channel_without_variation_is_shown(tmp_path: Path, shape: tuple[int, int]) -> None:
    write(tmp_path / "flat.csv", Table(np.full(shape, 7.0)))
    result = airpath("fading", "show", "flat.csv", "--out", "flat.png", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.search(r"mean SNR +7 +-", result.stdout)
    assert (tmp_path / "flat.png").stat().st_size > 10_000
