"""Op placement: device scopes, sharding annotations, gradients on the shard of their forward op."""
