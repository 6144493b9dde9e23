"""`python -m nefele`."""

from nefele.cli import main

main()
