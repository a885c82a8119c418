"""Answers that a check has to take, and answers that it has to refuse, made of golds."""
