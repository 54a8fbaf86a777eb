"""Writing files: a file is written completely or not at all, and the files of an export appear together.

POSIX provides only the atomic rename of one file. On top of it:

- A single file is written to a temporary file beside it, synced, and renamed over it: readers see the old file or the
  new one, and if writing fails or the process is killed, the old one remains.
- The files of a folder are written and synced below ``.ttexplore-export`` in it. Then the old ones are moved out, and
  the new ones in. If one of these steps fails, all are undone. A process that is killed between two renames leaves
  fewer files, never files of two programs; the next export into the folder first completes or undoes it.
  Processes and threads that write into the same folder take turns.

Other files in the folder are not touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Generator, Mapping
from pathlib import Path

from ttexplore.errors import UsageError
from ttexplore.given import path as path_of

# Valid names of exported files: not hidden, not in another folder, and not a different file on another system.
_NAME = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LOCK = ".ttexplore-lock"
_STAGING = ".ttexplore-export"


def check_names(names: Mapping[str, object]) -> None:
    """Raises UsageError unless all names are plain names of different files in one folder."""
    folded: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
            raise UsageError(
                "U012", f"{name!r} is not a valid name for an export", hint="use letters, digits, '_', '-' and '.'"
            )
        if name.casefold() in folded:
            raise UsageError(
                "U012", f"two exported files are named {name!r}", hint="use names that differ in more than case"
            )
        folded.add(name.casefold())


def write_files(texts: Mapping[str, str], folder: str | Path) -> list[Path]:
    """Write the texts to files in a folder, all or none; see above for the case that the process is killed.

    Raises UsageError for a name outside the folder, and if the folder or a file cannot be written.
    """
    check_names(texts)
    target = path_of("the folder", folder)
    with _reported(target):
        target.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            _settle(target)
            _replace_all(target, texts)
    return [target / name for name in texts]


def check_writable(path: str | Path) -> None:
    """Raises UsageError if a file that takes long to make could not be written here in the end."""
    target = path_of("the file", path)
    with _reported(target):
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            return
        real = Path(os.path.realpath(target))
        _check_replaceable(real)
        draft = _part(real)
        _write_new(draft, b"")
        draft.unlink()


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write one file, completely or not at all. The target of a link is replaced, the link stays; devices and pipes are
    written to. Raises UsageError if the file cannot be written."""
    target = path_of("the file", path)
    with _reported(target):
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            target.write_bytes(_encoded(content))
            return target
        real = Path(os.path.realpath(target))
        _check_replaceable(real)
        draft = _part(real)
        try:
            _write_new(draft, content, mode)
            draft.replace(real)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync(real.parent)
    return target


# One file


def _part(real: Path) -> Path:
    """A new file beside another one, which it will replace."""
    return real.with_name(f".ttexplore-{secrets.token_hex(8)}")


def _encoded(content: str | bytes) -> bytes:
    # File names that are not valid UTF-8 appear in texts as lone surrogates.
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def _mode(path: Path) -> int | None:
    """The mode (kind and permissions) of the file behind `path`, None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _check_replaceable(path: Path) -> None:
    """Raises OSError if `path` must not be replaced: a folder, or a write-protected file."""
    if _is_folder(path):
        raise IsADirectoryError(errno.EISDIR, f"{path.name} is a folder", str(path))
    if path.is_file() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, f"{path.name} is protected", str(path))


def _write_new(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Creates a file and syncs it to disk, with the permissions of `mode` or the default ones."""
    with open(path, "xb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
        file.write(_encoded(content))
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Syncs a folder's directory entries to disk, if the file system supports that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Several files


def _replace_all(folder: Path, texts: Mapping[str, str]) -> None:
    """Replaces files in `folder` with the texts; undone on failure."""
    staging = folder / _STAGING
    new, old = staging / "new", staging / "old"
    staging.mkdir()
    try:
        new.mkdir()
        old.mkdir()
        for name, text in texts.items():
            _check_replaceable(folder / name)
            _write_new(new / name, text)
        _sync(new)
        for name in texts:
            if os.path.lexists(folder / name):
                (folder / name).rename(old / name)
        # From here on, another process that finds this completes it.
        (staging / "complete").mkdir()
        for name in texts:
            (new / name).rename(folder / name)
        _sync(folder)
    except BaseException:
        if (staging / "complete").is_dir():
            (staging / "complete").rmdir()
            for name in texts:
                if not os.path.lexists(new / name):
                    (folder / name).unlink(missing_ok=True)
        for name in texts:
            if os.path.lexists(old / name):
                (old / name).replace(folder / name)
        shutil.rmtree(staging, ignore_errors=True)
        raise
    # Remove the old files before the mark: without the mark they would be restored.
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(staging, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Completes or undoes the export of a killed process."""
    staging = folder / _STAGING
    if not os.path.lexists(staging):
        return
    if staging.is_symlink() or not staging.is_dir():
        raise FileExistsError(errno.EEXIST, f"{_STAGING} is in the way", str(staging))
    rest = staging / ("new" if (staging / "complete").is_dir() else "old")
    files = sorted(rest.iterdir()) if rest.is_dir() else []
    # The folder may have another origin: move only files that an export leaves there.
    if rest.is_symlink() or not all(_NAME.fullmatch(file.name) and not _is_folder(file) for file in files):
        raise FileExistsError(errno.EEXIST, f"{_STAGING} is in the way", str(staging))
    for file in files:
        _check_replaceable(folder / file.name)
        file.replace(folder / file.name)
    if (staging / "old").is_dir():
        shutil.rmtree(staging / "old")
    shutil.rmtree(staging)


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Keeps other exports out of `folder` inside the block. The lock ends with the process, even if it is killed."""
    path = folder / _LOCK
    while True:
        if path.is_symlink() or path.is_dir():
            raise FileExistsError(errno.EEXIST, f"{_LOCK} is in the way", str(path))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The previous holder has removed the lock's file.
            if _is_at(descriptor, path):
                break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        # If the lock's file remains, the next export takes it over.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _reported(target: Path) -> Generator[None]:
    """Turns errors of the operating system about `target` into UsageError."""
    try:
        yield
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        match number:
            case errno.ENOSPC | errno.EDQUOT:
                hint = "free space, or choose another folder; existing files are unchanged"
            case errno.EISDIR:
                hint = "choose another name, or move the folder away"
            case errno.ENOENT:
                hint = "create its parent folder, and check where links lead"
            case errno.EEXIST | errno.ENOTDIR:
                hint = "choose another name, or move away the file that has this name"
            case errno.ENAMETOOLONG:
                hint = "choose a shorter name"
            case _:
                hint = "choose a writable folder"
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError("U012", f"{target} cannot be written: {why}", hint=hint) from error
