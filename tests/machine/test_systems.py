"""Device ids and orders against the published listings: docs/reference/facts.md, section "Device ids"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_ipu_shim.machine import device_table, selection, systems

pytestmark = pytest.mark.without_tensorflow

PUBLISHED_16 = {
    16: (5, 7),
    17: (4, 6),
    18: (3, 1),
    19: (2, 0),
    20: (13, 15),
    21: (12, 14),
    22: (9, 11),
    23: (10, 8),
    24: (5, 7, 4, 6),
    25: (3, 1, 2, 0),
    26: (13, 15, 12, 14),
    27: (9, 11, 10, 8),
    28: (5, 7, 4, 6, 3, 1, 2, 0),
    29: (13, 15, 12, 14, 9, 11, 10, 8),
    30: (5, 7, 4, 6, 3, 1, 2, 0, 13, 15, 12, 14, 9, 11, 10, 8),
}


@pytest.mark.parametrize("name", ["ipu16", "dss8440"])
def test_sixteen_ipus_as_published(name):
    system = systems.named(name)
    assert {device.id: device.ipus for device in system.devices} == {i: (i,) for i in range(16)} | PUBLISHED_16


def test_the_default_gives_four_ipus_id_24():
    system = systems.current()
    assert (system.name, system.num_ipus, system.chip.name) == ("ipu16", 16, "gc200")
    assert [device.id for device in system.devices_with(4)] == [24, 25, 26, 27]
    assert sorted(system.devices_with(4)[0].ipus) == [4, 5, 6, 7]


def test_dss8440_has_the_first_chips():
    assert systems.named("dss8440").chip.total_bytes == 304 * 2**20


def test_m2000_as_published():
    system = systems.named("m2000")
    assert [system.index_on_board(ipu) for ipu in range(4)] == [3, 2, 1, 0]
    assert {device.id: device.ipus for device in system.devices[4:]} == {4: (0, 1), 5: (2, 3), 6: (0, 1, 2, 3)}


def test_second_machine_of_a_pod_counts_from_the_top_again():
    system = systems.named("pod16")
    assert [(system.board_of(ipu), system.index_on_board(ipu)) for ipu in (3, 4, 15)] == [(0, 0), (1, 3), (3, 0)]


@pytest.mark.parametrize("system", systems.SYSTEMS.values(), ids=lambda system: system.name)
def test_the_rule_of_enumeration(system):
    n = system.num_ipus
    assert len(system.devices) == 2 * n - 1
    assert [device.id for device in system.devices] == list(range(2 * n - 1))
    assert set(system.devices[-1].ipus) == set(range(n))
    size = 1
    while size <= n:
        same_size = system.devices_with(size)
        assert sorted(ipu for device in same_size for ipu in device.ipus) == list(range(n))
        size *= 2


@pytest.mark.parametrize(
    ("name", "ipus", "chip"),
    [
        ("pod4", 4, "gc200"),
        ("pod64", 64, "gc200"),
        ("bow-pod16", 16, "bow"),
        ("bow-pod64", 64, "bow"),
        ("pod128", 128, "gc200"),
        ("bow-pod256", 256, "bow"),
        ("c600", 1, "c600"),
        ("c600x8", 8, "c600"),
        ("pod16:chip=gc2", 16, "gc2"),
        (" POD16 ", 16, "gc200"),
    ],
)
def test_chosen_by_the_environment(monkeypatch, name, ipus, chip):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", name)
    system = systems.current()
    assert (system.num_ipus, system.chip.name) == (ipus, chip)


def test_no_device_has_three_ipus():
    assert systems.current().devices_with(3) == ()
    assert systems.current().devices_with(32) == ()


def test_misspelt_system(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "bow-pod61")
    with pytest.raises(ValueError, match=r"no simulated system 'bow-pod61'\. Did you mean 'bow-pod\d+'\?.*ipu16"):
        systems.current()
    with pytest.raises(ValueError, match=r"'pod[48]'\? Choose one with TF_IPU_SHIM_SYSTEM or --system: ipu"):
        systems.named("pod5")


@pytest.mark.parametrize("name", ["pod16:bow", "pod16:chip=mk3", "pod16:tiles=4", "pod16:"])
def test_misspelt_override(name):
    with pytest.raises(ValueError, match="after the colon comes chip=NAME.*gc2, gc200, bow, c600"):
        systems.named(name)


@pytest.mark.parametrize("device_id", [-1, 31, "0", True])
def test_unknown_device_id(device_id):
    with pytest.raises(ValueError, match="no IPU device with id .* expected 0 to 30"):
        systems.current().device(device_id)


@pytest.mark.parametrize("count", [0, 3, 12])
def test_a_ladder_needs_a_power_of_two(count):
    with pytest.raises(ValueError, match="power of two"):
        device_table.enumerate_devices(range(count))


def test_a_ladder_needs_every_ipu_once():
    with pytest.raises(ValueError, match="numbered 0 to 3, each once"):
        device_table.enumerate_devices((0, 1, 2, 2))


class TestSelectionOrder:
    """Shard k runs at the k-th place given here."""

    def test_published_on_sixteen(self):
        assert selection.shard_order(16, "ZIGZAG") == tuple(range(16))
        assert selection.shard_order(16, "SNAKE")[:8] == (0, 1, 3, 2, 4, 5, 7, 6)
        assert selection.shard_order(16, "HOOF") == (0, 2, 4, 6, 8, 10, 12, 14, 15, 13, 11, 9, 7, 5, 3, 1)

    def test_auto_turns_only_for_pipelines(self):
        assert selection.shard_order(4) == (0, 1, 2, 3)
        assert selection.shard_order(4, pipelined=True) == (0, 1, 3, 2)

    @given(st.integers(1, 70), st.sampled_from(selection.ORDERS), st.booleans())
    def test_every_place_once(self, num_ipus, order, pipelined):
        assert sorted(selection.shard_order(num_ipus, order, pipelined=pipelined)) == list(range(num_ipus))

    def test_on_the_members_of_a_device(self):
        assert selection.shard_ipus((5, 7, 4, 6), "HOOF") == ((5, 4, 6, 7),)
        assert selection.shard_ipus((5, 7, 4, 6), replicas=2) == ((5, 7), (4, 6))

    def test_refused(self):
        with pytest.raises(ValueError, match="no selection order 'SPIRAL'.*AUTO, ZIGZAG, SNAKE, HOOF"):
            selection.shard_order(4, "SPIRAL")
        with pytest.raises(ValueError, match="on 0 IPUs"):
            selection.shard_order(0)
        with pytest.raises(ValueError, match="4 IPUs cannot be divided among 3 replicas"):
            selection.shard_ipus((0, 1, 2, 3), replicas=3)
