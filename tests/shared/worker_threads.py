"""The beginning of scripts whose two workers are threads of one process, each with a server of TensorFlow's."""

CLUSTER = """
import json, socket, threading
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.ipu_multi_worker_strategy import IPUMultiWorkerStrategyV1

v1 = tf.compat.v1
v1.disable_v2_behavior()
ipu.config.IPUConfig().configure_ipu_system()
sockets = [socket.create_server(("localhost", 0)) for _ in range(2)]
cluster = tf.train.ClusterSpec({"worker": ["localhost:%d" % one.getsockname()[1] for one in sockets]})
for one in sockets:
    one.close()
together = v1.ConfigProto()
together.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
servers = [tf.distribute.Server(cluster, "worker", rank, config=together) for rank in range(2)]
found = [{}, {}]
"""
