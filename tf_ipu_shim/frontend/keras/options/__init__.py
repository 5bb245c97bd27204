"""What a model is told about replicas, accumulation and pipelining."""
