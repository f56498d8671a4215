"""`python -m drills`: the same as the `stopdrill` command."""

from drills.cli import main

if __name__ == "__main__":
    main()
