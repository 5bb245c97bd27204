"""Configurations of a user's own, on the helper class."""
# ruff: noqa: UP006 - scripts of the time write typing.List

import enum
import types
import typing

import pytest

from tf_ipu_shim.configuration.base import _ConfigBase
from tf_ipu_shim.configuration.deprecation import deprecate_config_attribute, deprecate_config_attributes
from tf_ipu_shim.configuration.tree import IPUConfig

pytestmark = pytest.mark.without_tensorflow


class Colour(enum.Enum):
    RED = 0
    BLUE = 1


@deprecate_config_attribute("old", "use new instead")
class Inner(_ConfigBase):
    def __init__(self):
        self.old = 1
        self.new = 2


@deprecate_config_attributes({"ancient": "gone soon"})
class Outer(_ConfigBase):
    """A configuration."""

    def __init__(self):
        """
        Sizes of the layers.
        """
        self.sizes: typing.List[int] = []
        self.colour: Colour = Colour.RED
        self.either: typing.Union[int, str] = 1
        self.plain = 1.5
        """What lies deeper."""
        self.inner = Inner()
        self.ancient = Inner()

    def add(self):
        self.another = 1


def test_types_come_from_annotations_or_defaults():
    config = Outer()
    config.sizes = [1]
    config.either = "text"
    config.colour = Colour.BLUE
    for name, value in [("sizes", ["a"]), ("sizes", 1), ("either", 1.0), ("colour", 1), ("plain", 1)]:
        with pytest.raises(TypeError, match="be of type"):
            setattr(config, name, value)
    assert config.get_attribute_metadata("sizes").type == "typing.List[int]"
    assert config.get_attribute_metadata("either").type == "typing.Union[int, str]"
    assert config.get_attribute_metadata("plain").type == "float"


def test_texts_become_documentation():
    config = Outer()
    assert config.get_attribute_metadata("sizes").__doc__ == "Sizes of the layers."
    assert config.get_attribute_metadata("inner").__doc__ == "What lies deeper."
    assert config.get_attribute_metadata("plain").__doc__ == "No description provided."
    assert Outer.__doc__.startswith("A configuration.\n")
    entries = """
      .. _sizes:
      .. py:attribute:: sizes
         :type: typing.List[int]
         :value: []

         Sizes of the layers.

      .. _colour:
      .. py:attribute:: colour
         :type: Colour
         :value: Colour.RED
"""
    lines = "\n".join(line.rstrip() for line in Outer.__doc__.splitlines())
    assert entries in lines
    inherited = """
         .. _ancient.new:
         .. py:attribute:: ancient.new
            :type: int
            :value: 2

            .. note::

               DEPRECATED: gone soon

            No description provided."""
    assert inherited in lines
    documentation = Outer.__doc__
    Outer()
    assert Outer.__doc__ == documentation


def test_levels_of_attributes():
    config = Outer()
    levels = {path: config.get_attribute_metadata(path)._depth for path in ("sizes", "inner", "inner.new")}
    assert levels == {"sizes": 1, "inner": 1, "inner.new": 2}
    assert config.inner.get_attribute_metadata("new").name == "inner.new"


def test_repr_lists_paths_and_values():
    config = Outer()
    config.colour = Colour.BLUE
    config.inner.new = 7
    first, *lines = repr(config).splitlines()
    assert first == "Outer:"
    assert [line for line in lines if "colour" in line or "inner" in line] == [
        "  colour = Colour.BLUE",
        "  inner.old = 1",
        "  inner.new = 7",
    ]


def test_suggestions_begin_where_the_script_looked():
    class Parent(_ConfigBase):
        def __init__(self):
            self.size1 = 1
            self.deeper = Child()

    class Child(_ConfigBase):
        def __init__(self):
            self.size5 = 1

    with pytest.raises(ValueError, match=r"config\. Did you mean 'size1' or 'deeper.size5'\?"):
        Parent().size5 = 2
    with pytest.raises(ValueError, match=r"config\. Did you mean 'deeper'\?"):
        Parent().deepr  # noqa: B018


class Tuning(_ConfigBase):
    def __init__(self):
        self.level = 3

    def _to_protobuf(self, pb):
        pb.max_scheduler_lookahead_depth = 100 + self.level
        super()._to_protobuf(pb)


class Group(_ConfigBase):
    """Has nothing to write of its own."""

    def __init__(self):
        self.tuning = Tuning()


class TunedConfig(IPUConfig):
    def __init__(self):
        super().__init__()
        self.title: str = "mine"
        self.group = Group()

    def _to_protobuf(self, pb):
        super()._to_protobuf(pb)
        pb.serialization_folder = self.title


def test_each_category_writes_its_part():
    config = TunedConfig()
    config.io_tiles.num_io_tiles = 8
    config.group.tuning.level = 5
    options = config._create_protobuf()
    assert (options.max_scheduler_lookahead_depth, options.serialization_folder) == (105, "mine")
    assert options.num_io_tiles == 8
    assert config.to_dict()["group.tuning.level"] == 5
    with pytest.raises(TypeError, match="Trying to set group.tuning.level to high, but it must be of type int"):
        config.group.tuning.level = "high"


def test_parts_are_written_to_whatever_is_given():
    class Written(_ConfigBase):
        def __init__(self):
            self.value = 2
            self.group = Group()

        def _to_protobuf(self, pb):
            pb.values.append(self.value)
            super()._to_protobuf(pb)

    message = types.SimpleNamespace(values=[])
    Written()._to_protobuf(message)
    assert vars(message) == {"values": [2], "max_scheduler_lookahead_depth": 103}


def test_attributes_are_made_in_the_constructor_only():
    with pytest.raises(ValueError, match="'another' is not a valid attribute"):
        Outer().add()


def test_deprecation_of_an_attribute(warnings):
    config = Outer()
    assert warnings == []
    config.inner.new = 3
    assert warnings == []
    config.inner.old = 3
    assert warnings == ["inner.old has been deprecated: use new instead"]


def test_deprecation_of_a_category_spreads(warnings):
    config = Outer()
    config.ancient.new = 3
    assert warnings == ["ancient.new has been deprecated: gone soon"]
    assert config.get_attribute_metadata("ancient").deprecated
    assert config.get_attribute_metadata("ancient.old").deprecated_msg == "use new instead"


def test_enums_go_through_dictionaries():
    config = Outer()
    config.from_dict({**config.to_dict(), "colour": 1})
    assert config.colour is Colour.BLUE


def test_defaults_must_fit():
    class Wrong(_ConfigBase):
        def __init__(self):
            self.sizes: typing.List[int] = ["a"]

    with pytest.raises(TypeError, match=r"sizes to \['a'\], but it must be of type typing.List\[int\]"):
        Wrong()


def test_union_of_int_and_enum_is_refused():
    class Ambiguous(_ConfigBase):
        def __init__(self):
            self.colour: typing.Union[int, Colour] = 1

    with pytest.raises(ValueError, match="cannot have a Union of int and Colour"):
        Ambiguous()


def test_other_typing_attributes_are_refused():
    class Unsupported(_ConfigBase):
        def __init__(self):
            self.mapping: typing.Dict[str, int] = {}

    with pytest.raises(Exception, match="Unsupported 'typing' attribute"):
        Unsupported()


def test_subclasses_inherit_options():
    class More(Outer):
        def __init__(self):
            super().__init__()
            self.more: bool = False

    config = More()
    config.more = True
    config.sizes = [2]
    with pytest.raises(TypeError, match="be of type bool"):
        config.more = 1
    assert config.get_attribute_metadata("sizes").type == "typing.List[int]"


def test_tuples_of_fixed_length():
    class Pair(_ConfigBase):
        def __init__(self):
            self.pair: typing.Tuple[int, str] = (1, "a")

    config = Pair()
    config.pair = (2, "b")
    for value in [(2,), ("b", 2), [2, "b"]]:
        with pytest.raises(TypeError, match=r"typing.Tuple\[int, str\]"):
            config.pair = value
