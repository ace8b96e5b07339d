#!/usr/bin/env python3
"""recover.py [--key FILE] OUT DIR...: the files of the lost nodes of a group, into OUT/<node>.

The DIRs are those that volley protect was given, in order. One that is lost is missing or
empty; the others have to be whole. With --key only manifests count that were made with the key
in FILE. This is docs/format.md as a program, and needs nothing of Volley. It holds the data of all
nodes in memory. What it may not set of a file, such as its owner, it names on standard error.
"""
import base64, functools, glob, hashlib, hmac, json, os, re, sys, zlib

key = None


def digest(data):
    return hashlib.sha256(data).hexdigest()


def name(text):
    """The bytes of a path or target."""
    return base64.b64decode(text[7:]) if text.startswith("base64:") else text.encode()


def unseal(path, keyed=True):
    """The JSON of a manifest that is whole, or of another file, which no key is for, and its digest."""
    stored = open(path, "rb").read()
    text, _, seal = stored.partition(b"\n")
    match = re.fullmatch(rb'\{"sha256":"%s"(,"hmac_sha256":"([0-9a-f]{64})")?\}\n' % digest(text).encode(), seal)
    if not match:
        print(f"{path}: line 2 is not the SHA-256 of line 1", file=sys.stderr)
        return None, None
    if key and keyed and not hmac.compare_digest(match[2] or b"", hmac.new(key, b"volley-group manifest\n" + text, "sha256").hexdigest().encode()):
        print(f"{path}: was not made with the key", file=sys.stderr)
        return None, None
    return json.loads(text), digest(stored)


def in_force(dirs):
    """The manifest that counts: the newest that K-R nodes have, and more than half of those that have any."""
    found, nodes = {}, set()
    for d, path in [(d, p) for d in dirs for p in glob.glob(glob.escape(d) + "/.volley/generation.*/manifest.json")]:
        m, root = unseal(path)
        if m:
            nodes.add(d)
            found.setdefault((m["generation"], root), []).append(m)
    latest = max((m.get("epoch", 0) for ms in found.values() for m in ms), default=0)  # it makes the others void
    found = {g: ms for g, ms in found.items() if ms[0].get("epoch", 0) == latest}
    alike = {g: ms for g, ms in found.items() if ms[0]["nodes"] == len(dirs)} or found  # others while a group is resized
    enough = [(g, ms[0]) for (g, _), ms in alike.items() if len(ms) >= len(dirs) - ms[0]["tolerate"] and 2 * len(ms) > len(nodes)]
    if not enough and len(found) > 1:
        sys.exit(f"cannot tell which manifest counts: {sorted(nodes)} have different ones. Move away what is not to be trusted")
    newest = max(enough or [(g, ms[0]) for (g, _), ms in found.items()], key=lambda x: x[0], default=(0, {}))
    if any(g > newest[0] for g, _ in found):
        print("some nodes have a later generation, which too few have", file=sys.stderr)
    return newest[1]


def whole_record(path):
    """The record that a file is: its lines, and in place of those like "=generation offset bytes" what that has there."""
    record = []
    for line in open(path, "rb"):
        if line.startswith(b"="):
            generation, offset, length = map(int, line[1:].split())
            with open(f"{path}@{generation}", "rb") as earlier:
                earlier.seek(offset)
                line = earlier.read(length)
        record.append(line)
    return b"".join(record)


def unpack(record):
    """What a record has: each line is a part of its text, which is lines of JSON."""
    parts = [line.replace(b"=J", b"\n").replace(b"=@", b"\0").replace(b"=}", b"=") for line in record.split(b"\n")]
    first, *entries = [json.loads(line) for line in b"".join(zlib.decompress(part, 31) for part in parts if part).splitlines()]
    return dict(first, entries=entries)


def records(m, dirs):
    """What each node had: its record, which the node has, or which others have copies of."""
    found = {}
    for path in [p for d in dirs for p in glob.glob(f"{glob.escape(d)}/.volley/generation.{m['generation']}/record*")]:
        if "@" not in os.path.basename(path):
            text = whole_record(path)
            found[digest(text)] = text
    for n, x in enumerate(m["members"]):
        if x["sha256"] not in found:
            sys.exit(f"too much is lost: no node has the record of node {n}")
    return [unpack(found[x["sha256"]]) for x in m["members"]]


def blocks(m, count):
    """Of each of so many chunks where its blocks lie: row by row."""
    size, length = m["chunk_bytes"], m["block_bytes"]
    rows = [(row, min(length, size - row)) for row in range(0, size, length)]
    return [[(row * count + c * n, n) for row, n in rows] for c in range(count)]


def part_digest(m):
    """What makes the digest of a segment or parity block. Of the three only SHA-256 comes with Python."""
    try:
        if m["digest"] == "blake3":
            import blake3
            return lambda part: blake3.blake3(part).digest()
        if m["digest"] == "xxh3":
            import xxhash
            return lambda part: xxhash.xxh3_128_digest(bytes(part))
    except ImportError as e:
        sys.exit(f"the group has digest {m['digest']}: install the Python module {e.name}")
    return lambda part: hashlib.sha256(part).digest()


def same(m, parts, text):
    """Whether parts have the digests that a record has."""
    of = part_digest(m)
    return b"".join(of(part) for part in parts) == bytes.fromhex(text or "")


def with_data(entries):
    """The files that have bytes. A hard link has a size, and no data of its own."""
    return [e for e in entries if e["type"] == "file" and e.get("size")]


def segments(m, entries):
    """The parts of files in blocks, in the order of their places."""
    ends = sorted(at + n for chunk in blocks(m, m["data_chunks"]) for at, n in chunk)
    files = sorted((e.get("offset", 0), e["size"]) for e in with_data(entries))
    i = 0
    for at, size in files:
        stop = at + size
        while at < stop:
            while ends[i] <= at:
                i += 1
            yield at, min(ends[i], stop)
            at = min(ends[i], stop)


def stored_parity(m, order, directory):
    """The parity of a node: what the base has, and over it the blocks that later generations have changed."""
    length = m["parity_chunks"] * m["chunk_bytes"]
    parity = bytearray(open(os.path.join(directory, "parity"), "rb").read()[:length].ljust(length, b"\0"))
    index = os.path.join(directory, "changes")
    changes, _ = unseal(index, keyed=False) if os.path.exists(index) else (None, None)
    for file in changes["files"] if changes else ():
        content = open(os.path.join(directory, f"changes.{file['generation']}"), "rb").read()
        for first, end, position in file["blocks"]:
            for at, n in order[first:end]:
                parity[at:at + n] = content[position * m["block_bytes"]:][:n]
                position += 1
    return bytes(parity)


def read(m, n, member, directory):
    """The chunks of a node that is whole, by node, kind and number."""
    chunks = {}
    data = bytearray(m["data_chunks"] * m["chunk_bytes"])  # zeros between the files, and after them
    for e in with_data(member["entries"]):
        offset = e.get("offset", 0)
        data[offset:offset + e["size"]] = open(os.path.join(os.fsencode(directory), name(e["path"])), "rb").read()
    check(m, n, member, data, directory)
    order = sorted(b for chunk in blocks(m, m["parity_chunks"]) for b in chunk if b[1])
    parity = stored_parity(m, order, os.path.join(directory, ".volley", f"generation.{m['generation']}"))
    if not same(m, [parity[at:at + length] for at, length in order], member["parity"]):
        sys.exit(f"{directory}: its parity is not what node {n} had when it was protected: are the directories in order?")
    for kind, stored in ("data", bytes(data)), ("parity", parity):
        for c, chunk in enumerate(blocks(m, m[kind + "_chunks"])):
            chunks[n, kind, c] = b"".join(stored[at:at + length] for at, length in chunk)
    return chunks


def check(m, n, member, data, what):
    if not same(m, [data[a:b] for a, b in segments(m, member["entries"])], member["segments"]):
        sys.exit(f"{what}: its data is not what node {n} had when it was protected: are the directories in order?")


def codewords(m):
    """Of each codeword the data, the parity, and what its coefficients are the inverses of."""
    k, r = m["nodes"], m["tolerate"]
    for t in range(k):
        data = [((t + r + i) % k, "data", i) for i in range(k - r)]
        yield data, [((t + j) % k, "parity", j) for j in range(r)], lambda i, j: i ^ (k - r + j)


class Field:
    """The field of 2^(8·width) elements. Sums are xor."""

    def __init__(self, called):
        width, polynomial = {"2^8": (1, 0x11d), "2^16": (2, 0x1100b)}[called]
        self.width, self.order, self.powers, x = width, 256**width - 1, [], 1
        for _ in range(self.order):
            self.powers.append(x)
            x = x << 1 if x << 1 <= self.order else x << 1 ^ polynomial
        self.log = {x: n for n, x in enumerate(self.powers)}

    def mul(self, a, b):
        return self.powers[(self.log[a] + self.log[b]) % self.order] if a and b else 0

    def inverse(self, a):
        return self.powers[-self.log[a] % self.order]

    @functools.cache
    def tables(self, c):
        """By a and b: what byte b of a symbol adds to byte a of c times the symbol."""
        places = range(0, 8 * self.width, 8)
        return [[bytes(self.mul(c, x << b) >> a & 255 for x in range(256)) for b in places] for a in places]

    def sum(self, terms):
        """The sum of coefficients times chunks."""
        w, result = self.width, bytearray(len(terms[0][1]))
        for a in range(w):
            total = 0
            for c, chunk in terms:
                for b, table in enumerate(self.tables(c)[a]):
                    total ^= int.from_bytes(chunk[b::w].translate(table), "little")
            result[a::w] = total.to_bytes(len(result) // w, "little")
        return bytes(result)


def solve(field, chunks, data, parity, divisor):
    """Adds the data of a codeword that is missing to the chunks."""
    w, there = field.width, [i for i, s in enumerate(data) if s in chunks]
    missing, rows = [i for i, s in enumerate(data) if s not in chunks], []
    for j in [j for j, s in enumerate(parity) if s in chunks][:len(missing)]:
        # The coefficients of what is missing, as symbols, and behind them what its sum is.
        coefficients = b"".join(field.inverse(divisor(i, j)).to_bytes(w, "little") for i in missing)
        known = [(field.inverse(divisor(i, j)), chunks[data[i]]) for i in there]
        rows.append(coefficients + field.sum([(1, chunks[parity[j]])] + known))
    for p in range(len(rows)):  # Gauss and Jordan's way; no pivot of a Cauchy matrix is 0
        at = lambda row: int.from_bytes(row[p * w:(p + 1) * w], "little")
        rows[p] = field.sum([(field.inverse(at(rows[p])), rows[p])])
        for q in set(range(len(rows))) - {p}:
            rows[q] = field.sum([(1, rows[q]), (at(rows[q]), rows[p])])
    chunks.update({data[i]: row[len(missing) * w:] for i, row in zip(missing, rows)})


def inside(entries):
    """Ends the program where a name leads out of the node's directory, or through a symbolic link."""
    types = {name(e["path"]): e["type"] for e in entries}
    for e in entries:
        path = name(e["path"])
        parts, ups = path.split(b"/"), [path[:i] for i, c in enumerate(path) if c == ord("/")]
        if (path != b"." and {b"", b".", b".."} & set(parts) or parts[0] == b".volley" or b"\0" in path or any(types.get(up) != "dir" for up in ups)
                or e["type"] == "link" and types.get(name(e["target"])) != "file"):
            sys.exit(f"the record names {path}, which is not below the node's directory: do not trust it")


def write(out, entries, data):
    """The files, directories and links of a node."""
    inside(entries)
    os.makedirs(out, 0o700)  # an error where there is something; closed to others until all is right
    for acl in "access", "default":  # which the directory above may give to what is made in it
        may("removexattr", out, "system.posix_acl_" + acl)
    for e in sorted(entries, key=lambda e: ("dir", "file", "link", "symlink").index(e["type"])):
        path = os.path.join(out, name(e["path"]))
        if e["type"] == "dir":
            os.makedirs(path, exist_ok=True)
        elif e["type"] == "symlink":
            os.symlink(name(e["target"]), path)
        elif e["type"] == "link":
            os.link(os.path.join(out, name(e["target"])), path)
        else:
            fill(path, data[e.get("offset", 0):][:e.get("size", 0)], e.get("sparse"))
    unset = {}
    # Innermost first: what changes in a directory changes its time.
    for e in sorted(entries, key=lambda e: 0 if e["path"] == "." else 1 + name(e["path"]).count(b"/"), reverse=True):
        path = os.path.join(out, name(e["path"]))
        for what in describe(path, e) if e["type"] != "link" else ():
            unset.setdefault(what, []).append(path)
    for what, paths in unset.items():
        print(f"{paths[0]}: {what} not restored, as this user or system may not; so for {len(paths)} in all", file=sys.stderr)


def fill(path, content, sparse):
    """A file, with holes for zeros if it had holes."""
    step = 4096 if sparse else len(content) or 1
    with open(path, "xb") as f:
        for at in range(0, len(content), step):
            if not sparse or content[at:at + step].strip(b"\0"):
                f.seek(at)
                f.write(content[at:at + step])
        f.truncate(len(content))


def may(call, *arguments, **options):
    """Whether this system has a call of os, and this user may do it."""
    try:
        getattr(os, call)(*arguments, **options)
        return True
    except (AttributeError, OSError):
        return False


def describe(path, e):
    """Sets owner, attributes, mode and, last, time. Yields what may not be set."""
    mode, owner = e["mode"], e.get("owner")
    owned = bool(owner) and may("chown", path, owner["uid"], owner["gid"], follow_symlinks=False)
    if owner and not owned:
        yield "owner"
    for key, value in e.get("attributes", {}).items():
        # A capability is for programs of the owner that was meant, as setuid is.
        allowed = owned or name(key) != b"security.capability"
        if not (allowed and may("setxattr", path, name(key), base64.b64decode(value), follow_symlinks=False)):
            yield f"attribute {name(key).decode(errors='replace')!a}"
    if e["type"] != "symlink":
        if mode & 0o6000 and not owned:
            mode &= ~0o6000
            yield "setuid and setgid"
        os.chmod(path, mode)
    at = e["mtime"] * 10**9 + e.get("mtime_ns", 0)
    os.utime(path, ns=(at, at), follow_symlinks=False)


def main(out, *dirs):
    m, lost = in_force(dirs), [n for n, d in enumerate(dirs) if not os.path.isdir(d) or not os.listdir(d)]
    if m.get("format") != "volley-group" or m.get("version") != 6 or m.get("nodes") != len(dirs):
        sys.exit(f"no manifest of volley-group, version 6, of {len(dirs)} nodes: give the directories of all, lost ones too")
    if len(lost) > m["tolerate"]:
        sys.exit(f"nodes {lost} are lost: {m['tolerate']} at most can be recovered")
    field, chunks = Field(m["field"]), {}
    members = records(m, dirs)
    for n in set(range(len(dirs))) - set(lost):
        chunks.update(read(m, n, members[n], dirs[n]))
    for codeword in codewords(m):
        solve(field, chunks, *codeword)
    for n in lost:
        data = bytearray(m["data_chunks"] * m["chunk_bytes"])
        for c, chunk in enumerate(blocks(m, m["data_chunks"])):
            within = 0
            for at, length in chunk:
                data[at:at + length] = chunks[n, "data", c][within:within + length]
                within += length
        path = os.path.join(os.fsencode(out), b"%d" % n)
        check(m, n, members[n], data, "what came back")
        write(path, members[n]["entries"], data)


arguments = sys.argv[1:]
try:
    if arguments[:1] == ["--key"] and len(arguments) > 1:
        key, arguments = open(arguments[1], "rb").read().removesuffix(b"\n"), arguments[2:]
    if len(arguments) < 2 or key == b"":
        sys.exit(__doc__)
    main(*arguments)
except OSError as e:
    sys.exit(str(e))
