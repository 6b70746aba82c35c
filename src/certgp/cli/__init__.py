"""The command line: parse, call, print. One file per command; nothing here computes."""
