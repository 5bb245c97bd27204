"""Configurations of a user's own, on the helper class."""
# ruff: noqa: UP006 - scripts of the time write typing.List

import enum
import typing

import pytest

from tf_ipu_shim.configuration.base import _ConfigBase
from tf_ipu_shim.configuration.deprecation import deprecate_config_attribute, deprecate_config_attributes


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
        self.sizes: typing.List[int] = []
        """
        Sizes of the layers.
        """
        self.colour: Colour = Colour.RED
        self.either: typing.Union[int, str] = 1
        self.plain = 1.5
        self.inner = Inner()
        """What lies deeper."""
        self.ancient = Inner()

    def add(self):
        self.another = 1


def test_types_come_from_annotations_or_defaults():
    config = Outer()
    config.sizes = [1]
    config.either = "text"
    config.colour = Colour.BLUE
    for name, value in [("sizes", ["a"]), ("sizes", 1), ("either", 1.0), ("colour", 1), ("plain", 1)]:
        with pytest.raises(TypeError, match="to be of type"):
            setattr(config, name, value)
    assert config.get_attribute_metadata("sizes").type == "typing.List[int]"
    assert config.get_attribute_metadata("either").type == "typing.Union[int, str]"
    assert config.get_attribute_metadata("plain").type == "float"


def test_texts_become_documentation():
    config = Outer()
    assert config.get_attribute_metadata("sizes").__doc__ == "Sizes of the layers."
    assert config.get_attribute_metadata("inner").__doc__ == "What lies deeper."
    assert Outer.__doc__.startswith("A configuration.") and "sizes: typing.List[int] = []" in Outer.__doc__


def test_attributes_are_made_in_the_constructor_only():
    with pytest.raises(ValueError, match="'another' is not a valid attribute"):
        Outer().add()


def test_deprecation_of_an_attribute(warnings):
    config = Outer()
    assert warnings == []
    config.inner.new = 3
    assert warnings == []
    config.inner.old = 3
    assert warnings == ["inner.old is deprecated: use new instead"]


def test_deprecation_of_a_category_spreads(warnings):
    config = Outer()
    config.ancient.new = 3
    assert warnings == ["ancient.new is deprecated: gone soon"]
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

    with pytest.raises(TypeError, match=r"sizes to \['a'\], but it needs to be of type typing.List\[int\]"):
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
    with pytest.raises(TypeError, match="to be of type bool"):
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
