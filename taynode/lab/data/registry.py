"""The data sets, with the URLs and checksums of their files."""

from dataclasses import dataclass

from .errors import DataError


@dataclass(frozen=True)
class RemoteFile:
    """A published file. All URLs serve the same bytes; the first is preferred."""

    name: str
    urls: tuple[str, ...]
    sha256: str
    size: int


@dataclass(frozen=True)
class DataSet:
    """A data set and its files.

    - `folder`: the name of the subfolder of the files, in the cache and in `TAYNODE_DATA`.
    - `package`: the Python package that contains the data, if there is nothing to download.
    - `by_hand`: the names of files that the user has to get from the source, because they have no
        published checksum. One file of every group is needed; the first that exists is used.
    """

    name: str
    description: str
    license: str
    source: str
    folder: str
    files: tuple[RemoteFile, ...] = ()
    package: str | None = None
    by_hand: tuple[tuple[str, ...], ...] = ()

    @property
    def size(self) -> int:
        """The number of bytes to download."""
        return sum(file.size for file in self.files)

    def file(self, name: str) -> RemoteFile:
        """The file of this name."""
        for file in self.files:
            if file.name == name:
                return file
        raise DataError(f"The data set {self.name} has no file {name}.")


def archives(name: str) -> tuple[str, ...]:
    """The names of an archive: as published, repacked in other formats, and unpacked."""
    return tuple(name + end for end in [".tar.gz", ".tgz", ".tar.xz", ".tar", ".zip", ""])


_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_MNIST = {
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        9_912_422,
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        28_881,
    ),
    "t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        1_648_877,
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        4_542,
    ),
}

DATA_SETS: dict[str, DataSet] = {
    data_set.name: data_set
    for data_set in [
        DataSet(
            name="digits",
            description="1,797 handwritten digits of 8 x 8 pixels",
            license="CC BY 4.0",
            source="https://archive.ics.uci.edu/dataset/80",
            folder="digits",
            package="sklearn",
        ),
        DataSet(
            name="miniboone",
            description="36,488 events of a detector of neutrinos, of 43 features each",
            license="CC BY 4.0",
            source="https://doi.org/10.24432/C5QC87",
            folder="miniboone",
            by_hand=(("data.npy", "MiniBooNE_PID.txt", "miniboone_partial.npz"),),
        ),
        DataSet(
            name="mnist",
            description="70,000 handwritten digits of 28 x 28 pixels",
            license="CC BY-SA 3.0",
            source="http://yann.lecun.com/exdb/mnist/",
            folder="mnist",
            files=tuple(
                RemoteFile(name, tuple(mirror + name for mirror in _MIRRORS), sha256, size)
                for name, (sha256, size) in _MNIST.items()
            ),
        ),
        DataSet(
            name="physionet2012",
            description="8,000 patients in intensive care, 48 hours of 37 measurements",
            license="ODC-BY 1.0",
            source="https://physionet.org/content/challenge-2012/1.0.0/",
            folder="physionet2012",
            by_hand=(
                archives("set-a"),
                archives("set-b"),
                ("Outcomes-a.txt",),
                ("Outcomes-b.txt",),
            ),
        ),
    ]
}


def data_set(name: str) -> DataSet:
    """The data set of this name."""
    if name not in DATA_SETS:
        known = ", ".join(sorted(DATA_SETS))
        raise DataError(f"There is no data set {name!r}. There are: {known}.")
    return DATA_SETS[name]
