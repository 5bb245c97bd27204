"""Options, protobuf messages and old functions import no TensorFlow; only their façade `ipu` does."""

SCRIPT = """
import sys
import tf_ipu_shim
sys.modules["tensorflow"] = None

from tf_ipu_shim.configuration import tree
from tf_ipu_shim.configuration.functions import create, selection
from tf_ipu_shim.messages import config_pb2, trace_pb2
options = tree.IPUConfig()
options.auto_select_ipus = 2
assert options._create_protobuf().device_config[0].auto_count == 2
options.optimizations.enable_fast_math = True            # its warning needs no TensorFlow either
assert selection.auto_select_ipus(create.create_ipu_config(), 4).device_config[0].auto_count == 4
"""


def test_options_need_no_tensorflow(python):
    python.succeeds("-c", SCRIPT)
