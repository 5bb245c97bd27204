"""Protobuf messages between Python and C++: configuration, trace events, programs."""
