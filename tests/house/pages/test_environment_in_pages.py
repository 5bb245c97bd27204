"""Pages name only environment variables that exist, with their defaults."""

import re

import pytest
from checkout import ROOT

from tf_ipu_shim.configuration import environment
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import collective_timeout

pytestmark = pytest.mark.without_tensorflow

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tutorials").glob("*.md")])
KNOWN = {variable.name for variable in environment.VARIABLES}
DEFAULTS = {variable.name: variable.default for variable in environment.VARIABLES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_exist(page):
    named = set(re.findall(r"\bTF_IPU_SHIM_[A-Z_]*[A-Z]\b(?!\w*\*)", page.read_text()))
    assert named <= KNOWN | set(environment.RENAMED if page.name == "CHANGELOG.md" else ())


def test_defaults():
    """The sentences about a default, next to the code's."""
    limit = collective_timeout.ENVIRONMENT_VARIABLE
    collectives = (ROOT / "docs/reference/collectives.md").read_text()
    assert f"`{limit}` seconds ({DEFAULTS[limit]} by default)" in collectives
    faq = (ROOT / "docs/start/faq.md").read_text()
    assert f"{DEFAULTS['TF_IPU_SHIM_SDK'].split(',')[0]}, unless `--sdk` or `TF_IPU_SHIM_SDK` names another one" in faq
    system = systems.named(systems.DEFAULT)
    assert "A server of 16 GC200, unless" in faq and (system.num_ipus, system.chip.name) == (16, "gc200")
