"""Ways to score rollouts, each a module with the same two functions, run in a process of its own.

``prepare(spec, frame)`` does once what need not be done for each batch; ``run(prepared, frame)`` scores, and returns a mapping:
``reward``, and every check or metric that the contender tells of, by its name. The spec is the path of a JSON file, or ``-`` where
rows bring what to score with. Modules named ``file_…`` work from file to file instead: the two paths that stand for the frame are
the rollouts and what is written.
"""
