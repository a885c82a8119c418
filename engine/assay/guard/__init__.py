"""One pool of limited processes for users' code and for work that may never return."""
