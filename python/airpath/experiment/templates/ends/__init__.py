"""Programs of templates that are started by their paths, at the two ends of a link."""
