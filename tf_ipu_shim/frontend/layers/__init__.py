"""What the Keras layers of several modules share."""
