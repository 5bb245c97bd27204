"""Assertions on the memory of a script's programs, for any test framework. See `docs/how_to/test/testing.md`.

They look at the programs that this process has lowered under its last configuration, in modelled bytes: the same on
every machine. The fixtures of the pytest plugin forget what other tests ran.
"""

from __future__ import annotations

from tf_ipu_shim.testing.memory import assert_fits as assert_fits
from tf_ipu_shim.testing.memory import assert_no_growth as assert_no_growth
from tf_ipu_shim.testing.memory import assert_peak_below as assert_peak_below
