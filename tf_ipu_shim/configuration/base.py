"""Defines the base class of `IPUConfig` and its categories, which checks names and types at assignment.

Options are the attributes a constructor creates; later the set is closed. A mistyped name or a value of the wrong
type fails at its assignment, not hours later in a run.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from enum import Enum
from typing import Any, TypeVar

from tf_ipu_shim import spelling
from tf_ipu_shim.configuration import declared, types
from tf_ipu_shim.configuration.metadata import AttributeMetadata, describe
from tf_ipu_shim.configuration.warnings import warn

_Self = TypeVar("_Self", bound="_ConfigBase")


class _ClosedAfterInit(type):
    """Rejects new attributes once the outermost constructor has returned."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        config = super().__call__(*args, **kwargs)
        config._finalize_base_config()
        return config


class _ConfigBase(metaclass=_ClosedAfterInit):
    """Base of configurations and their categories; a subclass creates its options and categories in `__init__`."""

    _deprecations: dict[str, str] = {}
    _attributes: dict[str, AttributeMetadata]
    _open: bool
    _prefix: str
    _depth: int

    def __new__(cls: type[_Self], *args: Any, **kwargs: Any) -> _Self:
        config = super().__new__(cls)
        config.__dict__.update(_attributes={}, _open=True, _prefix="", _depth=0)
        return config

    def _finalize_base_config(self) -> None:
        """Closes the set of attributes; the first time, the class's documentation is made from them."""
        self.__dict__["_open"] = False
        cls = type(self)
        if "_documented" not in cls.__dict__:
            cls._documented = True  # type: ignore[attr-defined]
            entries = [describe(metadata) for _, metadata in self._walk()]
            cls.__doc__ = "\n\n".join(part for part in (cls.__doc__, *entries) if part)

    def _declare(self, name: str, value: Any, annotation: Any = declared.MISSING, doc: str = "") -> None:
        """Creates an option, or a category when `value` is one."""
        deprecated = self._deprecations.get(name)
        doc = doc or "No description provided."
        if isinstance(value, _ConfigBase):
            metadata = AttributeMetadata(name, doc, deprecated_msg=deprecated)
        else:
            annotation = type(value) if annotation is declared.MISSING else annotation
            metadata = AttributeMetadata(
                name, doc, 0, value, deprecated, annotation, types.type_name(annotation), types.checker(annotation)
            )
        self._attributes[name] = metadata
        self._place(name)
        if not isinstance(value, _ConfigBase):
            self._attributes[name].check_type(value)
        self.__dict__[name] = value
        self._place(name)

    def _place(self, name: str, deprecated: str | None = None) -> None:
        """Sets the full path and the parent's deprecation of an attribute and its members."""
        metadata, value = self._attributes[name], self.__dict__.get(name)
        message = metadata.deprecated_msg or deprecated
        path = self._prefix + name
        self._attributes[name] = metadata._replaced(path, self._depth + 1, metadata.default, message)
        if isinstance(value, _ConfigBase):
            value.__dict__.update(_prefix=f"{path}.", _depth=self._depth + 1)
            for child in value._attributes:
                value._place(child, message)

    def _get_full_name(self, attr: str) -> str:
        """Returns the path of an attribute from the outermost configuration; Graphcore's tests call it."""
        return f"{self._prefix}{attr}"

    def _walk(self) -> Iterator[tuple[_ConfigBase, AttributeMetadata]]:
        """Yields every attribute in order of declaration, categories before their members."""
        for name, metadata in self._attributes.items():
            yield self, metadata
            value = self.__dict__.get(name)
            if isinstance(value, _ConfigBase):
                yield from value._walk()

    def _options(self) -> Iterator[tuple[str, _ConfigBase, str]]:
        for owner, metadata in self._walk():
            name = metadata.name.rpartition(".")[2]
            if not isinstance(owner.__dict__.get(name), _ConfigBase):
                yield metadata.name, owner, name

    def _unknown(self, name: str) -> ValueError:
        attributes: dict[str, AttributeMetadata] = self.__dict__.get("_attributes", {})
        message = f"'{name}' is not a valid attribute of this config."
        close = self._suggestions(name) if attributes else []
        if close:
            message += " Did you mean " + " or ".join(f"'{path}'" for path in close) + "?"
        elif attributes:
            message += f" It has: {', '.join(attributes)}."
        return ValueError(message)

    def _suggestions(self, name: str) -> list[str]:
        """Paths of similar attributes: of this category first, then the same name in another one."""
        paths = {entry.name.rpartition(".")[2]: entry.name for _, entry in self._walk()}
        close = spelling.nearest(name, self._attributes)
        suggestions = [self._attributes[close].name] if close else []
        if name in paths:
            return [path for path in suggestions if not paths[name].startswith(f"{path}.")] + [paths[name]]
        elsewhere = spelling.nearest(name, paths)
        return suggestions or ([paths[elsewhere]] if elsewhere else [])

    def _to_protobuf(self, pb: Any) -> None:
        """Makes every category write its options; a subclass writes its own options and calls this."""
        for name in self._attributes:
            value = self.__dict__.get(name)
            if isinstance(value, _ConfigBase):
                value._to_protobuf(pb)

    def __getattr__(self, name: str) -> Any:
        raise self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        metadata = self._attributes.get(name)
        if metadata is None:
            if isinstance(getattr(type(self), name, None), property):
                object.__setattr__(self, name, value)
            elif self._open:
                declaration = declared.read(type(self)).get(name, declared.Declaration(declared.MISSING, ""))
                self._declare(name, value, *declaration)
            else:
                raise self._unknown(name)
        elif metadata.type is None:
            raise Exception(f"{metadata.name} is a category and cannot be assigned to. Assign to the options in it.")
        else:
            metadata.check_type(value)
            if not self._open:
                metadata.warn_if_deprecated()
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self._attributes or name not in self.__dict__:
            raise self._unknown(name)
        metadata = self._attributes[name]
        if metadata.type is None:
            raise Exception(f"{metadata.name} is a category and cannot be deleted. Assign to the options in it.")
        del self.__dict__[name]

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self._attributes})

    def __deepcopy__(self: _Self, memo: dict[int, Any]) -> _Self:
        duplicate = type(self).__new__(type(self))
        memo[id(self)] = duplicate
        duplicate.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return duplicate

    def __str__(self) -> str:
        return "\n".join(f"{path} = {types.shown(getattr(owner, name))}" for path, owner, name in self._options())

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}:", *(f"  {line}" for line in str(self).splitlines())])

    def get_attribute_metadata(self, attr: str) -> AttributeMetadata:
        """Returns the metadata of an option or category.

        Args:
            attr: dotted path from this configuration or category, such as `optimizations.math.fast`.

        Returns:
            Its `AttributeMetadata`.

        Raises:
            ValueError: if the option or category does not exist.

        Source: `tensorflow.python.ipu.config`.

        Example:
            >>> ipu.config.IPUConfig().get_attribute_metadata("io_tiles.num_io_tiles").type
            'int'
        """
        owner: Any = self
        try:
            *categories, name = attr.split(".")
            for category in categories:
                owner = getattr(owner, category)
            if not isinstance(owner, _ConfigBase):
                raise ValueError(
                    f"{'.'.join(categories)} is an option; expected a category, as options have no attributes. Set "
                    "the option itself."
                )
            if name not in owner._attributes:
                raise owner._unknown(name)
            metadata: AttributeMetadata = owner._attributes[name]
            return metadata
        except (AttributeError, ValueError) as error:
            raise ValueError(
                f"Could not get attribute metadata for '{attr}': {error}. Check the option's name."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Returns all options as a flat dictionary from dotted path to value, enums as their integers.

        Source: `tensorflow.python.ipu.config` (SDK 2.4 and newer).

        Example:
            >>> ipu.config.IPUConfig().to_dict()["selection_order"]
            0
        """
        values = ((path, getattr(owner, name)) for path, owner, name in self._options())
        return {path: value.value if isinstance(value, Enum) else value for path, value in values}

    def from_dict(self, dct: dict[str, Any]) -> None:
        """Updates the options from a flat dictionary such as `to_dict` returns.

        Options that the dictionary lacks keep their value, with a warning; keys that are not options are ignored.

        Args:
            dct: dotted path to value, enums as their integers.

        Raises:
            TypeError: if a value is not of the option's type.
            ValueError: if an integer is not a member of the enum.

        Source: `tensorflow.python.ipu.config` (SDK 2.4 and newer).

        Example:
            >>> config = ipu.config.IPUConfig()
            >>> config.from_dict({**config.to_dict(), "io_tiles.num_io_tiles": 32})
            >>> config.io_tiles.num_io_tiles
            32
        """
        for path, owner, name in list(self._options()):
            if path not in dct:
                warn(f"The dictionary has no value for {path}; it keeps {types.shown(getattr(owner, name))}.")
                continue
            value = dct[path]
            enum = types.enum_of(owner._attributes[name].actual_type)
            if enum is not None and type(value) is int:
                value = enum(value)
            current = getattr(owner, name)
            if type(value) is not type(current) or value != current:
                setattr(owner, name, value)

    def to_json(self) -> str:
        """`to_dict` as JSON text.

        Source: `tensorflow.python.ipu.config` (SDK 2.4 and newer).
        """
        return json.dumps(self.to_dict())

    def from_json(self, json_cfg: str) -> None:
        """Like `from_dict`, from JSON text; tuples become lists.

        Args:
            json_cfg: text such as `to_json` returns.

        Raises:
            TypeError: if a value is not of the option's type.
            ValueError: if the text is not a JSON object, or an integer is not a member of the enum.

        Source: `tensorflow.python.ipu.config` (SDK 2.4 and newer).
        """
        try:
            options = json.loads(json_cfg)
        except RecursionError:
            raise ValueError(
                f"The text is nested too deeply for what to_json returns: {json_cfg[:60]!r}"
                ". Pass what to_json() returned."
            ) from None
        if not isinstance(options, dict):
            raise ValueError(
                f"The text is not a JSON object as to_json returns it: {json_cfg[:60]!r}. Pass what to_json() returned."
            )
        self.from_dict(options)
