"""How the plugin's sources are divided into units that are compiled side by side."""

import pytest

from tf_ipu_shim.plugin import build, compiler, message_headers, translation_units

pytestmark = pytest.mark.one_version


@pytest.mark.parametrize(
    ("cores", "quota", "available", "units"),
    [
        (1, None, 64, 2),
        (4, None, 64, 4),
        (64, None, 64, 8),
        (64, "250000 100000", 64, 3),
        (64, "max 100000", 64, 8),
        (64, None, 8, 5),
        (64, None, 0, 2),
    ],
)
def test_units_by_cores_and_memory(tmp_path, monkeypatch, cores, quota, available, units):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(cores)))
    for name, text in (("_QUOTA", quota), ("_MEMORY", f"MemTotal: 1 kB\nMemAvailable: {available << 20} kB\n")):
        monkeypatch.setattr(translation_units, name, tmp_path / name)
        if text:
            (tmp_path / name).write_text(text)
    assert translation_units.unit_count() == units


@pytest.fixture(scope="module")
def header_folders(tmp_path_factory):
    """Where the headers of the plugin's sources are."""
    messages = tmp_path_factory.mktemp("messages")
    message_headers.write(messages)
    tensorflow = build.TensorFlowBuild.installed()
    sources = list(compiler.SOURCE_DIRECTORY.rglob("*.cc"))
    own, system = compiler.include_directories(sources, tensorflow.compile_flags, messages)
    return [*own, *system]


@pytest.mark.parametrize("count", range(2, 9))
def test_units_have_every_source_once(count, header_folders):
    sources = list(compiler.SOURCE_DIRECTORY.rglob("*.cc"))
    units = translation_units.divide(sources, count, header_folders)
    assert len(units) == count
    assert sorted(source for unit in units for source in unit.sources) == sorted(sources)
    assert max(unit.seconds for unit in units) < 1.2 * min(unit.seconds for unit in units)
    assert len(translation_units.divide(sources[:1], count)) == 1


def test_two_units_share_no_slow_header(header_folders):
    """Sources that need the eager context are in one unit, those that read datasets in the other."""
    units = translation_units.divide(list(compiler.SOURCE_DIRECTORY.rglob("*.cc")), 2, header_folders)
    for name in ("common_runtime/eager/context.h", "kernels/data/iterator_ops.h"):
        assert [any(str(header).endswith(name) for header in unit.headers) for unit in units].count(True) == 1, name
