"""Imports TensorFlow internals of SavedModels, checkpoints and trackable objects."""

from __future__ import annotations

from tensorflow.python.checkpoint import (
    checkpoint_management,  # the latest checkpoint of a directory
    trackable_view,  # the objects below an object
)
from tensorflow.python.saved_model import (
    builder,  # writes a SavedModel of a session
    load,  # Loader, to know what has been loaded
    loader_impl,  # reads a SavedModel's message
    save,  # saves a SavedModel, in either mode
    signature_constants,  # the key of the signature that is served
    signature_def_utils,  # signatures of tensors
    tag_constants,  # the tag of graphs that are served
)
from tensorflow.python.trackable import (
    autotrackable,  # AutoTrackable, for objects of ours
    base,  # Trackable
    resource,  # CapturableResource
)
