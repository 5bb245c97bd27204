"""Names that C++ headers declare in their namespaces: functions, types and constants, without a compiler."""

from __future__ import annotations

import dataclasses
import re

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINITION = re.compile(r"^#define (\w+)\(([^)]*)\)(.*)$", re.MULTILINE)
_CALL = re.compile(r"\b([A-Z]\w+)\(([^()]*)\)")
_DIRECTIVE = re.compile(r"^\s*#.*$", re.MULTILINE)
_TYPE = re.compile(r"\b(?:class|struct|enum class|enum)\s+(\w+)")
_ALIAS = re.compile(r"^using\s+(\w+)\s*=")
_FUNCTION = re.compile(r"\b(\w+)\s*\(")
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "return", "static_assert", "sizeof", "noexcept", "decltype"})


@dataclasses.dataclass(frozen=True)
class Name:
    """A declared name with its namespaces; `inline` if the header has the function's body."""

    text: str
    inline: bool


def _expand(text: str) -> str:
    """Expands the function-like macros that the header itself defines."""
    text = text.replace("\\\n", " ")
    for _ in range(3):
        macros = {name: (parameters, body) for name, parameters, body in _DEFINITION.findall(text)}

        def replacement(match: re.Match[str], known: dict[str, tuple[str, str]] = macros) -> str:
            if match[1] not in known:
                return match[0]
            parameters, body = known[match[1]]
            for parameter, value in zip(parameters.split(","), match[2].split(","), strict=False):
                body = re.sub(rf"\b{parameter.strip()}\b", value.strip(), re.sub(r"\s*##\s*", "", _mark(body)))
                body = body.replace("\0", "")
            return body

        text = "\n".join(line if line.startswith("#") else _CALL.sub(replacement, line) for line in text.splitlines())
    return text


def _mark(body: str) -> str:
    """Keeps the word boundaries of what `##` pastes, until parameters are replaced."""
    return re.sub(r"(\w)##(\w)", "\\1\0\\2", body)


def _closing(text: str, opening: int) -> int:
    """Returns the position after the brace that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    return len(text)


def _without_templates(declaration: str) -> str:
    while (shorter := re.sub(r"<[^<>]*>", "", declaration)) != declaration:
        declaration = shorter
    return declaration


def _declared(declaration: str) -> str | None:
    """Returns the name of one declaration; None for declarations that users do not call."""
    declaration = _without_templates(declaration).strip()
    declaration = declaration.removeprefix("template").strip()
    if not declaration or declaration.startswith(("extern", "friend")) or "operator" in declaration:
        return None
    if found := _ALIAS.match(declaration):
        return found[1]
    if declaration.startswith(("class", "struct", "enum")):
        named = _TYPE.match(declaration)
        return named[1] if named else None
    called = next((name for name in _FUNCTION.findall(declaration) if name not in _NOT_FUNCTIONS), None)
    return None if called is None or called.isupper() or called.startswith("_") else called


def declared_names(header: str) -> list[Name]:
    """Returns the names of a header's text in order, without those of namespaces called `detail` or `internal`.

    Example:
        >>> declared_names("namespace a { int f(int x); inline int g() { return 1; } }")
        [Name(text='a::f', inline=False), Name(text='a::g', inline=True)]
    """
    text = _DIRECTIVE.sub("", _expand(_COMMENT.sub("", header)))
    found: dict[Name, None] = {}
    spaces: list[str] = []
    position = start = parentheses = 0
    while position < len(text):
        character, declaration = text[position], text[start:position].strip()
        parentheses += {"(": 1, ")": -1}.get(character, 0)
        if parentheses:  # a brace in arguments is a default value
            position += 1
            continue
        if character == "{":
            named = re.match(r"(?:inline )?namespace\s*([\w:]*)$", declaration)
            if named:
                spaces.append(named[1])
                position += 1
            else:
                _note(found, spaces, declaration, inline=True)
                position = _closing(text, position)
            start = position
            continue
        if character == "}":
            spaces.pop()
        elif character == ";":
            _note(found, spaces, declaration, inline=False)
        else:
            position += 1
            continue
        position += 1
        start = position
    return list(found)


def _note(found: dict[Name, None], spaces: list[str], declaration: str, *, inline: bool) -> None:
    name = _declared(declaration)
    path = "::".join(spaces)
    if name is None or not path or {"detail", "internal"} & set(path.split("::")):
        return
    if path in ("poplar", "std") or name.endswith(("Impl", "Internal", "State")):
        return  # declared for this header only
    if declaration.startswith(("class", "struct", "enum", "using")):
        inline = True
    found.setdefault(Name(f"{path}::{name}", inline))
