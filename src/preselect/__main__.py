"""Run the command with `python -m preselect`."""

from preselect.cli import main

if __name__ == "__main__":
    main()
