"""Steps: what part of a text a check reads."""
