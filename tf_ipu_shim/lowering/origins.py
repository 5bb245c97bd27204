"""Which traced function a function of the lowering was made of, and names for new ones."""

from __future__ import annotations

from collections.abc import Iterable


class Origins:
    """Names the functions that passes make of others, and remembers what they were made of.

    A name says nothing by itself: a script's own function may be called `step_seeded` or `train_chunk`.

    Args:
        names: of the functions that there are already; no new one gets such a name.

    Example:
        >>> origins = Origins(["step", "step_seeded"])
        >>> origins.derive("step", "_seeded")
        'step_seeded_'
        >>> origins.traced("step_seeded_"), origins.traced("step_seeded")
        ('step', 'step_seeded')
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._taken = set(names)
        self._derived: dict[tuple[str, str], str] = {}
        self._origins: dict[str, str] = {}

    def derive(self, function: str, suffix: str) -> str:
        """A name for what a pass makes of a function.

        Args:
            function: the function's name.
            suffix: what the pass calls its work; the same one again gives the same name.
        """
        if (function, suffix) not in self._derived:
            name = function + suffix
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self._derived[function, suffix] = name
            self._origins[name] = self.traced(function)
        return self._derived[function, suffix]

    def traced(self, function: str) -> str:
        """The traced function that a function was made of; the function itself where no pass made it."""
        return self._origins.get(function, function)
