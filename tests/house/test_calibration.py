"""The published figures of `validation/model`, and the error bars that are fitted to them."""

import importlib.util
import math

import pytest

from benchmarks.calibration import models, report, rows
from benchmarks.calibration.bars import REGIMES, bar_of, bars_by, left_out
from tf_ipu_shim.cycle_model.error_bars import BARS
from tf_ipu_shim.machine.systems import SYSTEMS

pytestmark = pytest.mark.without_tensorflow


def test_each_row_can_be_run():
    for row in rows.published():
        module = row.program.split()[0]
        assert importlib.util.find_spec(f"benchmarks.published.{module}"), row
        assert row.system in SYSTEMS and row.figure in models.FIGURES and row.regime in REGIMES and row.source, row
        assert row.role in rows.ROLES, row
        assert row.published in (rows.FITS, rows.DOES_NOT_FIT) if row.is_verdict else float(row.published) > 0, row


def test_no_row_is_there_twice():
    keys = [(row.case, row.figure) for row in rows.published()]
    assert len(set(keys)) == len(keys)


def test_a_bar_holds_for_nine_rows_of_ten():
    ratios = [0.5, 0.8, 0.9, 1.0, 1.0, 1.0, 1.1, 1.2, 1.25, 3.0]
    found = bar_of(ratios)
    assert found.factor == pytest.approx(2.0)
    assert found.mean == pytest.approx(math.prod(ratios) ** 0.1)


def test_the_bars_that_are_printed_hold():
    figures = rows.modelled()
    known = [row for row in rows.published() if (row.case, row.figure) in figures]
    assert len(known) == len(rows.published()), "python -m benchmarks.calibration --write"
    blind = bars_by(report.ratios([row for row in known if row.role != rows.FIT], figures, lambda row: row.regime))
    fitted = bars_by(report.ratios([row for row in known if row.role == rows.FIT], figures, lambda row: row.regime))
    for regime in REGIMES:
        bars = [found[regime] for found in (blind, fitted) if regime in found]
        if regime not in ("memory short", "verdict"):  # the one program whose memory is short has its reason
            assert bars and all(bar.factor <= report.PRINTED[regime] for bar in bars), regime
    assert BARS["compute"] <= 1.5


def test_rows_found_afterwards_are_inside_the_bar():
    figures = rows.modelled()
    found = [row for row in rows.published() if row.role == rows.TEST and not row.is_verdict]
    assert found
    for row in found:
        assert report.is_inside(row, figures[row.case, row.figure]), row.case


def test_all_figures_are_of_one_model():
    assert len(rows.stamps()) == 1, "python -m benchmarks.calibration --write"


def test_a_publication_is_left_out():
    assert left_out([("a", 1.0), ("a", 1.1), ("b", 2.0)]) == (2, 3)
    assert left_out([("a", 1.0), ("a", 1.1)]) == (0, 0)


def test_figures_have_the_stamp_of_their_model(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MODELLED", tmp_path / "modelled.csv")
    row = rows.published()[0]
    assert not rows.is_of_this_model(row)
    rows.write_modelled(row, "12")
    assert rows.modelled() == {(row.case, row.figure): "12"}
    assert rows.is_of_this_model(row)
    monkeypatch.setattr(rows, "model_stamp", lambda: "another")
    assert not rows.is_of_this_model(row)


def test_words_change_no_stamp(tmp_path):
    source, table = tmp_path / "model.py", tmp_path / "model.csv"

    def content(text):
        source.write_text(text)
        return rows.content(source)

    code = content('"""A model."""\n\ndef cost():\n    """Returns cycles."""\n    return 1  # measured\n')
    assert content('"""The model."""\ndef cost():\n    return 1\n') == code
    assert content("def cost():\n    return 2\n") != code
    table.write_text("cost\n")
    assert rows.content(table) == b"cost\n"


def test_no_published_verdict_is_contradicted():
    figures = rows.modelled()
    verdicts = [row for row in rows.published() if row.is_verdict]
    assert [row.case for row in verdicts if not row.agrees(figures[row.case, row.figure])] == []
    assert {row.published for row in verdicts} == {rows.FITS, rows.DOES_NOT_FIT}


def test_rows_outside_their_bar_have_a_reason():
    """And no others: a reason is one of the present model."""
    figures = rows.modelled()
    bars = report.fitted_bars(figures)
    for row in rows.published():
        if not row.is_verdict:
            assert report.needs_reason(row, figures[row.case, row.figure], bars) == bool(row.reason), row.case


def test_a_verdict_that_is_close_contradicts_nothing():
    fits = next(row for row in rows.published() if row.published == rows.FITS)
    assert [fits.agrees(verdict) for verdict in (rows.FITS, rows.CLOSE, rows.DOES_NOT_FIT)] == [True, True, False]


def test_the_report_has_ratio_and_bars():
    (row, *_) = [row for row in rows.published() if row.regime == "launch"]
    text = report.to_text([row], {(row.case, row.figure): str(2 * float(row.published))})
    assert text.splitlines()[1].split()[-5:] == ["2.00", "x", "2.00", "x", str(BARS["launch"])]
    header, line = text.split("\n\n")[1].splitlines()
    assert header.split()[:2] == ["regime", "rows"]
    assert line.split() == ["launch", "0", "1", "x", "2.00", "0", "of", "1"]
