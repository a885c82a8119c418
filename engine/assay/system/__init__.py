"""The process and the disk: signals, locks, files that are whole or not there, standard streams, memory."""
