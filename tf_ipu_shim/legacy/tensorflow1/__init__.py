"""APIs for TensorFlow 1 graphs that SDK 3.0 and newer do not have: automatic sharding and loss scaling."""
