import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
with ipu.scopes.ipu_scope("/device:IPU:0"):
    y = tf.constant([1.0, 5.0]) + [2.0, 3.0]
print(tf.Session().run(y))
