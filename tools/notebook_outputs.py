"""Runs a notebook and writes the outputs of its cells into it.

python tools/notebook_outputs.py tutorials/will_it_fit.ipynb
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import tempfile
from typing import Any

import nbclient
import nbformat

_CELL = re.compile(r"/\S+/ipykernel_\d+/\d+\.py")  # the file that a kernel names for a cell
_KINDS = ("text/html", "text/plain")  # of a result; the first that a cell has is kept


def execute(path: pathlib.Path, seconds: int = 300) -> Any:
    """Returns a notebook with its outputs, as a reader sees them: without log lines.

    Args:
        path: the path of the notebook.
        seconds: the seconds that a cell may take.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = nbclient.NotebookClient(notebook, timeout=seconds, kernel_name="python3", resources=resources)
        # All IPUs are free, whatever else runs on the machine.
        client.execute(env={**os.environ, "TF_IPU_SHIM_LOCK_DIR": f"{folder}/locks", "TF_CPP_MIN_LOG_LEVEL": "3"})
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = _outputs(cell.outputs)
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    return notebook


def _outputs(outputs: list[Any]) -> list[Any]:
    """Returns what a cell prints as one stream, then its result in one format."""
    printed = "".join(one["text"] for one in outputs if one.get("name") == "stdout")
    kept = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
    for one in outputs:
        kinds = [kind for kind in _KINDS if kind in one.get("data", {})]
        if kinds:
            data = {kinds[0]: _CELL.sub("cell.py", one["data"][kinds[0]])}
            kept.append(nbformat.v4.new_output("execute_result", data=data, execution_count=one.get("execution_count")))
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebook", type=pathlib.Path)
    chosen = parser.parse_args().notebook
    nbformat.write(execute(chosen), chosen)
