"""Configures 32 IPUs of a Pod."""

from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 32
config.configure_ipu_system()
