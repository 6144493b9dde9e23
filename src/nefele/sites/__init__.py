"""Sites that keep their data: identity, consent, sealed messages, and a program at each of them."""
