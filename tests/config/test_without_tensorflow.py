"""Options, protobuf messages and old functions themselves import no TensorFlow; only their package `ipu` does."""

SCRIPT = """
import importlib.util, sys, types
import tf_ipu_shim
sys.modules["tensorflow"] = None
package = types.ModuleType("tf_ipu_shim.ipu")            # the package, without what its __init__ loads
package.__path__ = [tf_ipu_shim.__path__[0] + "/ipu"]
sys.modules["tf_ipu_shim.ipu"] = package

from tf_ipu_shim.ipu import config, utils
from tf_ipu_shim.poplar.driver import config_pb2, trace_pb2
options = config.IPUConfig()
options.auto_select_ipus = 2
assert options._create_protobuf().device_config[0].auto_count == 2
options.optimizations.enable_fast_math = True            # its warning needs no TensorFlow either
assert utils.auto_select_ipus(utils.create_ipu_config(), 4).device_config[0].auto_count == 4
"""


def test_options_need_no_tensorflow(python):
    python.succeeds("-c", SCRIPT)
