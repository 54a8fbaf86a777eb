"""Writing files: each appears whole, and those of an export together.

What POSIX gives is one atomic rename of one file; what is made of it here:

- A single file is written beside its place, synced, and renamed over it: readers see the old file or the new one, and
  where it cannot be written, or the process is killed, the old one stays.
- The files of a folder are written and synced below ``.ttexplore-export`` in it. Then the old ones are moved out, and
  the new ones in. A failure before the end is undone. A process that is killed between two of these renames leaves
  fewer files, never files of two programs; the next export into the folder first completes or undoes what it finds.
  Two processes, or threads, that write into one folder take turns.

Other files of the folder are not touched.
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

# What an exported file may be called: nothing that is hidden, another folder, or another file on another system.
_NAME = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LOCK = ".ttexplore-lock"
_STAGING = ".ttexplore-export"


def check_names(names: Mapping[str, object]) -> None:
    """Raises UsageError for names that are no plain names of different files of one folder."""
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
            raise UsageError(
                "U012", f"{name!r} is no name of an exported file", hint="use letters, digits, '_', '-' and '.'"
            )
        if name.casefold() in seen:
            raise UsageError(
                "U012", f"{name!r} is the name of two exported files", hint="some systems ignore upper case"
            )
        seen.add(name.casefold())


def write_files(texts: Mapping[str, str], folder: str | Path) -> list[Path]:
    """Write the texts into files of a folder, all or none; see above for what that means where the process is killed.

    Raises UsageError for a name that leads elsewhere, and where the folder or one of the files cannot be written.
    """
    check_names(texts)
    target = path_of("the folder", folder)
    with _reported(target):
        target.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            _settle(target)
            _replace_all(target, texts)
    return [target / name for name in texts]


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write one file, whole or not at all. A link stays, and what it points to is replaced; a device or a pipe is
    written to. Raises UsageError where the file cannot be written."""
    target = path_of("the file", path)
    with _reported(target):
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            target.write_bytes(_encoded(content))
            return target
        place = Path(os.path.realpath(target))
        _check_replaceable(place)
        part = place.with_name(f".ttexplore-{secrets.token_hex(8)}")
        try:
            _write_new(part, content, mode)
            part.replace(place)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync(place.parent)
    return target


# One file


def _encoded(content: str | bytes) -> bytes:
    # Names of files that are no UTF-8 reach texts as lone surrogates.
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def _mode(path: Path) -> int | None:
    """Kind and permissions of what `path` leads to, None where nothing is there."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _check_replaceable(path: Path) -> None:
    """Raises OSError for what a file must not take the place of: a folder, and a file that is protected."""
    if _is_folder(path):
        raise IsADirectoryError(errno.EISDIR, f"{path.name} is a folder", str(path))
    if path.is_file() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, f"{path.name} is protected", str(path))


def _write_new(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Writes a file that is not there yet, down to the disk, with the permissions of `mode` or the usual ones."""
    with open(path, "xb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
        file.write(_encoded(content))
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Brings the names of a folder down to the disk, where the file system does that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Several files


def _replace_all(folder: Path, texts: Mapping[str, str]) -> None:
    """Puts the texts in place of files of `folder`; undone where it fails."""
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
        # From here on a process that finds this completes it.
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
    # The old files first: while they are there, only the mark tells that they are not wanted back.
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(staging, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Completes or undoes the export of a process that was killed."""
    staging = folder / _STAGING
    if not os.path.lexists(staging):
        return
    if staging.is_symlink() or not staging.is_dir():
        raise FileExistsError(errno.EEXIST, f"{_STAGING} is in the way", str(staging))
    rest = staging / ("new" if (staging / "complete").is_dir() else "old")
    files = sorted(rest.iterdir()) if rest.is_dir() else []
    # Such a folder may come from elsewhere: what no export leaves there is not moved.
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
    """Nobody else writes into `folder` in this way inside. The lock ends with the process, however that ends."""
    path = folder / _LOCK
    while True:
        if path.is_symlink() or path.is_dir():
            raise FileExistsError(errno.EEXIST, f"{_LOCK} is in the way", str(path))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Who had the lock before has removed the file that it belongs to.
            if _is_at(descriptor, path):
                break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        # A lock that stays is taken by the next one.
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
    """What the system says of `target` as UsageError."""
    try:
        yield
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        match number:
            case errno.ENOSPC | errno.EDQUOT:
                hint = "make room there, or choose a folder elsewhere; what was there is as it was"
            case errno.EISDIR:
                hint = "choose another name, or move the folder away"
            case errno.ENOENT:
                hint = "make the folder that it is to lie in, and see where links lead"
            case errno.EEXIST | errno.ENOTDIR:
                hint = "something else has its name: choose another name, or move it away"
            case errno.ENAMETOOLONG:
                hint = "choose a shorter name"
            case _:
                hint = "choose a folder that you may write to"
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError("U012", f"{target} cannot be written: {why}", hint=hint) from error
