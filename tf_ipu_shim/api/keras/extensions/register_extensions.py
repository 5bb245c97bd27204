"""`keras.ipu.extensions.register_extensions`: importing it adds IPU extensions to models of an `IPUStrategy`.

Importing `tensorflow.python.ipu` does so already.
"""

from tf_ipu_shim.frontend.keras import import_hook

import_hook.install()
