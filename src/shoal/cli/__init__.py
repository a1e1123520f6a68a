"""The command line: commands, their options, and the terminal."""
