"""`tensorflow.compiler.plugin.poplar`: the package of Graphcore's op modules and protobuf messages."""
