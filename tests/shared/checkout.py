"""Where the checkout is that the tests belong to."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
