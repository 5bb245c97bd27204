"""Options, protobuf messages and old functions import no TensorFlow; only their façade `ipu` does."""

import pathlib

SCRIPT = """
import sys
import tf_ipu_shim
sys.modules["tensorflow"] = None

from tf_ipu_shim.configuration import tree
from tf_ipu_shim.legacy.config_functions import create, selection
from tf_ipu_shim.messages import config_pb2, trace_pb2
options = tree.IPUConfig()
options.auto_select_ipus = 2
assert options._create_protobuf().device_config[0].auto_count == 2
options.optimizations.enable_fast_math = True            # its warning needs no TensorFlow either
assert selection.auto_select_ipus(create.create_ipu_config(), 4).device_config[0].auto_count == 4
"""


def test_options_need_no_tensorflow(python):
    python.succeeds("-c", SCRIPT)


def test_neither_do_the_tests_of_rooms_without_tensorflow(python):
    tests = pathlib.Path(__file__).resolve().parents[1]
    collect = f"""
import sys
sys.modules["tensorflow"] = None
import pytest
folders = {[str(tests / "config"), str(tests / "machine")]}
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", {str(tests.parent)!r}, *folders]))
"""
    python.succeeds("-c", collect)
