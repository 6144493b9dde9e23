"""Mixed models over a network: a common part, personal parts, and how far these may go."""
