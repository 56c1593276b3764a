"""`python -m wsigym` is the `wsigym` command."""

from wsigym.cli import main

main()
