"""Ways to score rollouts, each a module with the same two functions.

``prepare(verifiers, frame)`` does once what need not be done for each batch; ``run(prepared, frame)`` scores, and returns the
rewards as a list. Rubrics come as a function that makes one of the classes of a module, and ``run`` returns a mapping: ``reward``,
and every metric by its name.
"""
