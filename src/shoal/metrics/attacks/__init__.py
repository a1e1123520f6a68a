"""What an attacker learns from a release: guesses, links, people singled out."""
