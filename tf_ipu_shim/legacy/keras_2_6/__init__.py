"""What Keras 2.6 did, in the Keras 2 that is installed."""
