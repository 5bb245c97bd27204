"""The typed protocol between Python and C++: configuration, trace events, programs."""
