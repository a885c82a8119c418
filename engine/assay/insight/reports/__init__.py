"""Reports on results: what their checks, rows, models and steps come to, as data, Markdown and a page."""
