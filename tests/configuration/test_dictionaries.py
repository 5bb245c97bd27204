"""Configurations as dictionaries and JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_ipu_shim.configuration.enums import DeviceConnectionType, MergeRemoteBuffersBehaviour, SelectionOrder
from tf_ipu_shim.configuration.tree import IPUConfig

pytestmark = pytest.mark.without_tensorflow


def test_dictionary_is_flat_with_integers_for_enums():
    config = IPUConfig()
    config.device_connection.type = DeviceConnectionType.PRE_COMPILE
    dictionary = config.to_dict()
    assert len(dictionary) == 57
    assert dictionary["device_connection.type"] == 3
    assert dictionary["optimizations.merge_remote_buffers"] == 2
    assert dictionary["io_tiles.available_memory_proportion"] == 0.9
    assert json.loads(config.to_json()) == dictionary


def test_from_dict_updates_in_place(warnings):
    source = IPUConfig()
    source.selection_order = SelectionOrder.SNAKE
    source.matmuls.poplar_options = {"partialsType": "half"}
    source.auto_select_ipus = (1, 2)
    target = IPUConfig()
    target.from_dict(source.to_dict())
    assert target.to_dict() == source.to_dict()
    assert target.selection_order is SelectionOrder.SNAKE
    assert warnings == []


def test_json_makes_lists_of_tuples():
    source, target = IPUConfig(), IPUConfig()
    source.auto_select_ipus = (1, 2)
    target.from_json(source.to_json())
    assert target.auto_select_ipus == [1, 2]


def test_missing_options_warn_and_unknown_keys_are_ignored(warnings):
    config = IPUConfig()
    config.io_tiles.num_io_tiles = 4
    dictionary = IPUConfig().to_dict()
    del dictionary["io_tiles.num_io_tiles"]
    dictionary["nothing.like.it"] = 1
    config.from_dict(dictionary)
    assert config.io_tiles.num_io_tiles == 4
    assert len(warnings) == 1 and "io_tiles.num_io_tiles" in warnings[0]


def test_only_changed_values_are_assigned(warnings):
    config = IPUConfig()
    config.from_dict(IPUConfig().to_dict())
    assert warnings == []
    config.from_dict({**IPUConfig().to_dict(), "optimizations.enable_fast_math": True})
    assert "optimizations.enable_fast_math has been deprecated" in warnings[0]


def test_wrong_values():
    dictionary = IPUConfig().to_dict()
    with pytest.raises(TypeError, match="Trying to set io_tiles.num_io_tiles to 4.0"):
        IPUConfig().from_dict({**dictionary, "io_tiles.num_io_tiles": 4.0})
    with pytest.raises(TypeError, match="be of type bool"):
        IPUConfig().from_dict({**dictionary, "allow_recompute": 0})
    with pytest.raises(ValueError, match="9 is not a valid"):
        IPUConfig().from_dict({**dictionary, "selection_order": 9})
    with pytest.raises(ValueError, match="Expecting property name"):
        IPUConfig().from_json("{")
    with pytest.raises(ValueError, match="nested too deeply"):
        IPUConfig().from_json("[" * 100_000)
    with pytest.raises(ValueError, match="not a JSON object"):
        IPUConfig().from_json("null")


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "auto_select_ipus": st.one_of(st.integers(0, 64), st.lists(st.integers(1, 64), max_size=4)),
            "selection_order": st.sampled_from([member.value for member in SelectionOrder]),
            "optimizations.merge_remote_buffers": st.sampled_from([m.value for m in MergeRemoteBuffersBehaviour]),
            "convolutions.poplar_options": st.dictionaries(st.text(), st.text(), max_size=3),
            "io_tiles.available_memory_proportion": st.floats(0, 1),
            "serialization_output_folder": st.text(),
            "norms.use_stable_statistics": st.booleans(),
            "optimizations.minimum_remote_tensor_size": st.integers(0, 2**40),
        }
    )
)
def test_any_configuration_survives_json(values):
    source, target = IPUConfig(), IPUConfig()
    source.from_dict({**source.to_dict(), **values})
    target.from_json(source.to_json())
    assert target.to_dict() == source.to_dict()
    assert {path: target.to_dict()[path] for path in values} == values
