"""`TF_POPLAR_FLAGS`: docs/reference/facts.md, section "TF_POPLAR_FLAGS"."""

import dataclasses
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_ipu_shim.errors import UnknownFlagError
from tf_ipu_shim.machine.environment import effects, flags

pytestmark = pytest.mark.without_tensorflow

PUBLISHED = (
    "help use_synthetic_data synthetic_data_categories synthetic_data_initializer use_ipu_model log_cycle_count "
    "while_loop_brute_force_max_trip_count max_compilation_threads max_infeed_threads executable_cache_path "
    "dump_schedule_as_dot tensor_map_file_path fallback_scheduler allow_nans null_data_feed show_progress_bar "
    "use_on_demand on_demand_device_poll_time on_demand_device_timeout ipu_model_tiles sync_replica_start "
    "enable_hlo_verifier disable_poplar_version_check"
).split()
PUBLISHED_DEFAULTS = {
    "while_loop_brute_force_max_trip_count": 128,
    "max_compilation_threads": -1,
    "max_infeed_threads": -1,
    "on_demand_device_poll_time": 1000,
    "on_demand_device_timeout": 3_600_000,
    "ipu_model_tiles": -1,
    "show_progress_bar": "auto",
    "use_ipu_model": False,
    "executable_cache_path": "",
}
BOOLEANS = [f.name for f in dataclasses.fields(flags.PoplarFlags) if f.default is True or f.default is False]
NUMBERS = [f.name for f in dataclasses.fields(flags.PoplarFlags) if type(f.default) is int]


def test_all_published_flags_and_no_other():
    names = [field.name for field in dataclasses.fields(flags.PoplarFlags)]
    assert sorted(set(names) - {"without_effect"}) == sorted(PUBLISHED)


def test_published_defaults():
    parsed = flags.parse("")
    assert {name: getattr(parsed, name) for name in PUBLISHED_DEFAULTS} == PUBLISHED_DEFAULTS


def test_read_late(monkeypatch):
    assert not flags.current().use_ipu_model
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    assert flags.current().use_ipu_model
    assert flags.current() is flags.current()
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model=false --ipu_model_tiles=16")
    assert (flags.current().use_ipu_model, flags.current().ipu_model_tiles) == (False, 16)
    monkeypatch.delenv("TF_POPLAR_FLAGS")
    assert flags.current() == flags.PoplarFlags()


@given(
    st.dictionaries(st.sampled_from(BOOLEANS), st.booleans()),
    st.dictionaries(st.sampled_from(NUMBERS), st.integers(-(2**63), 2**63 - 1)),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
)
def test_what_is_written_is_read(booleans, numbers, path):
    words = [f"--{name}={str(value).lower()}" for name, value in booleans.items()]
    words += [f"--{name}={value}" for name, value in numbers.items()]
    words.append(f"--executable_cache_path={shlex.quote(path)}")
    parsed = flags.parse(" ".join(words))
    expected = {**booleans, **numbers, "executable_cache_path": path}
    assert {name: getattr(parsed, name) for name in expected} == expected


def test_a_bare_name_switches_on_and_the_last_one_counts():
    assert flags.parse("--allow_nans").allow_nans
    assert flags.parse("--ipu_model_tiles=4 --ipu_model_tiles=8").ipu_model_tiles == 8
    assert not flags.parse("--allow_nans --allow_nans=false").allow_nans


def test_flags_in_a_file(tmp_path, monkeypatch):
    file = tmp_path / "flags"
    file.write_text("--use_ipu_model\n--ipu_model_tiles=4\n")
    monkeypatch.setenv("TF_POPLAR_FLAGS", str(file))
    assert flags.current().ipu_model_tiles == 4
    file.write_text("--ipu_model_tiles=5")
    assert flags.current().ipu_model_tiles == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--use_ipu_mode", r"unknown flag --use_ipu_mode\. Did you mean --use_ipu_model\? `tf-ipu env` lists the "),
        ("--zzz=1", r"unknown flag --zzz\. `tf-ipu env` lists the flags\.$"),
        ("--use-ipu-model", r"Did you mean --use_ipu_model"),
        ("--without_effect=x", r"unknown flag --without_effect"),
        ("--use_ipu_model=maybe", r"--use_ipu_model=maybe is wrong: it needs true or false"),
        ("--use_ipu_model=1", "needs true or false"),
        ("--ipu_model_tiles", r"--ipu_model_tiles is wrong: it needs a whole number"),
        ("--ipu_model_tiles=", "needs a whole number"),
        ("--ipu_model_tiles=1_0", "needs a whole number"),
        ("--ipu_model_tiles=9223372036854775808", "needs a whole number"),
        ("--ipu_model_tiles 4", r"'4', which is not of the form --name=value"),
        ("-use_ipu_model", "not of the form"),
        ("--", "not of the form"),
        ("--=3", "not of the form"),
        ("--executable_cache_path", "needs a value"),
        ("--executable_cache_path='a b", "cannot be split into flags: No closing quotation"),
        ("--show_progress_bar=yes", "needs true, false or auto"),
        ("--synthetic_data_categories=infeed,weights", r"=weights is wrong.*infeed, outfeed, seed, hostembedding, par"),
        ("--use_synthetic_data --synthetic_data_initializer=zeros", "random, uniform, normal or a whole number"),
        ("--synthetic_data_initializer=random", "needs use_synthetic_data or synthetic_data_categories"),
        ("--save_vertex_graph=/x", "has no vertices.*leave it out"),
        ("no_such_file_of_flags", "must name a readable text file of flags"),
    ],
)
def test_refused(text, message):
    with pytest.raises(UnknownFlagError, match=message):
        flags.parse(text)


def test_flags_that_later_sdks_ignore_are_recorded():
    assert flags.parse("--save_oom_profiler=/x --add_all_reduce_copies").without_effect == (
        "save_oom_profiler",
        "add_all_reduce_copies",
    )


def test_an_unset_shell_variable_leaves_a_path_unset():
    assert flags.parse("--executable_cache_path=").executable_cache_path == ""


class TestSyntheticData:
    """Which data is made up on the IPU."""

    def test_all_of_it(self):
        parsed = flags.parse("--use_synthetic_data --synthetic_data_categories=seed --synthetic_data_initializer=-3")
        assert all(parsed.is_synthetic(category) for category in flags.SYNTHETIC_DATA_CATEGORIES)
        assert parsed.synthetic_data_initializer == "-3"

    def test_some_of_it(self):
        parsed = flags.parse("--synthetic_data_categories='infeed, outfeed' --synthetic_data_initializer=random")
        assert {c for c in flags.SYNTHETIC_DATA_CATEGORIES if parsed.is_synthetic(c)} == {"infeed", "outfeed"}

    def test_no_such_category(self):
        with pytest.raises(ValueError, match="no synthetic data category 'weights'.*infeed"):
            flags.PoplarFlags().is_synthetic("weights")


def test_compilation_key_holds_what_the_published_hash_holds():
    assert {name for name, _ in flags.PoplarFlags().compilation_key} == {
        "use_synthetic_data",
        "synthetic_data_categories",
        "synthetic_data_initializer",
        "use_ipu_model",
        "while_loop_brute_force_max_trip_count",
        "fallback_scheduler",
        "allow_nans",
        "log_cycle_count",
        "sync_replica_start",
        "ipu_model_tiles",
        "disable_poplar_version_check",
    }
    assert hash(flags.parse("--synthetic_data_categories=seed").compilation_key)
    assert flags.parse("--executable_cache_path=/x").compilation_key == flags.PoplarFlags().compilation_key
    assert flags.parse("--allow_nans").compilation_key != flags.PoplarFlags().compilation_key


def test_times_in_seconds():
    assert flags.PoplarFlags().poll_seconds == 1.0
    assert flags.parse("--on_demand_device_poll_time=5").poll_seconds == 0.1
    assert flags.parse("--on_demand_device_timeout=1500").timeout_seconds == 1.5


def test_help_speaks_of_every_flag():
    text = flags.help_text()
    assert all(f"  --{name}  (" in text for name in PUBLISHED)
    assert "default 128" in text
    assert "milliseconds" in text
    assert max(map(len, text.splitlines())) <= 120
    assert flags.parse("--help").help


def test_help_is_printed_when_the_flags_are_read(monkeypatch, capsys):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "")
    flags.current()
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--help --use_ipu_model")
    assert flags.current().use_ipu_model
    assert capsys.readouterr().err == flags.help_text() + "\n"
    flags.current()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("text", "counts"), [("2.9", "2"), ("-2.9", "-2"), ("7", "7"), ("normal", "normal"), ("", "")])
def test_of_an_initializer_the_integer_part_counts(text, counts):
    parsed = flags.parse(f"--use_synthetic_data --synthetic_data_initializer={text}")
    assert parsed.synthetic_data_initializer == counts


def test_every_flag_says_what_it_changes():
    entries = {entry.name: entry for entry in flags.effects()}
    assert set(PUBLISHED) | set(flags.RETIRED) == set(entries)
    assert all(entry.effect in effects.EFFECTS and entry.meaning for entry in entries.values())


def test_flags_that_were_given_and_change_nothing():
    parsed = flags.parse("--log_cycle_count=3 --save_oom_profiler=/x --use_ipu_model --executable_cache_path=/y")
    assert flags.set_flags_without_effect(parsed) == {
        "log_cycle_count": 3,
        "save_oom_profiler": True,
    }
    assert flags.set_flags_without_effect(flags.parse("")) == {}
