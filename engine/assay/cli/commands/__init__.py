"""The commands, one in each module: a new command is one file here."""
