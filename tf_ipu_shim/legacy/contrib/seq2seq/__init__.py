"""`tensorflow.contrib.seq2seq` of TensorFlow 1.15: attention, decoders, helpers, loss.

In programs of IPUs, as in XLA's, the outputs of a decoder have `maximum_iterations` steps: shapes are known before it
runs. Beam search and monotonic attention are refused. Checked on TensorFlow 2.15.1 and 2.21.0, and compared with
1.15.0.
"""
