"""The command line: commands, their options, and what stands between them and the terminal."""
