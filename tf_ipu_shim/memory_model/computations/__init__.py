"""What each step computes: flops and elements, the names that Poplar gives it, which computations are one function."""
