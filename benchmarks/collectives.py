"""What crosses devices in a compiled program, and whether it does so inside of a loop."""

import collections
import re


NAMES = "all-reduce|all-gather|reduce-scatter|collective-permute|all-to-all|collective-broadcast"


def collectives(text):
    """Counts of `(is_in_loop, name, type)` in the text of a compiled program."""
    bodies, name = {}, None
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith(" "):
            name = re.match(r"(?:ENTRY )?%?([\w.\-]+)", line)[1]
            bodies[name] = []
        elif name is not None:
            bodies[name].append(line)
    inside = _called_from_loops(bodies)
    found = collections.Counter()
    for name, lines in bodies.items():
        for line in lines:
            if match := re.search(rf"= (\S+|\(.*?\)) ({NAMES})(-start)?\(", line):
                found[name in inside, match[2], match[1]] += 1
    return found


def _called_from_loops(bodies):
    calls, loops = collections.defaultdict(set), set()
    called = re.compile(
        r"(condition|body|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)"
    )
    for name, lines in bodies.items():
        for line in lines:
            for kind, other in called.findall(line):
                calls[name].add(other)
                if kind in ("condition", "body"):
                    loops.add(other)
            for branches in re.findall(r"branch_computations=\{([^}]*)\}", line):
                calls[name] |= {branch.strip().lstrip("%") for branch in branches.split(",")}
    inside, left = set(), list(loops)
    while left:
        if (name := left.pop()) not in inside:
            inside.add(name)
            left += calls[name]
    return inside
