"""The report: one static HTML file with inline CSS and SVG, no scripts, nothing remote."""
