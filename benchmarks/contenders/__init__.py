"""Ways to score rollouts, each a module with the same two functions.

``prepare(verifiers, frame)`` does once what need not be done for each batch; ``run(prepared, frame)`` scores, and returns a mapping:
``reward``, and every check or metric that the contender tells of, by its name. Rubrics come as a function that makes one of the
classes of a module. Those named ``file_…`` work from file to file instead: the verifier is a path, and so are the two that stand for
the frame, the rollouts and what is written.
"""
