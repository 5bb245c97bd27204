"""Programs that do not fit as they would be with an option changed, a gradient accumulated or a layer moved."""
