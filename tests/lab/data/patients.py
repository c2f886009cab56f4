"""Writers of the archives of PhysioNet 2012."""

import io
import tarfile
import zipfile


def as_patient(number, rows, *, static=("Age,70", "Gender,1", "Height,-1", "ICUType,3")):
    lines = [f"00:00,RecordID,{number}", *(f"00:00,{row}" for row in static), *rows]
    return "\n".join(["Time,Parameter,Value", *lines, ""]).encode()


def pack(path, files):
    """Write contents by name into a folder, or an archive of the kind that the ending tells."""
    # As in the official archives: a folder, and perhaps a file that is no patient.
    everything = {f"set/{name}": content for name, content in files.items()}
    everything["set/index.html"] = b"not a patient"
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.mkdir("set")
            for name, content in everything.items():
                archive.writestr(name, content)
    elif ".t" in path.name:
        mode = {".xz": "w:xz", ".tar": "w"}.get(path.suffix, "w:gz")
        with tarfile.open(path, mode) as archive:
            folder = tarfile.TarInfo("set")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            for name, content in everything.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    else:
        for name, content in everything.items():
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
