"""`tensorflow.compiler.plugin.poplar.ops`: the package of the `gen_...` op modules."""
