"""What mypy says of scripts for IPUs, where pip has installed the package."""

import ast
import os
import re
import subprocess
import sys

import pytest
from checkout import ROOT
from installing import Environment, build_editable_wheel, build_wheel_without_plugin, copy_checkout

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

pytest.importorskip("mypy", reason="checks scripts with it")

TYPICAL = """
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu
from tensorflow.python.ipu.config import IPUConfig, SchedulingAlgorithm
from keras.ipu import PipelineStage
import ipu_tensorflow_addons as addons
from tf_ipu_shim import ipu as same, memory_report

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.auto_select_ipus = [1, 2]
config.io_tiles.num_io_tiles = 32
config.convolutions.poplar_options = {"partialsType": "half"}
config.scheduling.algorithm = SchedulingAlgorithm.CLUSTERING
config.configure_ipu_system()
ipu.utils.configure_ipu_system(same.config.IPUConfig())

class Options(ipu.config._ConfigBase):
    def __init__(self) -> None:
        self.sizes = [1]

Options().sizes.append(2)

strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    model = tf.keras.Sequential([keras.layers.Dense(1)])
    with PipelineStage(0):
        addons.keras.layers.Embedding(10, 4)

infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(3))
outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

def net(x):
    schedule = ipu.pipelining_ops.PipelineSchedule.Grouped
    return ipu.pipelining_ops.pipeline(
        [lambda x: x], 4, inputs=[x], infeed_queue=infeed, outfeed_queue=outfeed, pipeline_schedule=schedule
    )

with ipu.scopes.ipu_scope("/device:IPU:0"):
    ipu.ipu_compiler.compile(net, [1])
print(memory_report().to_text())
reveal_type(config.io_tiles)
reveal_type(infeed)
"""
REVEALED = ("tf_ipu_shim.configuration.tree._IoTiles", "tf_ipu_shim.frontend.feeds.ipu_infeed_queue.IPUInfeedQueue")
# What the code of a line is -> what mypy says of it.
MISTAKES = {
    "config.auto_select_ipu = 1": '"IPUConfig" has no attribute "auto_select_ipu"; maybe "auto_select_ipus" or ',
    'config.io_tiles.num_io_tiles = "32"': 'Incompatible types in assignment (expression has type "str", variable has',
    "config.optimizations.math.fats = True": '"_OptimizationsMath" has no attribute "fats"',
    "ipu.loops.repaet(3, print)": 'Module has no attribute "repaet"; maybe "repeat"?',
    "ipu.ipu_compiler.compile(print, input=[])": 'Unexpected keyword argument "input" for "compile"; did you mean "i',
    "from tf_ipu_shim.ipu.config import IPUConfg": 'has no attribute "IPUConfg"; maybe "IPUConfig"?',
}


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    """Two environments: with an installed wheel and with an editable checkout; no package there has types but ours."""
    made = {}
    for kind, build in {"wheel": build_wheel_without_plugin, "editable": build_editable_wheel}.items():
        made[kind] = Environment(tmp_path_factory.mktemp("environment"))
        checkout = copy_checkout(tmp_path_factory.mktemp("checkout"))
        made[kind].install(build(tmp_path_factory.mktemp("wheel"), checkout))
        for name in ("tensorflow", "tensorflow/python", "keras"):
            (made[kind].packages / name).mkdir(exist_ok=True)
            (made[kind].packages / name / "__init__.py").touch()
    return made


@pytest.fixture(scope="module", params=["wheel", "editable"])
def findings(environments, request):
    """All lines of one run, as most of it is for modules that every script needs."""
    environment = environments[request.param]
    (environment.directory / "typical.py").write_text(TYPICAL)
    head = "from tensorflow.python import ipu\nconfig = ipu.config.IPUConfig()\n"
    (environment.directory / "mistakes.py").write_text(head + "".join(f"{line}\n" for line in MISTAKES))
    tutorials = sorted(map(str, (ROOT / "tutorials").glob("*.py")))
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--no-error-summary", "--no-incremental"]
    command += ["--config-file=", "--python-executable", str(environment.python)]
    command += ["typical.py", "mistakes.py", *tutorials]
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    process = subprocess.run(command, cwd=environment.directory, env=alone, capture_output=True, text=True)
    assert process.stderr == ""
    return process.stdout.splitlines()


def test_mypy_accepts_tutorials_and_a_typical_script(findings):
    others = [line for line in findings if not line.startswith("mistakes.py")]
    revealed = [re.fullmatch(r'typical.py:\d+: note: Revealed type is "(.*)"', line) for line in others]
    assert [match and match[1] for match in revealed] == list(REVEALED)


def test_mypy_finds_each_mistake(findings):
    errors = [line for line in findings if line.startswith("mistakes.py") and ": error: " in line]
    assert len(errors) == len(MISTAKES)
    for number, (line, expected) in enumerate(zip(errors, MISTAKES.values()), 3):
        assert line.startswith(f"mistakes.py:{number}: ") and expected in line


@pytest.mark.slow
@pytest.mark.tensorflow
def test_stubs_have_all_emulated_names(environments):
    from tf_ipu_shim.names import emulated, finder, graphcore_names

    lacking = []
    for module in graphcore_names.modules():
        ours = finder.own_name(module) or ""
        is_left_out = ours.startswith(("tf_ipu_shim.messages", "tf_ipu_shim.api.horovod"))
        if is_left_out or emulated.unsupported_module_reason(module):
            continue
        package, *rest = module.split(".")
        folder = package if package in ("tensorflow", "keras") else f"{package}-stubs"
        path = environments["wheel"].packages.joinpath(folder, *rest)
        stub = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
        names = {
            getattr(alias, "asname", None) or getattr(alias, "name", None)
            for node in ast.parse(stub.read_text()).body
            for alias in (*getattr(node, "names", ()), node)
        } | {node.target.id for node in ast.parse(stub.read_text()).body if isinstance(node, ast.AnnAssign)}
        if "__getattr__" in names:
            continue
        known = graphcore_names.attributes(module)
        wanted = {name for name in known if emulated.get_status(module, name).state == emulated.EMULATED}
        lacking += sorted(f"{module}.{name}" for name in wanted - names)
    assert lacking == []
