"""Facts about texts by the native kernel: patterns as automata, facts as programs, and the library that runs them."""
