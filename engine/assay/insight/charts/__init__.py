"""Charts as SVG: within a page, and standing alone."""
