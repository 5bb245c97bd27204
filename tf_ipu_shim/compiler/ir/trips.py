"""What the number of iterations of a loop follows from."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A condition of a loop that counts up by ones: a loop variable is below a limit.

    Args:
        counter: the number of the loop variable.
        limit: the number of the one that it is compared with, which stays as it is; -1 for a constant.
        constant: that.
        type: the `DataType` of both.
    """

    counter: int
    limit: int
    constant: int
    type: int


class Trips(NamedTuple):
    """The number of iterations of a loop: the least of all that is said here.

    Args:
        most: a number, where one is known; -1 for none.
        limits: what says the others when the loop begins.
    """

    most: int
    limits: tuple[Limit, ...]
