"""Each command that a page shows with its output prints that output: blocks that begin with `$ `."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import page_blocks
import pytest
from checkout import ROOT

SCRIPTS = pathlib.Path(__file__).parent / "page_scripts"
# Pages that are checked with each change; the others take longer.
IN_CI = (ROOT / "README.md", ROOT / "docs/start/first_script.md")
# Its command builds Poplar's libraries at first use and says so: they are built before.
NEEDS_LIBRARIES = "custom_op.md"
BUILD_LIBRARIES = "python -c 'from tf_ipu_shim.poplar_sdk import toolchain; toolchain.build_libraries()'"
# Outputs of commands that end with another status than 0. Where a page leaves the end out, nothing else tells.
SHOWS_FAILURE = re.compile(r"\b\w+Error\b|^More memory than ", re.M)
# What cannot run here, by page and the beginning of the command, with the reason.
NOT_RUN = {
    ("interrupt.md", "tf-ipu run"): "needs a Ctrl-C: tests/runtime/test_interrupts.py",
    ("installation.md", "tf-ipu run script.py"): "compiles the plugin: tests/plugin/test_progress.py",
    ("installation.md", "mypy"): "needs an installation with stubs: tests/house/test_type_stubs.py",
    ("run_codelets.md", "eval"): "tests/poplar_sdk/test_codelet_page.py runs the example",
    ("run_codelets.md", "make"): "the same",
    ("run_codelets.md", "./main"): "the same",
    ("run_codelets.md", "popc"): "the same",
    ("horovod.md", "mpirun"): "needs MPI: tests/api/test_horovod_jobs.py runs such jobs",
    ("reliability.md", "make soak"): "needs the environments of make: tests/programs/test_soak.py runs the parts",
    ("run_conformance.md", "kit"): "needs the conformance corpus",
    ("run_conformance.md", "PY="): "the same",
}
# A block of commands without output; a line that begins with a space continues the one before.
PROGRAMS = "tf-ipu|gc-\\w+|python3?|pip|make|eval|source|g\\+\\+|kit|sqlite3|ipu_saved_model_cli"
COMMANDS = re.compile(rf"(?:(?:[A-Z_]+=\S+ )*(?:{PROGRAMS})(?= ).*(?:\n +.*)*\n)+")


def is_run(page, shown):
    return not any(page.name == name and shown.command.startswith(begin) for name, begin in NOT_RUN)


def runs(page):
    return [one for one in page_blocks.shown(page) if is_run(page, one)]


WITH_OUTPUT = [page for page in page_blocks.PAGES if runs(page)]


@pytest.mark.subprocess
@pytest.mark.one_version
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=f"{page.parent.name}/{page.stem}", marks=[] if page in IN_CI else pytest.mark.slow)
        for page in WITH_OUTPUT
    ],
)
def test_page(page, tmp_path, forks):
    shutil.copytree(ROOT / "tutorials", tmp_path / "tutorials")
    if (SCRIPTS / page.stem).exists():
        shutil.copytree(SCRIPTS / page.stem, tmp_path, dirs_exist_ok=True)
    for name, text in page_blocks.scripts(page).items():
        (tmp_path / name).write_text(text)
    if page.name == NEEDS_LIBRARIES:
        run(BUILD_LIBRARIES, tmp_path, log_level=2)
    wrong = []
    for shown in runs(page):
        shows_log = any(words in shown.output for words in ("Poplar version", "Executable cache"))
        process = run(shown.command, tmp_path, 0 if shows_log else 2, forks if page in IN_CI else None)
        printed = process.stdout
        missing = page_blocks.differs(shown.output, printed) if shown.output.strip() else None
        if missing is not None:
            wrong.append(f"$ {shown.command}\nshows\n{missing}\nand prints\n{printed}")
        elif process.returncode and not SHOWS_FAILURE.search(shown.output):
            wrong.append(f"$ {shown.command}\nends with status {process.returncode} and prints\n{printed}")
    assert not wrong, "\n".join(wrong)


def run(command, directory, log_level, forks=None):
    """Runs a command in a shell: `stdout` is all that it shows, in order. Pages leave most log lines out.

    With forks, a run of a script does not import TensorFlow again.
    """
    environment = {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "TF_IPU_SHIM_LOCK_DIR": str(directory / "locks"),
        "COLUMNS": "100",
        "TF_CPP_MIN_LOG_LEVEL": str(log_level),
    }
    program, *arguments = command.split()
    if forks and program == "tf-ipu" and arguments[0] == "run":
        changed = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        return forks(directory, "-m", "tf_ipu_shim.cli", *arguments, environment=changed, together=True)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )


@pytest.mark.without_tensorflow
@pytest.mark.parametrize("page", page_blocks.PAGES, ids=lambda page: page.stem)
def test_an_output_stands_below_its_command(page):
    """Blocks without a language are commands, and outputs below `$ COMMAND`; anything else is `text`."""
    for block in page_blocks.blocks(page):
        assert block.startswith(("$ ", "a$ ", "b$ ")) or COMMANDS.fullmatch(block), block


@pytest.mark.without_tensorflow
def test_exceptions_are_on_the_pages():
    pages = {page.name: page for page in page_blocks.PAGES}
    for name, begin in NOT_RUN:
        assert any(shown.command.startswith(begin) for shown in page_blocks.shown(pages[name])), (name, begin)
