"""A script in a fork (`forked`) ends, prints and sees what it does as a process of its own (`python`)."""

import json
import signal
import sys

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

PRINTS = """
import json, os, sys

def function(x: int):
    pass

names = ("SET_BY_TEST", "SET_BY_CALL", "TAKEN_OUT", "PYTHONPATH")
print(json.dumps([function.__annotations__["x"] is int, sys.stdin.read(), sys.argv[1:], *map(os.environ.get, names)]))
"""


@pytest.fixture(params=["python", "forked"])
def run(request):
    return request.getfixturevalue(request.param)


def test_what_a_script_sees(run, monkeypatch):
    script = run.script(PRINTS)
    run.succeeds(script)  # the process that forks has started before the variables are set
    monkeypatch.setenv("SET_BY_TEST", "1")
    monkeypatch.setenv("TAKEN_OUT", "2")
    seen = json.loads(run.succeeds(script, "--option", environment={"SET_BY_CALL": "3", "TAKEN_OUT": None}))
    monkeypatch.delenv("SET_BY_TEST")
    assert seen[:-1] == [True, "", ["--option"], "1", "3", None]
    assert json.loads(run.succeeds("-c", PRINTS))[3:-1] == [None, None, "2"]


@pytest.mark.parametrize(
    ("script", "status", "error"),
    [
        ("import sys\nprint('out')\nsys.exit(3)", 3, ""),
        ("print('out')\nraise SystemExit('why')", 1, "why\n"),
        ("print('out')\nassert 1 == 2, 'unequal'", 1, "line 2, in <module>\n"),
        ("print('out', flush=True)\nimport os\nos.abort()", -6, ""),
    ],
)
def test_how_a_script_ends(run, script, status, error):
    process = run(run.script(script))
    assert process.returncode == status and process.stdout == "out\n"
    assert error in process.stderr
    assert ("Traceback" in process.stderr) == ("assert" in script)


REPORTS = """
import json, os, sys
print("error", file=sys.stderr)
print(json.dumps([sys.argv[1:], os.getcwd(), os.environ["SET_BY_CALL"]]))
sys.exit(3)
"""


def test_a_fork_in_the_place_of_an_interpreter(python, interpreter):
    """Other programs start it as they start Python."""
    script = python.script(REPORTS)
    seen = [
        python(script, "--option", executable=executable, environment={"SET_BY_CALL": "1"})
        for executable in (sys.executable, interpreter)
    ]
    for process in seen:
        assert (process.returncode, process.stderr) == (3, "error\n")
        assert json.loads(process.stdout) == [["--option"], str(python.directory), "1"]
    killed = python("-c", "import os; os.abort()", executable=interpreter)
    assert killed.returncode == 128 + signal.SIGABRT
