"""Connectionist temporal classification: losses and decoders."""
