"""The process and the disk: signals, locks, atomic files, standard streams, memory."""
