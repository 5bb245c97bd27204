"""`tensorflow.contrib.training.HParams` of TensorFlow 1.15: named, typed hyperparameters."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

_ASSIGNMENT = re.compile(
    r"(?P<name>[A-Za-z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))(?:$|,\s*)"
)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class HParams:
    """Hyperparameters as attributes; each keeps the type that it begins with.

    Args:
        **kwargs: values by name: a number, string, bool, None, or a list of values of one type.

    Raises:
        ValueError: a name is one of this class, or a list is empty.

    Source: `tensorflow.contrib.training.HParams`.

    Example:
        >>> hparams = HParams(learning_rate=0.1, layers=[8, 4], name="small")
        >>> hparams.parse("learning_rate=1,layers=[16,8]").values()
        {'learning_rate': 1.0, 'layers': [16, 8], 'name': 'small'}
    """

    def __init__(self, **kwargs: Any) -> None:
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter.

        Args:
            name: its name.
            value: its value; decides its type.

        Raises:
            ValueError: there is such a name already, or the list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}. Choose another name.")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}. Give it a value.")
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets an existing hyperparameter to a value of its type.

        Args:
            name: its name.
            value: the new one.

        Raises:
            KeyError: the hyperparameter does not exist.
            ValueError: the value is of another type.
        """
        kind, is_list = self._hparam_types[name]
        if is_list != isinstance(value, (list, tuple)):
            expected = "a list" if is_list else "one value"
            raise ValueError(f"Hyperparameter {name} is {value!r}; expected {expected}. Set a value of this type.")
        setattr(self, name, [_cast(name, kind, item) for item in value] if is_list else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if there is one of this name."""
        if self._hparam_types.pop(name, None) is not None:
            delattr(self, name)

    def parse(self, values: str) -> HParams:
        """Sets hyperparameters as a text says, such as `"rate=0.1,layers=[8,4],layers[0]=2"`.

        Args:
            values: the text.

        Returns:
            This object.

        Raises:
            ValueError: the text is malformed, or names an unknown hyperparameter.
        """
        place = 0
        while place < len(values):
            match = _ASSIGNMENT.match(values, place)
            if not match:
                raise ValueError(
                    f"Malformed hyperparameter value: {values[place:]}; expected name=value,... Write it in this form."
                )
            place = match.end()
            self._assign(match)
        return self

    def _assign(self, match: re.Match[str]) -> None:
        name = match["name"]
        if name not in self._hparam_types:
            raise ValueError(
                f"Unknown hyperparameter type for {name}; expected one of {', '.join(self._hparam_types)}. "
                "Remove it, or correct its name."
            )
        kind, _ = self._hparam_types[name]
        if match["list"] is not None:
            self.set_hparam(name, [_read(name, kind, item.strip()) for item in match["list"].split(",")])
        elif match["index"] is not None:
            changed = list(getattr(self, name))
            changed[int(match["index"])] = _read(name, kind, match["value"])
            self.set_hparam(name, changed)
        else:
            self.set_hparam(name, _read(name, kind, match["value"]))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets existing hyperparameters.

        Args:
            values_dict: values by name.

        Returns:
            This object.
        """
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Sets the values of a JSON object and returns this object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """Returns the values as JSON, without functions.

        Args:
            indent: the indentation of `json.dumps`.
            separators: the separators of `json.dumps`.
            sort_keys: the `sort_keys` of `json.dumps`.
        """
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """Returns the values by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a value, or another one if the hyperparameter does not exist."""
        return getattr(self, key) if key in self._hparam_types else default

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in sorted(self.values().items()))})"


def _cast(name: str, kind: type, value: Any) -> Any:
    """Converts a value to a type, if nothing is lost."""
    fits = (
        issubclass(kind, str) == isinstance(value, str)
        and issubclass(kind, bool) == isinstance(value, bool)
        and not (issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral))
        and not (issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number))
    )
    if kind is type(None):
        return value
    if not fits:
        raise ValueError(
            f"Could not cast hyperparameter '{name}' of type '{kind.__name__}' from value {value!r}; expected a "
            "value of this type. Pass one."
        )
    return value if isinstance(value, kind) else kind(value)  # type: ignore[call-arg]


def _read(name: str, kind: type, text: str) -> Any:
    """Parses a string as a value of a type."""
    try:
        if issubclass(kind, bool):
            return _BOOLEANS[text.strip().lower()]
        return text if kind is type(None) else kind(text)  # type: ignore[call-arg]
    except (KeyError, ValueError, TypeError):
        raise ValueError(
            f"Could not parse hyperparameter value: {name}={text} is not of type {kind.__name__}. Pass a value of this "
            "type."
        ) from None
