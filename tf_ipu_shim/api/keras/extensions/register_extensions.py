"""`keras.ipu.extensions.register_extensions`: importing it lets models made under an `IPUStrategy` have extensions.

Importing `tensorflow.python.ipu` does so already.
"""

from tf_ipu_shim.frontend.keras import import_hook

import_hook.install()
