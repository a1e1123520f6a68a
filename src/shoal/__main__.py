"""Run the command line as `python -m shoal`."""

from shoal.cli import main

main()
