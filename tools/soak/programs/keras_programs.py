"""Random Keras models of the tests' generator by number, each on an IPU and by stock Keras.

`python -m soak.programs.keras_programs NUMBER` prints one of them and runs it.
"""

from __future__ import annotations

import importlib
import pathlib
import random
import sys
import traceback
from collections.abc import Iterator
from typing import Any

_SHARED = pathlib.Path(__file__).parents[3] / "tests" / "shared"
_SEED = 1_000_003  # of model 0


def _generator() -> Any:
    folders = [str(_SHARED), str(_SHARED / "model_helpers")]
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return importlib.import_module("random_keras")


def difference(number: int) -> str:
    """Describes the fault of a model, or returns an empty string."""
    generator = _generator()
    model = generator.Model.draw(random.Random(_SEED + number))
    try:
        generator.check(model)
    except AssertionError as error:
        return f"model {number}: {error}\n{model}"
    except Exception:
        return f"model {number}: {traceback.format_exc(limit=-6)}\n{model}"
    finally:
        generator.keras.backend.clear_session()
    return ""


def found(first: int, count: int) -> Iterator[str]:
    """Checks a number of models, beginning with one of them.

    Yields:
        The fault of each; empty if it has none.
    """
    for number in range(first, first + count):
        yield difference(number)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(argument, difference(int(argument)) or "right", flush=True)
