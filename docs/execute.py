#!/usr/bin/env python3
"""execute.py [--symbols] PLAN OUT PACKET...: runs a plan on files, into OUT/coded.<n>.

PLAN is a file of volley plan --json, and PACKET n the initial packet n. What OUT gets is what volley encode
leaves in its directory: coded file n is that of the n-th processor that has a result. With --symbols the files
hold symbols, and are not packed. This is the part of docs/format.md about plans as a program, and needs nothing of
Volley. A plan that breaks a rule of it is refused before there is a file. Its fields are primes and powers of 2.
"""
import functools, json, os, re, sys

TERM = (int, str)
ROUND = {"compute": [[TERM]], "sends": [{"port": int, "dst": int, "slots": [int]}], "recvs": [{"port": int, "src": int, "count": int}]}
PROGRAM = {"proc": int, "rows": [int], "rounds": [ROUND], "compute": [[TERM]], "outputs": [{"slot": int, "column": int}]}
PLAN = {"format": str, "version": int, "algorithm": str, "parameters": str, "field": str, "processors": int, "ports": int, "rows": int,
        "columns": int, "pieces": int, "phases": [{"name": str, "rounds": int}], "notes": [str], "layers": [str], "programs": [PROGRAM]}
OPTIONAL = "pieces", "notes", "layers"
NAMES = {int: "an integer", str: "a string"}
PRIMES = {"goldilocks": 2**64 - 2**32 + 1, "babybear": 15 * 2**27 + 1, "koalabear": 127 * 2**24 + 1,
          "bls12-381": 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001,
          "bn254": 0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001}
POLYNOMIALS = dict(enumerate((0x7, 0xb, 0x13, 0x25, 0x43, 0x83, 0x11d, 0x211, 0x409, 0x805, 0x1053, 0x201b, 0x402b, 0x8003, 0x1100b), 2))


def need(ok, where, text):
    if not ok:
        raise ValueError(f"{where}: {text}")


class Field:
    """A field of q elements. A vector is a list of symbols, the codes of elements."""

    def __init__(self, name):
        power = re.fullmatch(r"2\^([2-9]|1[0-6])(:0x[1-9a-f][0-9a-f]*)?", name)
        if power:
            self.degree = int(power[1])
            self.q, usual = 1 << self.degree, POLYNOMIALS[self.degree]
            self.polynomial = int(power[2][1:], 16) if power[2] else usual
            known = not power[2] or self.polynomial >> self.degree == 1 and self.polynomial != usual and irreducible(self.polynomial)
        else:
            self.degree, self.q = None, PRIMES.get(name) or int(name if re.fullmatch("[1-9][0-9]{0,9}", name) else 0)
            known = name in PRIMES or 1 < self.q < 2**31 and self.q not in PRIMES.values() and all(self.q % d for d in range(2, int(self.q**0.5) + 1))
        need(known, f"field {name!r}", "want a prime, a power of 2 or a name, as docs/format.md writes them")
        self.size = next(n for n in (1, 2, 4, 8, 32) if self.q <= 256**n)  # bytes of a symbol
        bits = self.q.bit_length() - 1
        self.bits = bits if bits <= 16 else bits - bits % 8  # of a file, in a symbol

    @functools.cache
    def tables(self, c):
        """The products of c with the low byte of a symbol, and with its high byte."""
        tables = [[0], [0]]
        for b in range(self.degree):
            tables[b // 8] += [v ^ c for v in tables[b // 8]]
            c = c << 1 if c << 1 < self.q else c << 1 ^ self.polynomial
        return tables

    def sum(self, terms, length):
        """The sum of coefficients times vectors."""
        total = [0] * length
        for c, vector in terms:
            if self.degree:
                low, high = self.tables(c)
                total = [a ^ low[x & 255] ^ high[x >> 8] for a, x in zip(total, vector)]
            else:
                total = [(a + c * x) % self.q for a, x in zip(total, vector)]
        return total

    def pack(self, data):
        """The symbols that hold the bits of a file."""
        symbols, mask = [], (1 << self.bits) - 1
        for at in range(0, len(data), self.bits):  # so many bytes are 8 symbols
            part = data[at:at + self.bits]
            word = int.from_bytes(part, "little")
            symbols += [word >> n & mask for n in range(0, 8 * len(part), self.bits)]
        return symbols

    def symbols(self, data, path):
        """The symbols that a file holds."""
        need(len(data) % self.size == 0, path, f"{len(data)} bytes: a symbol has {self.size}")
        symbols = [int.from_bytes(data[at:at + self.size], "little") for at in range(0, len(data), self.size)]
        need(all(x < self.q for x in symbols), path, "a symbol that is outside the field")
        return symbols


def irreducible(polynomial):
    for d in range(2, 1 << (polynomial.bit_length() + 1) // 2):
        rest = polynomial
        while rest.bit_length() >= d.bit_length():
            rest ^= d << rest.bit_length() - d.bit_length()
        if not rest:
            return False
    return True


def shape(value, kind, where, name=""):
    """Checks keys and types."""
    if isinstance(kind, dict):
        need(isinstance(value, dict), where, f"{name}: want an object that has each key once")
        for key in [*value, *kind]:
            need(key in kind, where, f"unknown key {key!r}")
            need(key in value or key in OPTIONAL, where, f"key {key!r} is missing")
        for key in value:
            shape(value[key], kind[key], where, key)
    elif isinstance(kind, list):
        need(isinstance(value, list), where, f"{name}: want a list")
        for i, x in enumerate(value):
            shape(x, kind[0], {"programs": f"processor {i}", "rounds": f"{where} round {i}"}.get(name, where), name)
    elif isinstance(kind, tuple):
        need(isinstance(value, list) and [type(x) for x in value] == list(kind), where, f"{name}: want [slot, \"coefficient\"]")
        need(re.fullmatch("0|[1-9][0-9]{0,77}", value[1]), where, f"coefficient {value[1]!r}: want a decimal number without sign or leading zeros")
    else:
        need(type(value) is kind, where, f"{name}: want {NAMES[kind]}")


def read(text):
    """The plan of a text, which keeps all rules, and its field."""
    plan = json.loads(text, object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else pairs)
    shape(plan, PLAN, "the plan", "it")
    need((plan["format"], plan["version"]) == ("volley-plan", 1), "the plan", "want format volley-plan, version 1")
    n, p, pieces, rounds = plan["processors"], plan["ports"], plan.setdefault("pieces", 1), [x["rounds"] for x in plan["phases"]]
    need(n == len(plan["programs"]) > 0, "the plan", f"{len(plan['programs'])} programs for {n} processors")
    need(1 <= p <= max(1, n - 1), "the plan", f"{p} ports: want 1 to {max(1, n - 1)}")
    need(pieces > 0 == plan["rows"] % pieces == plan["columns"] % pieces, "the plan", f"{pieces} pieces: want a divisor of rows and columns")
    need(min(rounds, default=0) >= 0, "the plan", "a phase of fewer than 0 rounds")
    field, sent, received, rows, columns = Field(plan["field"]), {}, {}, set(), []
    for k, program in enumerate(plan["programs"]):
        check(k, program, plan, field, sum(rounds), sent, received)
        mine = [x["column"] for x in program["outputs"]]
        rows.update(program["rows"])
        columns += mine
        for what, numbers in ("row", program["rows"]), ("column", mine):
            for i, x in enumerate(numbers):
                need(0 <= x < plan[what + "s"], f"processor {k}", f"{what} {x}: want 0 to {plan[what + 's'] - 1}")
                need(x == numbers[i - i % pieces] + i % pieces and x % pieces == i % pieces, f"processor {k}", f"{what} {x} is not piece {i % pieces} of the packet")
            need(len(numbers) % pieces == 0, f"processor {k}", f"{what}s of a part of a packet")
    for (t, src, port), (dst, count) in [*received.items(), *sent.items()]:
        need(sent.get((t, src, port)) == received.get((t, src, port)), f"processor {src} round {t} port {port}",
             f"a message to processor {dst} of {count} that is not both sent and received")
    need(len(rows) == plan["rows"], "the plan", f"inputs for {len(rows)} rows: want {plan['rows']}")
    need(len(columns) == len(set(columns)) == plan["columns"], "the plan", f"{len(columns)} outputs: want one for each of {plan['columns']} columns")
    return plan, field


def check(k, program, plan, field, rounds, sent, received):
    """Checks a program by itself, and notes its messages."""
    where = f"processor {k}"
    need(program["proc"] == k, where, f"the program of processor {program['proc']} stands there")
    need(len(program["rounds"]) == rounds, where, f"{len(program['rounds'])} rounds: want the {rounds} of the phases")
    slots = len(program["rows"])

    def compute(combinations):
        nonlocal slots
        for combination in combinations:
            for slot, coefficient in combination:
                need(0 <= slot < slots, where, f"slot {slot}: there are {slots}")
                need(int(coefficient) < field.q, where, f"coefficient {coefficient} is outside the field {plan['field']}")
            slots += 1

    for t, step in enumerate(program["rounds"]):
        where = f"processor {k} round {t}"
        compute(step["compute"])
        for x in step["sends"]:
            end(where, x["port"], x["dst"], len(x["slots"]), k, plan)
            need((t, k, x["port"]) not in sent, where, f"port {x['port']} sends twice")
            need(all(0 <= slot < slots for slot in x["slots"]), where, f"slots {x['slots']} are sent: there are {slots}")
            sent[t, k, x["port"]] = x["dst"], len(x["slots"])
        for i, x in enumerate(step["recvs"]):
            end(where, x["port"], x["src"], x["count"], k, plan)
            need(i == 0 or step["recvs"][i - 1]["port"] < x["port"], where, "want receives in the order of ports, each once")
            need((t, x["src"], x["port"]) not in received, where, f"a message of processor {x['src']} that another one receives")
            received[t, x["src"], x["port"]] = k, x["count"]
            slots += x["count"]
    where = f"processor {k}"
    compute(program["compute"])
    for x in program["outputs"]:
        need(0 <= x["slot"] < slots, where, f"output in slot {x['slot']}: there are {slots}")


def end(where, port, partner, count, k, plan):
    need(0 <= port < plan["ports"], where, f"port {port}: want 0 to {plan['ports'] - 1}")
    need(0 <= partner < plan["processors"] and partner != k, where, f"a message to or from processor {partner}: want another one of 0 to {plan['processors'] - 1}")
    need(count > 0, where, f"a message of {count} elements")


def run(plan, field, packets):
    """The coded packets, in the order of processors, each with its column and processor."""
    pieces, length = plan["pieces"], max(map(len, packets), default=0)
    each = -(-length // pieces)
    elements = [(x + [0] * (each * pieces))[i * each:(i + 1) * each] for x in packets for i in range(pieces)]
    programs = plan["programs"]
    memory = [[elements[row] for row in program["rows"]] for program in programs]

    def compute(k, combinations):
        for terms in combinations:
            memory[k].append(field.sum([(int(c), memory[k][slot]) for slot, c in terms], each))

    for t in range(sum(x["rounds"] for x in plan["phases"])):
        messages = {}
        for k, program in enumerate(programs):
            compute(k, program["rounds"][t]["compute"])
            for x in program["rounds"][t]["sends"]:
                messages[k, x["port"]] = [memory[k][slot] for slot in x["slots"]]
        for k, program in enumerate(programs):
            for x in program["rounds"][t]["recvs"]:
                memory[k] += messages[x["src"], x["port"]]
    for k, program in enumerate(programs):
        compute(k, program["compute"])
        parts = [memory[k][x["slot"]] for x in program["outputs"]]
        for i in range(0, len(parts), pieces):
            packet = sum(parts[i:i + pieces], [])
            need(not any(packet[length:]), f"processor {k}", f"it mixes pieces: packets of {length} symbols have to be a multiple of {pieces} pieces")
            yield packet[:length], program["outputs"][i]["column"] // pieces, k


def main(path, out, *files, symbols=False):
    with open(path, encoding="utf-8") as f:
        plan, field = read(f.read())
    need(len(files) == plan["rows"] // plan["pieces"], path, f"{plan['rows'] // plan['pieces']} initial packets, and {len(files)} files")
    packets = []
    for name in files:
        with open(name, "rb") as f:
            packets.append(field.symbols(f.read(), name) if symbols else field.pack(f.read()))
    coded = list(run(plan, field, packets))
    os.makedirs(out)  # an error where there is something
    for n, (packet, column, k) in enumerate(coded):
        name = f"coded.{n:0{len(str(len(coded) - 1))}}"
        with open(os.path.join(out, name), "xb") as f:
            f.write(b"".join(x.to_bytes(field.size, "little") for x in packet))
        print(f"{name}: column {column}, at processor {k}")


if __name__ == "__main__":
    flags = [x for x in sys.argv[1:] if x == "--symbols"]
    arguments = [x for x in sys.argv[1:] if x != "--symbols"]
    if len(arguments) < 3:
        sys.exit(__doc__)
    try:
        main(*arguments, symbols=bool(flags))
    except (OSError, ValueError, RecursionError) as e:
        sys.exit(f"{arguments[0]}: {e}")
