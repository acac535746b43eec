"""``python -m logunif_kl`` runs the command ``logunif-kl``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
