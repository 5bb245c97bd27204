"""Utilities of older SDKs: text summaries of events, graph transforms, reports as TensorFlow summaries."""
