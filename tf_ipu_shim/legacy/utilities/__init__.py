"""Writes trace events as TensorFlow summaries, as older SDKs did, and has graph transforms of TensorFlow 1.15."""
