"""Estimates whether a script's programs fit on other IPU systems, and how fast they run (`tf-ipu fit`)."""

from __future__ import annotations

from tf_ipu_shim.capacity.candidates import chips_of as chips_of
from tf_ipu_shim.capacity.candidates import smallest as smallest
from tf_ipu_shim.capacity.candidates import systems_for as systems_for
from tf_ipu_shim.capacity.estimate import Estimate as Estimate
from tf_ipu_shim.capacity.estimate import estimate as estimate
from tf_ipu_shim.capacity.text import to_records as to_records
from tf_ipu_shim.capacity.text import to_text as to_text
