"""Where ops run: scopes, marks of shards, gradients on the shard of their forward op."""
