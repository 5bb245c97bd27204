"""The bar of a build on a terminal."""

import ast
import re

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

TERMINAL = """
import os, pty, re, threading
main, other = pty.openpty()
os.dup2(other, 2)
os.close(other)
written = []
def read():
    # A kernel may drop what a terminal still holds when its other end closes: a mark ends the text.
    while not b"".join(written).endswith(b"<end>"):
        written.append(os.read(main, 1 << 12))
reader = threading.Thread(target=read)
reader.start()
from tf_ipu_shim.plugin import build
tensorflow = build.TensorFlowBuild("9.9.9", "v9.9.9-0-gabc", ("-std=c++17",), ())
build.ensure_built({sources!r}, tensorflow=tensorflow)
os.write(2, b"<end>")
reader.join()
print(ascii(b"".join(written).decode().removesuffix("<end>")))
"""


def test_terminal_has_a_bar(python, tmp_path, monkeypatch):
    """It moves, counts files, says the time, and leaves the first and the last line."""
    slow = tmp_path / "slow-g++"
    slow.write_text('#!/bin/sh\ncase "$*" in *plugin1.cc*) sleep 1;; esac\nexec g++ "$@"\n')
    slow.chmod(0o755)
    sources = [tmp_path / f"source{number}.cc" for number in range(4)]
    for number, path in enumerate(sources):
        path.write_text(f'extern "C" int answer{number}() {{ return {number}; }}\n')
    code = TERMINAL.format(sources=[str(path) for path in sources])
    environment = {
        "CXX": str(slow),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XDG_CACHE_HOME": str(tmp_path / "other"),
        "COLUMNS": "90",
    }
    drawn = ast.literal_eval(python.succeeds("-c", code, environment=environment))
    bars = re.findall(r"\r\[([#.]{24})\] (\d) of 4 files, \d s of about \d+ s", drawn)
    counted = [done for _, done in bars]
    assert len(bars) > 2 and counted == sorted(counted) and "2" in counted
    assert bars[0][0].count("#") <= bars[-1][0].count("#")
    shown = [line.rpartition("\r")[2] for line in drawn.replace("\r\n", "\n").rstrip("\n").split("\n")]
    assert [line[:21] for line in shown] == ["Building the IPU plug", "The IPU plugin is bui"]
