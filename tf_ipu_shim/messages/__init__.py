"""Creates the protobuf messages of Graphcore's `*_pb2` modules, and those between Python and the C++ plugin."""
