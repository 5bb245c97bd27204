"""Notebooks: each cell, run as a reader runs it in a kernel, has the outputs that are in the file."""

import nbformat
import pytest
from checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

NOTEBOOK = ROOT / "tutorials" / "will_it_fit.ipynb"


def outputs(notebook):
    """What each cell of code printed, and its result."""
    return [
        "".join(out.get("text", "") + "".join(out.get("data", {}).values()) for out in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_file_has_outputs():
    *_, refused, shown, table = outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert "Out of memory on tile 0" in refused and refused.count("weight      layer_") == 2
    assert shown.startswith("<svg") and ">IPU memory report" in shown
    weights, activations = 4 * 8192 * 8192 * 4 / 2**20, 2 * 16 * 8192 * 4 / 2**20
    assert table.split("\n")[:2] == [
        f"{ipus} IPUs: {weights / ipus + activations:7.1f} MiB on IPU 0" for ipus in (2, 4)
    ]


@pytest.mark.slow
def test_outputs_are_those_of_a_run(monkeypatch, tmp_path):
    """`python tools/notebook_outputs.py tutorials/will_it_fit.ipynb` writes them again."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    from notebook_outputs import execute

    assert outputs(execute(NOTEBOOK)) == outputs(nbformat.read(NOTEBOOK, as_version=4))
