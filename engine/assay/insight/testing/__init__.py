"""Tests of specs: rollouts with what is expected of them, and changes of a spec that they should notice."""
