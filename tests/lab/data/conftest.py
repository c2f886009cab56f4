import gzip
import hashlib

import numpy as np
import pytest

from taynode.lab.data import download, registry
from tests.lab.data.idx_files import as_idx
from tests.lab.data.server import serve


@pytest.fixture
def site():
    with serve() as site:
        yield site


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A machine that has nothing yet, and the folder where its cache will be."""
    import pooch

    for name in ["TAYNODE_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    return tmp_path / "cache" / "taynode"


def remote(name, content, *urls):
    return registry.RemoteFile(name, urls, hashlib.sha256(content).hexdigest(), len(content))


@pytest.fixture
def toy(site, cache, monkeypatch):
    """A registered data set "toy" of one file, which the site serves as `toy.bin`."""
    content = np.random.default_rng(0).bytes(300_000)
    site.files["toy.bin"] = content
    file = remote("toy.bin", content, site.url("toy.bin"))
    return register(monkeypatch, "toy", file)


def register(monkeypatch, name, *files):
    data_set = registry.DataSet(name, "For tests.", "CC0", "here", f"{name}-folder", files)
    monkeypatch.setitem(registry.DATA_SETS, name, data_set)
    return data_set


@pytest.fixture
def small_mnist(site, cache, monkeypatch):
    """In place of MNIST, data of the same form: 30 images to train on, and 20 to test on."""
    random = np.random.default_rng(0)
    arrays, files = {}, []
    for part, num in [("train", 30), ("t10k", 20)]:
        arrays[part] = images, labels = (
            random.integers(256, size=(num, 28, 28), dtype=np.uint8),
            random.integers(10, size=num, dtype=np.uint8),
        )
        for kind, array in [("images-idx3", images), ("labels-idx1", labels)]:
            name = f"{part}-{kind}-ubyte.gz"
            site.files[name] = gzip.compress(as_idx(array), mtime=0)
            files.append(remote(name, site.files[name], site.url(name)))
    register(monkeypatch, "mnist", *files)
    return arrays
