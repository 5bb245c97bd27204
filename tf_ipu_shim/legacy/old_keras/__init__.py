"""Keras models of SDK 1.2 to 2.1: `ipu.keras.Model`, `Sequential`, pipelined forms, `ipu.keras.optimizers`."""
