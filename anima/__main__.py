"""``python -m anima``."""

from anima.cli import main

main()
