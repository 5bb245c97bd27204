"""Options, protobuf messages and old functions import no TensorFlow; only their façade `ipu` does."""

import re

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

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


def test_neither_do_the_tests_that_say_so(python):
    marked = re.compile(r"^pytestmark = .*without_tensorflow", re.MULTILINE)
    files = [str(path) for path in (ROOT / "tests").rglob("test_*.py") if marked.search(path.read_text())]
    collect = f"""
import sys
sys.modules["tensorflow"] = None
import pytest
options = ["--collect-only", "-q", "--assert=plain", "-p", "no:cacheprovider", "--rootdir", {str(ROOT)!r}]
sys.exit(pytest.main([*options, *{files}]))
"""
    assert len(files) > 50
    python.succeeds("-c", collect)
