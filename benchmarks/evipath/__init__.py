"""EviPathBench (arXiv 2607.19261): the tests of its paper that run in an environment."""
