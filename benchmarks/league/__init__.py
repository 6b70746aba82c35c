"""The league: certgp and its peers on every data set, scored alike. ``benchmarks/league.py`` is the command."""
