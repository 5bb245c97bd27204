"""What the refusal of a missing name says: why, and what to do."""

import re

import pytest
from checkout import ROOT

from tf_ipu_shim.names import alternatives, finder, graphcore_names, unsupported_names

pytestmark = pytest.mark.without_tensorflow

COVERAGE = (ROOT / "docs/reference/names/coverage.md").read_text()
ROWS = "".join((ROOT / f"docs/reference/names/coverage_{part}.md").read_text() for part in ("ipu", "keras"))
ROW = re.compile(r"^\| `(?P<module>[\w.]+)` \|.*\| [^|]*missing: (?P<missing>[^|]+) \|$", re.M)


def missing_names():
    """Those of the coverage page, which is generated and which `make lint` holds to what is there."""
    for row in ROW.finditer(ROWS):
        yield from (f"{row['module']}.{name}" for name in re.findall(r"`(\w+)`", row["missing"]))
    nothing = COVERAGE[COVERAGE.index("## Modules with nothing") :]
    yield from re.findall(r"`([\w.]+)` \(\d", nothing)


def test_each_missing_name_has_a_reason_and_says_what_to_do():
    names = list(missing_names())
    assert len(names) > 100, "the page was read"
    assert [
        name
        for name in names
        if not re.search(r"^[a-z].*[.:] .*[A-Z`].*\.$", alternatives.reason_and_alternative(name))
    ] == []


def test_no_reason_is_given_of_names_that_are_not_missing():
    names = list(missing_names())
    idle = [key for key in alternatives._WHY if not any(name.startswith(key) for name in names)]
    idle += [key for key in alternatives._AT_HOME if not any(name.endswith(f".{key}") for name in names)]
    assert idle in ([], ["tensorflow.python.ipu.register_keras_extensions"])


@pytest.mark.parametrize("home", sorted(set(alternatives._AT_HOME.values())))
def test_a_home_is_a_module_that_is_served(home):
    module = home.partition(",")[0]
    assert module.startswith("tensorflow.compat.v1") or finder.own_name(module)


def test_the_refusal_says_it():
    name = "tensorflow.python.ipu.ipu_run_config.IPUConfig"
    assert graphcore_names.attributes("tensorflow.python.ipu.ipu_run_config")["IPUConfig"] == "2.1-3.4"
    assert unsupported_names.describe_absence(name, "2.1-3.4").endswith("Import it from tensorflow.python.ipu.config.")
    assert "does not emulate it yet" in unsupported_names.describe_absence(
        "tensorflow.python.ipu.no_such_thing", "2.1-3.4"
    )
