"""Which test files `-m` leaves out as a whole, told from their text: these need not be imported."""

from __future__ import annotations

import re

_MARKS = re.compile(r"^pytestmark = (\[\n.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)


def leaves_out(expression: str, text: str) -> bool:
    """Whether `-m EXPRESSION` chooses no test of a file; False where that cannot be told."""
    if not re.fullmatch(r"not \w+( and not \w+)*", expression):
        return False
    unwanted = {word for word in expression.split() if word not in ("not", "and")}
    marks = _MARKS.search(text)
    return marks is not None and not unwanted.isdisjoint(re.findall(r"pytest\.mark\.(\w+)", marks[1]))
