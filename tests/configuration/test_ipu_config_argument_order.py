"""Positional arguments are taken in the order of the release."""

import pytest

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration.argument_order import argument_order

pytestmark = pytest.mark.without_tensorflow


@argument_order(1, "old name", until=(1, 3))
@argument_order(1, "name - group", since=(1, 4), until=(2, 0))
def taken(x, group=None, name=None, old=None):
    """Takes arguments in three orders."""
    return {"x": x, "group": group, "name": name, "old": old}


class Holder:
    """Takes arguments of a method in two orders."""

    @argument_order(0, "name", until=(2, 0))
    def __init__(self, group=None, name=None):
        self.taken = (group, name)


@pytest.mark.parametrize(
    "release, arguments, expected",
    [
        ("1.3", (1, 2, 3), {"x": 1, "group": None, "name": 3, "old": 2}),
        ("1.4", (1, 2, 3, 4), {"x": 1, "group": 4, "name": 2, "old": None}),
        ("2.0", (1, 2), {"x": 1, "group": None, "name": 2, "old": None}),
        ("2.1", (1, 2, 3), {"x": 1, "group": 2, "name": 3, "old": None}),
        ("", (1, 2, 3), {"x": 1, "group": 2, "name": 3, "old": None}),
        ("1.4", (1,), {"x": 1, "group": None, "name": None, "old": None}),
    ],
)
def test_the_order_is_that_of_the_release(monkeypatch, release, arguments, expected):
    monkeypatch.setenv(sdk.ENVIRONMENT_VARIABLE, release)
    assert taken(*arguments) == expected


def test_self_is_not_counted(monkeypatch):
    monkeypatch.setenv(sdk.ENVIRONMENT_VARIABLE, "1.4")
    assert Holder("a").taken == (None, "a")
    monkeypatch.setenv(sdk.ENVIRONMENT_VARIABLE, "2.1")
    assert Holder("a").taken == ("a", None)


def test_the_argument_itself_can_tell():
    @argument_order(0, "flag size", when=lambda value: isinstance(value, bool))
    def sized(size=1, flag=None):
        return size, flag

    assert sized(True, 4) == (4, True)
    assert sized(4, True) == (4, True)


def test_too_many_and_twice(monkeypatch):
    monkeypatch.setenv(sdk.ENVIRONMENT_VARIABLE, "1.3")
    with pytest.raises(TypeError, match="4 positional arguments were given. Under SDK 1.3 it takes 3 at most"):
        taken(1, 2, 3, 4)
    with pytest.raises(TypeError, match="'name' was given twice"):
        taken(1, 2, 3, name=4)
