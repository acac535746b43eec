"""Execute the notebooks and write their outputs: ``python docs/gallery/make.py [NAME...]``.

This needs the frameworks of ``validation/frameworks.txt``, nbclient and ipykernel.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def main(names: list[str]) -> None:
    for path in sorted(HERE.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            resources = {"metadata": {"path": folder}}
            NotebookClient(notebook, resources=resources, record_timing=False).execute()
        for cell in notebook.cells:
            # Exporters report progress and missing packages there.
            outputs = cell.get("outputs", [])
            cell["outputs"] = [o for o in outputs if o.get("name") != "stderr"]
            if cell.cell_type != "code":
                del cell["outputs"]
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, path)
        print(path.name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
