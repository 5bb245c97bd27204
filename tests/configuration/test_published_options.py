"""The tree against what Graphcore published: paths, types, defaults, enums, for every SDK that has it."""

import json
import pathlib

import pytest

from tf_ipu_shim.configuration import enums, table, tree, verification
from tf_ipu_shim.machine.environment.effects import EFFECTS

pytestmark = pytest.mark.without_tensorflow

PUBLISHED = json.loads((pathlib.Path(__file__).parent / "published_options.json").read_text())
SDKS = ["2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "3.0", "3.1", "3.2", "3.3", "3.4"]


def version(text):
    return tuple(map(int, text.split(".")))


def published(sdk):
    rows = [row for row in PUBLISHED["options"] if version(row["since"]) <= version(sdk) <= version(row["until"])]
    return [row for row in rows if "category" not in row], [row["path"] for row in rows if "category" in row]


def expected(row, sdk):
    kind, default = row.get("other_lines", {}).get(sdk, (row["type"], row["default"]))
    names = {**vars(enums), **vars(verification)}
    return kind, eval(default, names)


@pytest.mark.parametrize("sdk", SDKS)
def test_tree_is_the_published_one(monkeypatch, sdk):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", sdk)
    config = tree.IPUConfig()
    options, categories = published(sdk)
    metadata = {entry.name: entry for _, entry in config._walk()}
    assert set(metadata) == {row["path"] for row in options} | set(categories)
    for row in options:
        kind, default = expected(row, sdk)
        entry = metadata[row["path"]]
        assert entry.type.replace("typing.", "").replace(" ", "") == kind
        assert type(entry.default) is type(default)
        if row["path"] != "_verified_transfers.key_id_pairs":
            assert entry.default == default
        assert entry.deprecated == row.get("deprecated", False)
        assert entry.__doc__
    for path in categories:
        assert metadata[path].type is None and metadata[path].default is None and metadata[path].__doc__


def test_counts_of_the_last_sdk():
    options, categories = published("3.4")
    assert (len(options), len(categories)) == (57, 15)
    assert len(tree.IPUConfig().to_dict()) == 57


@pytest.mark.parametrize("name", PUBLISHED["enums"])
def test_enums(name):
    enum = getattr(enums, name)
    assert {member.name: member.value for member in enum} == PUBLISHED["enums"][name]


def test_stochastic_rounding_from_bool():
    behaviour = enums.StochasticRoundingBehaviour
    assert behaviour.from_bool(True) is behaviour.ON
    assert behaviour.from_bool(False) is behaviour.OFF


def test_every_option_says_what_it_does_here():
    for option in table.OPTIONS:
        assert option.effect in EFFECTS
        assert option.doc.endswith(".") and option.meaning


def test_effects_list_what_was_set_without_effect():
    config = tree.IPUConfig()
    assert tree.effects(config, changed_only=True) == []
    config.norms.use_stable_statistics = True
    config.auto_select_ipus = 2
    listed = {entry.path: entry.effect for entry in tree.effects(config, changed_only=True)}
    assert listed == {"norms.use_stable_statistics": "no effect", "auto_select_ipus": "changes devices"}
    assert len(tree.effects()) == 57
