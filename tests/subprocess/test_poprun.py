"""`poprun` starts the instances of a job, and `popdist` tells each what it is."""

import json
import sys

import pytest

INSTANCE = """
import json
import popdist
import popdist.tensorflow
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import distributed
from tensorflow.python.ipu.distributed.popdist_strategy import PopDistStrategy

popdist.init()
assert popdist.isPopdistEnvSet()
config = ipu.config.IPUConfig()
assert popdist.tensorflow.set_ipu_config(config, ipus_per_replica=2) is config
config.configure_ipu_system()
devices = ipu.utils.get_num_of_ipus_in_device("/device:IPU:0")
strategy = PopDistStrategy()
print(json.dumps({
    "index": popdist.getInstanceIndex(), "instances": popdist.getNumInstances(),
    "replicas": [popdist.getNumLocalReplicas(), popdist.getNumTotalReplicas(), strategy.num_replicas_in_sync],
    "offset": popdist.getReplicaIndexOffset(), "ipus": popdist.getNumIpusPerReplica(),
    "device": popdist.getDeviceId(), "selected": config.select_ipus, "on_device": devices,
    "sum": float(distributed.allreduce(tf.constant(1.0 + popdist.getInstanceIndex()), op=distributed.Sum)),
}))
popdist.synchronize()
"""
WRONG = """
import popdist.tensorflow
from tensorflow.python import ipu
try:
    popdist.tensorflow.set_ipu_config(ipu.config.IPUConfig(), ipus_per_replica=3)
except ValueError as error:
    print(error)
"""
ALONE = """
import popdist, popdist.tensorflow
from tensorflow.python import ipu
assert not popdist.isPopdistEnvSet()
assert (popdist.getNumInstances(), popdist.getInstanceIndex(), popdist.getNumTotalReplicas()) == (1, 0, 1)
config = popdist.tensorflow.set_ipu_config(ipu.config.IPUConfig(), ipus_per_replica=4)
assert config.auto_select_ipus == 4
config.configure_ipu_system()
"""


def poprun(python, *words):
    return python("-m", "tf_ipu_shim.cli", "poprun", *words)


def test_each_instance_knows_its_place_and_has_ipus_of_its_own(python):
    ran = poprun(python, "--num-replicas", 4, "--num-instances=2", "--ipus-per-replica", 2, "--numa-aware", "yes",
                 "--host", "127.0.0.1,127.0.0.2",
                 sys.executable, "-m", "tf_ipu_shim", python.script(INSTANCE))  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = {}
    for line in ran.stdout.splitlines():
        tag, separator, text = line.partition("<stdout>:")
        if separator and text.startswith("{"):
            found[tag] = json.loads(text)
    assert sorted(found) == ["[1,0]", "[1,1]"]
    for index, instance in enumerate((found["[1,0]"], found["[1,1]"])):
        assert instance["index"] == index and instance["instances"] == 2 and instance["offset"] == 2 * index
        assert instance["replicas"] == [2, 4, 4] and instance["ipus"] == 2
        assert instance["selected"] == [instance["device"]] and instance["on_device"] == 4
        assert instance["sum"] == 1.0 + 2.0
    assert found["[1,0]"]["device"] != found["[1,1]"]["device"]
    assert "without effect on one machine: --numa-aware" in ran.stderr


def test_an_instance_that_fails_ends_the_others(python):
    script = python.script(
        "import os, sys, time\n"
        "if os.environ['TF_IPU_SHIM_RANK'] == '1':\n    print('failing', flush=True); sys.exit(3)\n"
        "time.sleep(600)\n"
    )
    ran = poprun(python, "--num-replicas=2", "--num-instances=2", "--tag-output=no", script)
    assert ran.returncode == 3 and ran.stdout == "failing\n"


def test_options_for_mpi_may_begin_with_dashes(python):
    ran = poprun(python, "-vv", "--mpi-global-args", "--tag-output", "--mpi-local-args", "-x NAME", "--num-replicas", 1,
                 "--tag-output=no", sys.executable, "-c", "print('here')")  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "here\n")
    assert "without effect on one machine: --mpi-global-args, --mpi-local-args" in ran.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--num-replicas=3", "--num-instances=2", "a.py"], "no multiple of --num-instances 2"),
        (["--num-replicas=0", "a.py"], "must be above 0"),
        (["--num-replicas=2"], "no command is given"),
        (["--num-replicas=2", "--host=127.0.0.1,192.0.2.1", "a.py"], "--host 192.0.2.1: poprun starts"),
        (["--num-replicas=64", "--num-instances=2", "a.py"], "do not fit into system"),
        (["--num-replicas=2", "--only-output-from-instance=1", "a.py"], "must be from 0 to 0"),
    ],
)
def test_what_cannot_be_started_is_refused(words, expected, capsys):
    import argparse

    from tf_ipu_shim.cli import poprun as command

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args(words)) == 2
    assert expected in capsys.readouterr().err


def test_a_configuration_that_contradicts_poprun(python):
    ran = poprun(python, "--num-replicas=1", sys.executable, "-m", "tf_ipu_shim", python.script(WRONG))
    assert "ipus_per_replica is 3, but poprun was started with --ipus-per-replica 1" in ran.stdout


def test_without_poprun_there_is_one_instance(python):
    python.succeeds("-m", "tf_ipu_shim", python.script(ALONE))
