"""Reading and writing options: exact types, unknown names, categories, copies."""

import copy
import enum
import pickle
import re

import pytest

from tf_ipu_shim.configuration.enums import DeviceConnectionType, SelectionOrder, StochasticRoundingBehaviour
from tf_ipu_shim.configuration.metadata import AttributeMetadata
from tf_ipu_shim.configuration.tree import IPUConfig

pytestmark = pytest.mark.without_tensorflow


class IntSubclass(int):
    pass


class StrSubclass(str):
    pass


class ListSubclass(list):
    pass


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("auto_select_ipus", 4),
        ("auto_select_ipus", [1, 2]),
        ("auto_select_ipus", (1, 2)),
        ("auto_select_ipus", ListSubclass([1])),
        ("select_ipus", []),
        ("selection_order", SelectionOrder.HOOF),
        ("serialization_output_folder", "folder"),
        ("compilation_poplar_options", {"a": "b"}),
        ("io_tiles.available_memory_proportion", 1.0),
        ("device_connection.type", DeviceConnectionType.PRE_COMPILE),
        ("experimental.multi_replica_distribution.process_count", 2),
        ("floating_point_behaviour.esr", StochasticRoundingBehaviour.ON),
    ],
)
def test_right_types(path, value):
    config = IPUConfig()
    owner, name = _owner(config, path)
    setattr(owner, name, value)
    assert getattr(owner, name) is value


@pytest.mark.parametrize(
    ("path", "value", "type_name"),
    [
        ("auto_select_ipus", True, "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"),
        ("auto_select_ipus", [1, 2.0], "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"),
        ("auto_select_ipus", (True,), "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"),
        ("auto_select_ipus", "4", "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"),
        ("select_ipus", None, "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"),
        ("select_ipus", IntSubclass(1), "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"),
        ("allow_recompute", 1, "bool"),
        ("selection_order", 0, "SelectionOrder"),
        ("selection_order", DeviceConnectionType.ALWAYS, "SelectionOrder"),
        ("serialization_output_folder", StrSubclass("x"), "str"),
        ("compilation_poplar_options", [("a", "b")], "dict"),
        ("io_tiles.available_memory_proportion", 1, "float"),
        ("io_tiles.num_io_tiles", 1.0, "int"),
        ("floating_point_behaviour.esr", True, "StochasticRoundingBehaviour"),
    ],
)
def test_wrong_types(path, value, type_name):
    config = IPUConfig()
    owner, name = _owner(config, path)
    before = getattr(owner, name)
    message = f"Trying to set {path} to {value}, but it must be of type {type_name}."
    with pytest.raises(TypeError, match=re.escape(message)):
        setattr(owner, name, value)
    assert getattr(owner, name) is before


def test_members_of_an_enumeration_are_named():
    config = IPUConfig()
    with pytest.raises(
        TypeError, match="a str. Pass one of DeviceConnectionType.ALWAYS, .*DeviceConnectionType.NEVER.$"
    ):
        config.device_connection.type = "ON_DEMAND"
    with pytest.raises(TypeError, match="a bool. Pass one of StochasticRoundingBehaviour.OFF, "):
        config.floating_point_behaviour.esr = True


def test_numpy_scalars_are_refused():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="be of type int"):
        IPUConfig().io_tiles.num_io_tiles = numpy.int64(4)


def test_sdk_2_1_wants_lists_proper(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    config = IPUConfig()
    config.auto_select_ipus = [1]
    with pytest.raises(TypeError, match="be of type"):
        config.auto_select_ipus = ListSubclass([1])


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("auto_select_ipu", "'auto_select_ipus'"),
        ("select_ipu", "'select_ipus'"),
        ("optimisations", "'optimizations'"),
        ("num_io_tiles", "'io_tiles.num_io_tiles'"),
    ],
)
def test_unknown_names_are_value_errors_with_a_suggestion(name, suggestion):
    config = IPUConfig()
    message = f"'{name}' is not a valid attribute of this config. Did you mean {suggestion}?"
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(config, name)
    with pytest.raises(ValueError, match=re.escape(message)):
        setattr(config, name, 1)


def test_suggestions_name_the_full_path():
    with pytest.raises(ValueError, match="Did you mean 'experimental.multi_replica_distribution.process_count'"):
        IPUConfig().experimental.multi_replica_distribution.process_counts = 1


def test_hasattr_and_getattr_with_default_propagate():
    config = IPUConfig()
    with pytest.raises(ValueError, match="not a valid attribute"):
        hasattr(config, "nothing_like_it")
    with pytest.raises(ValueError, match="not a valid attribute"):
        getattr(config, "nothing_like_it", None)


def test_categories_are_read_only():
    config = IPUConfig()
    with pytest.raises(Exception, match="^io_tiles is a category and cannot be") as caught:
        config.io_tiles = 4
    assert type(caught.value) is Exception
    with pytest.raises(Exception, match="^norms.experimental is a category and cannot be"):
        config.norms.experimental = None


def test_deleted_options_are_unknown():
    config = IPUConfig()
    del config.allow_recompute
    with pytest.raises(ValueError, match="'allow_recompute' is not a valid attribute"):
        _ = config.allow_recompute
    with pytest.raises(ValueError, match="is not a valid attribute"):
        del config.nothing_like_it
    config.allow_recompute = True
    assert config.allow_recompute is True
    with pytest.raises(Exception, match="^matmuls is a category and cannot be deleted"):
        del config.matmuls
    assert config.matmuls.poplar_options == {}


@pytest.mark.parametrize(("value", "count"), [(-1, -1), ([1, -2], -2), ((-3,), -3)])
def test_numbers_of_ipus_below_zero_are_named(value, count):
    config = IPUConfig()
    config.auto_select_ipus = value
    with pytest.raises(ValueError, match=f"no device can have {count} IPUs"):
        config.configure_ipu_system()


def test_deprecated_option_warns_on_writing_only(warnings):
    config = IPUConfig()
    assert config.optimizations.enable_fast_math is False
    assert warnings == []
    config.optimizations.enable_fast_math = True
    assert config.optimizations.enable_fast_math is True
    assert config.optimizations.math.fast is False
    (message,) = warnings
    assert "optimizations.enable_fast_math has been deprecated" in message and "optimizations.math.fast" in message


def test_defaults_are_fresh_and_shared_with_metadata():
    one, two = IPUConfig(), IPUConfig()
    one.matmuls.poplar_options["a"] = "b"
    assert two.matmuls.poplar_options == {}
    assert one.get_attribute_metadata("matmuls.poplar_options").default is one.matmuls.poplar_options


def test_equality_is_identity():
    config = IPUConfig()
    assert config == config
    assert config != IPUConfig()


def test_full_names():
    config = IPUConfig()
    for path in ("auto_select_ipus", "io_tiles.num_io_tiles", "optimizations.math.fast"):
        owner, name = config, path.rpartition(".")[2]
        for category in path.split(".")[:-1]:
            owner = getattr(owner, category)
        assert owner._get_full_name(name) == path == config.get_attribute_metadata(path).name


def test_deepcopy():
    config = IPUConfig()
    config.convolutions.poplar_options = {"partialsType": "half"}
    duplicate = copy.deepcopy(config)
    assert duplicate.to_dict() == config.to_dict()
    duplicate.convolutions.poplar_options["partialsType"] = "float"
    duplicate.io_tiles.num_io_tiles = 8
    assert config.convolutions.poplar_options == {"partialsType": "half"}
    assert config.io_tiles.num_io_tiles == 0
    with pytest.raises(ValueError, match="Did you mean 'io_tiles.num_io_tiles'"):
        duplicate.io_tiles.num_io_tile = 1
    metadata = duplicate.get_attribute_metadata("matmuls.poplar_options")
    assert metadata.default is duplicate.matmuls.poplar_options


def test_copy_and_pickle_fail():
    with pytest.raises(ValueError, match="not a valid attribute"):
        copy.copy(IPUConfig())
    # Python 3.10 asks for `__getstate__`, which later ones have on every object.
    with pytest.raises((AttributeError, pickle.PicklingError, ValueError), match="local object|__getstate__"):
        pickle.dumps(IPUConfig())


def test_str_and_repr():
    config = IPUConfig()
    lines = str(config).splitlines()
    assert len(lines) == 57
    assert "selection_order = SelectionOrder.AUTO" in lines
    assert "device_connection.version = ''" in lines
    assert "io_tiles.available_memory_proportion = 0.9" in lines
    assert repr(config).splitlines()[0] == "IPUConfig:"
    assert repr(config).splitlines()[1:] == [f"  {line}" for line in lines]


def test_class_documentation_lists_the_options():
    IPUConfig()
    entry = """\
         .. _optimizations.merge_infeed_io_copies:
         .. py:attribute:: optimizations.merge_infeed_io_copies
            :type: bool
            :value: True
"""
    assert entry in IPUConfig.__doc__


def test_metadata():
    config = IPUConfig()
    metadata = config.get_attribute_metadata("device_connection.type")
    assert (metadata.name, metadata.type) == ("device_connection.type", "DeviceConnectionType")
    assert metadata.actual_type is DeviceConnectionType
    assert metadata.default is DeviceConnectionType.ALWAYS
    assert not metadata.deprecated and metadata.deprecated_msg is None
    assert config.device_connection.get_attribute_metadata("type").name == "device_connection.type"
    assert config.get_attribute_metadata("experimental.multi_replica_distribution").type is None
    metadata.check_type(DeviceConnectionType.NEVER)
    with pytest.raises(TypeError, match="Trying to set device_connection.type to 0"):
        metadata.check_type(0)


@pytest.mark.parametrize("path", ["nope", "io_tiles.nope", "nope.io_tiles", "allow_recompute.x", "", "io_tiles."])
def test_metadata_of_unknown_paths(path):
    with pytest.raises(ValueError, match=f"^Could not get attribute metadata for '{re.escape(path)}'"):
        IPUConfig().get_attribute_metadata(path)


def test_metadata_can_be_made_by_hand(warnings):
    metadata = AttributeMetadata("a.b", "text", 1, 0, "use c", int, check_type_fn=lambda value: type(value) is int)
    assert (metadata.type, metadata.actual_type, metadata.__doc__, metadata.deprecated) == ("int", int, "text", True)
    metadata.warn_if_deprecated()
    assert warnings and "use c" in warnings[0]


def test_esr_by_sdk(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.3")
    config = IPUConfig()
    config.floating_point_behaviour.esr = True
    with pytest.raises(TypeError, match="be of type bool"):
        config.floating_point_behaviour.esr = StochasticRoundingBehaviour.ON
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    config = IPUConfig()
    config.floating_point_behaviour.esr = True
    config.floating_point_behaviour.esr = StochasticRoundingBehaviour.ON
    with pytest.raises(TypeError, match=re.escape("typing.Union[StochasticRoundingBehaviour, bool]")):
        config.floating_point_behaviour.esr = 1


def _owner(config, path):
    *categories, name = path.split(".")
    for category in categories:
        config = getattr(config, category)
    return config, name


def test_enum_members_are_checked_by_class():
    class SelectionOrder(enum.Enum):
        AUTO = 0

    with pytest.raises(TypeError, match="be of type SelectionOrder"):
        IPUConfig().selection_order = SelectionOrder.AUTO
