"""The store as files: `html/aa/bb/<sha256>.html.zst`, each a zstd frame with a checksum (`zstd -d` opens it).

Before it there may be a note (`note_frame`), which `zstd -d` passes over.

Old ones may have been put into packs (`pack_file`, `packing`), in `html/packs`: readers look in both places.

Invariants:
- a name appears by rename alone, when its file is whole; a name that is there means done;
- no path is made of anything but a hash (`checked_hash`), and no symlink is followed below the root;
- what is read has the hash of its name, or is reported as damaged;
- a file whose note is renewed is durable before it takes the old one's place;
- scratch files lie in `html/tmp`, named after their writer, which removes those of its predecessors.

An empty file can be what a power cut leaves of a name whose content was not synced: it counts as no blob, and `put`
writes it anew.
"""

from __future__ import annotations

import errno
import hashlib
import heapq
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock

from crawler.model.settings import Config
from crawler.store.blobs import BlobDamaged, checked_hash
from crawler.store.disk_sync import sync_file_system
from crawler.store.note_frame import HEAD, damage_of_note, frame_size, note_frame, note_in, start_of_page
from crawler.store.pack_file import NAME, Pack, Packs, dictionary_of, frame_maker, sampled, write_frames

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 3
SUFFIX = ".html.zst"
LONGEST_BLOB = 2**31  # bytes decoded: [network] max-body-size may be no larger
SCRATCH = "tmp"
PACKS = "packs"
_REWRITE = "rewrite"  # of a pack that some blobs are removed from

_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_PIECE = 1024 * 1024
_QUICK = 64 * 1024  # bytes of a file that is read, expanded and hashed in less time than a thread takes to begin
_SHARD = re.compile(r"[0-9a-f]{2}")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in a blob's place must not hang a reader
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REFUSED = (errno.ELOOP, errno.ENOTDIR)  # a symlink, or a file in a folder's place


class SymlinkInStore(OSError):
    """A link is in the place of one of the store's own folders; nothing was written."""

    def __init__(self, place: Path) -> None:
        why = (
            "a symbolic link is in the place of a folder of the store, where none is followed; put the folder itself"
            " there (to have the store on another disk, make `store` as a whole the link)"
        )
        super().__init__(errno.ELOOP, why, str(place))


def compressed(body: bytes) -> bytes:
    """The body as one zstd frame, with its size and a checksum."""
    return bytes(zstd.compress(body, options=_OPTIONS))


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def expanded(frame: bytes, digest: str, place: str, decoder: zstd.ZstdDecompressor | None = None) -> bytes:
    """The content of a frame. Raises BlobDamaged unless it has this hash. `decoder` knows the frame's dictionary."""
    pieces: list[bytes] = []
    size = 0
    decoder = decoder or zstd.ZstdDecompressor()
    try:
        piece = decoder.decompress(frame, _PIECE)
        while True:
            size += len(piece)
            if size > LONGEST_BLOB:
                raise BlobDamaged(digest, place, f"it expands to more than {LONGEST_BLOB:,} bytes")
            pieces.append(piece)
            if decoder.eof or (not piece and decoder.needs_input):
                break
            piece = decoder.decompress(b"", _PIECE)
    except zstd.ZstdError as problem:
        raise BlobDamaged(digest, place, f"it does not decompress ({problem})") from None
    body = b"".join(pieces)
    if not decoder.eof or decoder.unused_data:
        raise BlobDamaged(digest, place, "it is cut off" if not decoder.eof else "something follows its end")
    if digest_of(body) != digest:
        raise BlobDamaged(digest, place, "its content has another hash")
    return body


class FileStore:
    """See `crawler.store.blobs.BlobStore`. `writer` names the process that puts; one at a time has a name.

    `mode` are the permissions of blobs; who may read a blob may enter its folder.
    """

    def __init__(self, root: Path, *, writer: str = "", mode: int = 0o600) -> None:
        self.root = root
        self._writer = writer
        self.mode = mode
        self._folder_mode = mode & 0o777 | 0o300 | (mode & 0o444) >> 2
        self._numbers = count()
        self.packs = Packs(root / PACKS)
        self._descriptor = -1
        self._is_dirty = False
        self._renewing = Lock()  # a thread puts, and another one syncs
        self._renewed: dict[str, str] = {}  # hash → scratch file, to be renamed once it is durable
        if writer:
            self._begin_writing()

    def _begin_writing(self) -> None:
        self._require_own_folders()
        if not self.root.exists():
            self.root.mkdir(parents=True, exist_ok=True)
            self.root.chmod(self._folder_mode)
        (self.root / SCRATCH).mkdir(self._folder_mode, exist_ok=True)
        self._root()  # opened once, before several threads put
        self.clear_scratch(self._writer)

    def _require_own_folders(self) -> None:
        """Raise SymlinkInStore if a link leads out of the store; looked for before anything is written."""
        for folder in (self.root, self.root / SCRATCH, self.root / PACKS):
            if folder.is_symlink():
                raise SymlinkInStore(folder)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def path_of(self, digest: str) -> Path:
        """The file of a blob, whether it is there or not."""
        checked_hash(digest)
        return self.root / digest[:2] / digest[2:4] / f"{digest}{SUFFIX}"

    # -- writing -------------------------------------------------------------------------------------

    def put(self, body: bytes, digest: str | None = None, *, is_anew: bool = False, note: bytes = b"") -> str:
        digest = checked_hash(digest if digest is not None else digest_of(body))
        if is_anew or not self.has(digest):  # in a file or a pack
            frame = compressed(body)
            self._name(self._write_scratch(note_frame(note, digest, len(frame)) + frame), digest)
        self._is_dirty = True
        return digest

    def renew_note(self, digest: str, note: bytes) -> None:
        try:
            content = self._content(digest)
        except BlobDamaged:
            return
        if content is None or digest in self._renewed:
            return
        page = content[start_of_page(content) :]
        scratch = self._write_scratch(note_frame(note, digest, len(page)) + page)
        with self._renewing:
            is_first = self._renewed.setdefault(digest, scratch) == scratch
        if not is_first:
            self._unlink_scratch(scratch)
        self._is_dirty = True

    def _write_scratch(self, content: bytes) -> str:
        root = self._root()
        scratch = f"{SCRATCH}/{self._writer}-{next(self._numbers)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(scratch, flags, self.mode, dir_fd=root)
        try:
            try:
                os.fchmod(descriptor, self.mode)  # whatever the umask
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
        except OSError:
            self._unlink_scratch(scratch)
            raise
        return scratch

    def _name(self, scratch: str, digest: str) -> None:
        """Give a scratch file the name of its blob."""
        try:
            with self._shard(digest, makes=True) as folder:
                os.replace(scratch, f"{digest}{SUFFIX}", src_dir_fd=self._root(), dst_dir_fd=folder)
        except OSError:
            self._unlink_scratch(scratch)
            raise

    def _unlink_scratch(self, scratch: str) -> None:
        with suppress(OSError):
            os.unlink(scratch, dir_fd=self._root())

    def remove(self, digest: str) -> bool:
        """Remove a blob, from its file and from its pack. False: it was not there."""
        return self.remove_all({checked_hash(digest)}) > 0

    def remove_all(self, digests: Set[str]) -> int:
        """Remove these blobs; returns how many of them were there. A pack that holds some is written anew, once."""
        gone: set[str] = set()
        for digest in digests:
            with suppress(FileNotFoundError), self._shard(checked_hash(digest)) as folder:
                os.unlink(f"{digest}{SUFFIX}", dir_fd=folder)
                gone.add(digest)
        self.clear_scratch(_REWRITE)
        for pack in self.packs.all():
            packed = digests & set(pack.hashes())
            if packed:
                self._rewrite(pack, packed)
                gone |= packed
        return len(gone)

    def leave_out_copies(self) -> int:
        """Remove copies from packs that a whole one elsewhere makes needless, damaged ones above all; returns how many.
        A blob of which no copy is whole keeps all of them. A crawl may go on.
        """
        self.clear_scratch(_REWRITE)
        packs = self.packs.all()
        needless: list[set[str]] = [set() for _ in packs]
        for digest, numbers in _packed_in(packs):
            if len(numbers) == 1 and not self.is_loose(digest):
                continue
            whole = [number for number in numbers if _body_or_none(packs[number], digest) is not None]
            if whole or self.is_loose_whole(digest):
                for number in numbers:
                    if number not in whole[:1]:
                        needless[number].add(digest)
        for pack, going in zip(packs, needless, strict=True):
            if going:
                self._rewrite(pack, going)
        return sum(map(len, needless))

    def _rewrite(self, pack: Pack, left_out: Set[str]) -> None:
        """Put a pack without some blobs into its place, as old as it; without its last one it is removed.

        Its dictionary is made anew: the old one has pieces of every page that it was made of.
        """
        rest = [digest for digest in pack.hashes() if digest not in left_out]
        if rest:
            dictionary = dictionary_of(sampled(body for digest in rest if (body := _body_or_none(pack, digest))))
            frames = _frames_again(pack, rest, frame_maker(dictionary))
            place = write_frames(self.scratch(_REWRITE), self.packs.folder, frames, dictionary, self.mode)
            written = pack.path.lstat().st_mtime
            os.utime(place, (written, written))  # for lifetimes, and for the growth of the store
        pack.path.unlink()
        self.packs.look_again()

    def age_and_size(self, digest: str) -> tuple[float, int]:
        """When a blob, or the pack that holds it, was written (seconds since 1970), and its bytes on disk."""
        if self.is_loose(digest):
            found = self.path_of(digest).lstat()
            return found.st_mtime, found.st_size
        pack = self.packs.holding(digest)
        if pack is None:
            raise FileNotFoundError(errno.ENOENT, "no such blob", digest)
        return pack.path.lstat().st_mtime, len(pack.frame(digest) or b"")

    def scratch(self, purpose: str) -> Path:
        """A name for a file that is being made."""
        self._require_own_folders()
        folder = self.root / SCRATCH
        folder.mkdir(self._folder_mode, exist_ok=True)
        return folder / f"{purpose}-{os.getpid()}"

    def clear_scratch(self, purpose: str) -> None:
        """Remove what others left that were killed while they made such a file; nobody else may be making one."""
        self._require_own_folders()
        for left in (self.root / SCRATCH).glob(f"{purpose}-*"):
            with suppress(FileNotFoundError):
                left.unlink()

    def pack_folder(self) -> Path:
        """The folder of the packs, made if there is none. Raises OSError if something else is in its place."""
        self._require_own_folders()
        with suppress(FileExistsError):
            self.packs.folder.mkdir(self._folder_mode)
            self.packs.folder.chmod(self._folder_mode)
        os.close(os.open(self.packs.folder, _FOLDER))
        return self.packs.folder

    def sync(self) -> None:
        self._is_dirty = False
        with self._renewing:
            renewed, self._renewed = self._renewed, {}
        sync_file_system(self._root())
        for digest, scratch in renewed.items():
            if self.is_loose(digest):
                self._name(scratch, digest)
            else:  # it was packed meanwhile
                self._unlink_scratch(scratch)

    def sync_if_dirty(self) -> None:
        """Sync, if anything was put here since the last time: a blob that was there may be another fetcher's, too."""
        if self._is_dirty:
            self.sync()

    # -- reading -------------------------------------------------------------------------------------

    def has(self, digest: str) -> bool:
        return self.is_loose(digest) or self.packs.holding(digest) is not None

    def is_loose(self, digest: str) -> bool:
        """Does the blob have a file of its own?"""
        return self._loose_size(digest) > 0

    def _loose_size(self, digest: str) -> int:
        """The size of the blob's own file; 0: it has none."""
        checked_hash(digest)
        try:
            with self._shard(digest) as folder:
                found = os.stat(f"{digest}{SUFFIX}", dir_fd=folder, follow_symlinks=False)
        except OSError as problem:
            if problem.errno == errno.ENOENT or problem.errno in _REFUSED:
                return 0
            raise
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def get(self, digest: str) -> bytes | None:
        try:
            frame = self.frame(digest)
            if frame is not None:
                return expanded(frame, digest, str(self.path_of(digest)))
        except BlobDamaged:
            if (packed := self._packed(digest)) is None:
                raise
            return packed
        return self._packed(digest)

    def get_if_quick(self, digest: str) -> bytes | None:
        try:
            frame = self.frame(digest, _QUICK)
            return None if frame is None else expanded(frame, digest, str(self.path_of(digest)))
        except BlobDamaged:
            if self.packs.holding(digest) is None:
                raise
            return None  # `get` looks there, too

    def _packed(self, digest: str) -> bytes | None:
        """From the first pack that has it whole. Raises BlobDamaged if it is damaged in every pack that has it."""
        damaged: BlobDamaged | None = None
        for pack in self.packs.all():
            try:
                body = _body_in(pack, digest)
            except BlobDamaged as problem:
                damaged = problem
                continue
            if body is not None:
                return body
        if damaged is not None:
            raise damaged
        return None

    def is_packed_whole(self, digest: str) -> bool:
        """Is the blob in a pack, and undamaged there?"""
        try:
            return self._packed(checked_hash(digest)) is not None
        except BlobDamaged:
            return False

    def is_loose_whole(self, digest: str) -> bool:
        """Has the blob a file of its own, undamaged?"""
        return self.is_loose(digest) and self._damage_of_file(digest) is None

    def is_whole(self, digest: str) -> bool:
        """Is there a copy of the blob in which nothing is damaged?"""
        return self.is_loose_whole(digest) or self.is_packed_whole(digest)

    def damage_of(self, digest: str) -> list[BlobDamaged]:
        """What is wrong with a blob, in each of the places where it is."""
        of_file = self._damage_of_file(digest)
        found = [of_file] if of_file is not None else []
        for pack in self.packs.all():
            try:
                _body_in(pack, digest)
            except BlobDamaged as problem:
                found.append(problem)
        return found

    def _damage_of_file(self, digest: str) -> BlobDamaged | None:
        """What is wrong with a blob's own file, its note included; None: nothing, or it has none."""
        try:
            content, place = self._content(digest), str(self.path_of(digest))
            if content is not None:
                expanded(content[start_of_page(content) :], digest, place)
                if reason := damage_of_note(content, digest):
                    return BlobDamaged(digest, place, reason)
        except BlobDamaged as problem:
            return problem
        return None

    def note_of(self, digest: str) -> bytes | None:
        try:
            with self._open(digest) as (descriptor, size):
                head = os.read(descriptor, HEAD)
                if len(head) < frame_size(head):
                    head += os.read(descriptor, frame_size(head) - len(head))
                if head:
                    return note_in(head, digest, size)
        except (FileNotFoundError, BlobDamaged):
            pass
        return b"" if self.packs.holding(digest) is not None else None

    def frame(self, digest: str, longest: int | None = None) -> bytes | None:
        """The page in a blob's file as it is; None: there is none, or the file has more than `longest` bytes. Raises
        BlobDamaged for what is no file of the store.
        """
        content = self._content(digest, longest)
        return None if content is None else content[start_of_page(content) :]

    def _content(self, digest: str, longest: int | None = None) -> bytes | None:
        """A blob's file as it is, its note included; None as with `frame`."""
        try:
            with self._open(digest) as (descriptor, size):
                if longest is not None and size > longest:
                    return None
                return _read_all(descriptor, size) or None
        except FileNotFoundError:
            return None

    @contextmanager
    def _open(self, digest: str) -> Iterator[tuple[int, int]]:
        """The descriptor of a blob's file, and its size. Raises FileNotFoundError; BlobDamaged for what is no file of
        the store.
        """
        checked_hash(digest)
        try:
            with self._shard(digest) as folder:
                descriptor = os.open(f"{digest}{SUFFIX}", _READ, dir_fd=folder)
        except OSError as problem:
            if problem.errno in _REFUSED or problem.errno == errno.ENXIO:
                raise self._no_file(digest) from None
            raise
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._no_file(digest)
            yield descriptor, found.st_size
        finally:
            os.close(descriptor)

    def _no_file(self, digest: str) -> BlobDamaged:
        return BlobDamaged(digest, str(self.path_of(digest)), "it is no plain file, or lies behind a symlink")

    def hashes(self) -> Iterator[str]:
        yield from self.loose_hashes()
        for digest, _ in _packed_in(self.packs.all()):
            if not self.is_loose(digest):
                yield digest

    def loose_hashes(self) -> Iterator[str]:
        """Of the blobs with files of their own."""
        for _, digest in self._names():
            if digest is not None and self.is_loose(digest):
                yield digest

    def strangers(self) -> Iterator[Path]:
        """Everything under the root that is no blob in its place: forged names, symlinks, folders that do not fit."""
        for path, digest in self._names():
            if digest is None or not self.is_loose(digest):
                yield path

    def _names(self) -> Iterator[tuple[Path, str | None]]:
        """(path, hash) of what lies where blobs lie; None for a name that is not that of a blob in this place."""
        for first in _entries(self.root):
            if first.name == SCRATCH and first.is_dir(follow_symlinks=False):
                continue
            if first.name == PACKS and first.is_dir(follow_symlinks=False):
                yield from ((Path(entry.path), None) for entry in _entries(self.root / PACKS) if not _is_pack(entry))
                continue
            if not _is_shard(first):
                yield Path(first.path), None
                continue
            for second in _entries(Path(first.path)):
                if not _is_shard(second):
                    yield Path(second.path), None
                    continue
                for entry in _entries(Path(second.path)):
                    digest = entry.name.removesuffix(SUFFIX)
                    is_blob = entry.name.endswith(SUFFIX) and digest.startswith(first.name + second.name)
                    is_blob = is_blob and re.fullmatch(r"[0-9a-f]{64}", digest) is not None
                    yield Path(entry.path), digest if is_blob else None

    # -- folders -------------------------------------------------------------------------------------

    def _root(self) -> int:
        """The root's descriptor: everything else is opened relative to it, step by step, without symlinks."""
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self.root, _FOLDER)
            except OSError:
                if self.root.is_symlink():
                    raise SymlinkInStore(self.root) from None
                raise
        return self._descriptor

    def _shard(self, digest: str, *, makes: bool = False) -> _Descriptor:
        try:
            first = self._enter(self._root(), digest[:2], makes)
            try:
                return _Descriptor(self._enter(first, digest[2:4], makes))
            finally:
                os.close(first)
        except OSError as problem:
            if makes and problem.errno in _REFUSED:
                self._explain_refusal(digest)
            raise

    def _explain_refusal(self, digest: str) -> None:
        """Raise what says which folder on the way to this blob is none of the store's own."""
        place = self.root
        for name in ("", digest[:2], digest[2:4]):
            place /= name
            if place.is_symlink():
                raise SymlinkInStore(place) from None
            if not place.is_dir():
                raise NotADirectoryError(
                    errno.ENOTDIR, "no folder, where the store needs one; remove it", str(place)
                ) from None

    def _enter(self, folder: int, name: str, makes: bool) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            if not makes:
                raise
        try:
            os.mkdir(name, self._folder_mode, dir_fd=folder)
        except FileExistsError:  # another fetcher was faster
            return os.open(name, _FOLDER, dir_fd=folder)
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
        os.fchmod(descriptor, self._folder_mode)  # whatever the umask
        return descriptor


def open_store(config: Config, *, writer: str = "") -> FileStore:
    """The pages that a config's crawls keep. A `writer` makes the folders, where there are none."""
    return FileStore(config.workspace / "store" / "html", writer=writer, mode=int(config.store.file_mode, 8))


def _read_all(descriptor: int, size: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, max(size, _PIECE)):
        pieces.append(piece)
    return b"".join(pieces)


def _packed_in(packs: list[Pack]) -> Iterator[tuple[str, list[int]]]:
    """The hash of every blob in these packs, each once, in order, with the numbers of the packs that have it."""

    def numbered(number: int) -> Iterator[tuple[str, int]]:
        return ((digest, number) for digest in packs[number].hashes())

    found = heapq.merge(*map(numbered, range(len(packs))))  # each pack has its hashes in order
    for digest, rows in groupby(found, key=itemgetter(0)):
        yield digest, [number for _, number in rows]


def _body_in(pack: Pack, digest: str) -> bytes | None:
    """The bytes of a blob in a pack; None: it is not in there. Raises BlobDamaged."""
    frame = pack.frame(digest)
    return None if frame is None else expanded(frame, digest, str(pack.path), pack.decoder())


def _body_or_none(pack: Pack, digest: str) -> bytes | None:
    try:
        return _body_in(pack, digest)
    except BlobDamaged:
        return None


def _frames_again(pack: Pack, digests: list[str], frame_of: Callable[[bytes], bytes]) -> Iterator[tuple[str, bytes]]:
    """(hash, frame) of these blobs of a pack, compressed again. A damaged one stays as it is, to be found as such."""
    for digest in digests:
        body = _body_or_none(pack, digest)
        if body is not None:
            yield digest, frame_of(body)
        else:
            with suppress(BlobDamaged):  # its index leads out of the pack: there is nothing to keep
                yield digest, pack.frame(digest) or b""


class _Descriptor:
    """A descriptor that is closed at the end of its block."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> int:
        return self._number

    def __exit__(self, *_: object) -> None:
        os.close(self._number)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def _is_pack(entry: os.DirEntry[str]) -> bool:
    return NAME.fullmatch(entry.name) is not None and entry.is_file(follow_symlinks=False)


def _is_shard(entry: os.DirEntry[str]) -> bool:
    return _SHARD.fullmatch(entry.name) is not None and entry.is_dir(follow_symlinks=False)
