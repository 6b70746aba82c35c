"""Training in small steps: networks, alone or together with the GP on their outputs."""
