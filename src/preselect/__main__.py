"""`python -m preselect` is the command."""

from preselect.cli import main

if __name__ == "__main__":
    main()
