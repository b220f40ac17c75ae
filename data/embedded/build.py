"""Build the two embedded data sets from Debian's packages of them, checking every step against a sha256.

    python data/embedded/build.py [FOLDER]

writes `fashion_mnist_20k.npz` and `german_credit.csv` beside this file. Needs NumPy and, unless FOLDER
already holds the unpacked packages, a Debian or Ubuntu machine (`apt-get download` and `dpkg -x`; nothing
is installed).

- dataset-fashion-mnist holds the idx archives of Fashion-MNIST. Their compressed streams are the official
  ones: with the original gzip header (file name and time) put back, all four have the MD5 sums that
  Zalando publishes.
- weka holds `credit-g.arff`, the Statlog German Credit data with attribute and category names.
"""

import gzip
import hashlib
import io
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PACKAGES = ["dataset-fashion-mnist", "weka"]
RECORDS = 20_000
SOURCES = {  # sha256 of what the packages hold, idx archives unpacked
    "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "credit-g.arff": "bd94085134e4eb845c96b34c93ed65a223f89d089bacb273ef96f57509ce0bed",
}
RESULTS = {  # sha256 of the files made here; mia_lib.data checks the same ones
    "fashion_mnist_20k.npz": "36891374f6d2d933db5f39349f199822664a42f09b37dfc253116893fc9bf4a7",
    "verses.npz": "810f1bbf3e75da9f4d6f0f8c9736c0e713434a304574fbb1a1a1d41b7c5d6198",
    "german_credit.csv": "1f14a3ee97d632516c36ecba11e0472175b97dba3ec001790e4a34b64f2d604c",
}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def source(folder: Path, name: str) -> bytes:
    """Contents of one source file, found anywhere below `folder`, unpacked and verified."""
    data = next(folder.rglob(name)).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    if sha256(data) != SOURCES[name]:
        sys.exit(
            f"{name}: sha256 {sha256(data)}, expected {SOURCES[name]}. Another version of the package?"
        )
    return data


def keep(name: str, data: bytes) -> None:
    (HERE / name).write_bytes(data)
    print(f"{name}: {len(data):,} bytes, sha256 {sha256(data)}")
    if sha256(data) != RESULTS[name]:
        sys.exit(
            f"{name}: expected sha256 {RESULTS[name]}. The sources are right, so another "
            "version of liblzma packs them otherwise; compare the arrays."
        )


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    """Content of an `.npz` file with these arrays, in bytes that repeat; `numpy.load` reads it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            # LZMA: 7.5 MB of images where deflate gives 8.7
            member.compress_type, member.create_system = zipfile.ZIP_LZMA, 3
            member.external_attr = 0o644 << 16
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(member, buffer.getvalue())
    return out.getvalue()


def fashion_mnist(folder: Path) -> None:
    """First 20,000 training images: x uint8 [20000, 28, 28, 1], y uint8 [20000], n_train."""
    images = source(folder, "train-images-idx3-ubyte.gz")
    labels = source(folder, "train-labels-idx1-ubyte.gz")
    arrays = {
        "x": np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28, 1)[:RECORDS],
        "y": np.frombuffer(labels, np.uint8, offset=8)[:RECORDS],
        "n_train": np.array(RECORDS),
    }
    keep("fashion_mnist_20k.npz", packed(arrays))


def german_credit(folder: Path) -> None:
    """20 attributes and the class as integers; a category is its place, from 0, where it is declared."""
    text = source(folder, "credit-g.arff").decode("latin-1")
    names, levels, rows = [], [], []
    for line in text.splitlines():
        if match := re.match(r"@attribute\s+(\w+)\s+(?:\{(.*)\}|(\w+))", line):
            names.append(match[1])
            levels.append([v.strip().strip("'") for v in match[2].split(",")] if match[2] else None)
        elif line and line[0] not in "%@":
            values = [v.strip().strip("'") for v in line.split(",")]
            pairs = zip(values, levels, strict=True)
            rows.append(",".join(v if level is None else str(level.index(v)) for v, level in pairs))
    keep("german_credit.csv", "\n".join([",".join(names), *rows, ""]).encode())


def main() -> None:
    if len(sys.argv) > 1:
        fashion_mnist(Path(sys.argv[1]))
        german_credit(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True)
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package.name, "."], cwd=folder, check=True)
        fashion_mnist(Path(folder))
        german_credit(Path(folder))


if __name__ == "__main__":
    main()
