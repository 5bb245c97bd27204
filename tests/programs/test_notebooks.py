"""Notebooks, run as a reader runs them: every cell, in a kernel of their own."""

import nbclient
import nbformat
import pytest
from checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

TUTORIALS = ROOT / "tutorials"


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """Runs a notebook on a machine of its own; what each cell printed, or shows as HTML."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))

    def run(name):
        notebook = nbformat.read(TUTORIALS / name, as_version=4)
        client = nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
        )
        client.execute()
        cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
        return [
            "".join(
                out.get("text", "") or out.get("data", {}).get("text/html", "")
                for out in cell
                if out.get("name") != "stderr"
            )
            for cell in cells
        ]

    return run


@pytest.mark.slow
def test_will_it_fit(printed):
    *_, refused, shown, table = printed("will_it_fit.ipynb")
    assert "Out of memory on tile 0" in refused and refused.count("weight      layer_") == 2
    assert shown.startswith("<svg") and ">IPU memory report" in shown
    weights, activations = 4 * 8192 * 8192 * 4 / 2**20, 2 * 16 * 8192 * 4 / 2**20
    assert table.split("\n")[:2] == [
        f"{ipus} IPUs: {weights / ipus + activations:7.1f} MiB on IPU 0" for ipus in (2, 4)
    ]
