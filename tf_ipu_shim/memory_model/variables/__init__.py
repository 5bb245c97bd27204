"""Where variables and stashes are: on which tiles, in remote memory, whole or shared by replicas."""
