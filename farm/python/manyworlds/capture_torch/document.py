"""The program file of what ranks did: groups of one shape are a dimension, ranks that did the same have one program."""

import json

from .recorder import COMPUTE, Unsupported

PARTS = (("exposed_tp", ("tp", "tensor")), ("exposed_pp", ("pp", "pipe")), ("exposed_cp", ("cp", "context")),
         ("exposed_ep", ("ep", "expert")), ("exposed_dp", ("dp", "data", "fsdp", "shard", "world")))


def part_of(name):
    """What waiting for a dimension counts as, by its name."""
    words = name.lower().replace("-", "_").split("_")
    for part, known in PARTS:
        if any(word.startswith(one) if len(one) > 2 else word == one for word in words for one in known):
            return part
    return "exposed_other"


def shape_of(ranks):
    """`4_apart_2` of ranks 1, 3, 5, 7."""
    gaps = {after - before for before, after in zip(ranks, ranks[1:])}
    return f"{len(ranks)}_apart_{gaps.pop()}" if len(gaps) == 1 else f"{len(ranks)}_uneven"


class Dimensions:
    """Groups by dimension: those that have one shape, name and backend, and no rank in common."""

    def __init__(self, groups, world):
        self.names, self.members = [], []
        self.of_group = {}
        keys, taken = [], []
        for number, group in enumerate(groups):
            ranks = group["ranks"]
            if len(ranks) < 2:
                continue
            key = (tuple(rank - ranks[0] for rank in ranks), group["name"], group["backend"])
            found = next((i for i in range(len(keys)) if keys[i] == key and not taken[i] & set(ranks)), None)
            if found is None:
                found = len(keys)
                keys.append(key), taken.append(set()), self.members.append([])
                self.names.append(self._name(group, world))
            taken[found] |= set(ranks)
            self.members[found].append(ranks)
            self.of_group[number] = found

    def _name(self, group, world):
        name = group["name"] or ("world" if len(group["ranks"]) == world else shape_of(group["ranks"]))
        others = sum(one == name or one.startswith(name + "_again_") for one in self.names)
        return f"{name}_again_{others}" if others else name


def ranks_text(ranks):
    """`0-3,6` of a sorted list."""
    pieces = []
    for rank in ranks:
        if pieces and pieces[-1][1] == rank - 1:
            pieces[-1][1] = rank
        else:
            pieces.append([rank, rank])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pieces)


def hop(distance):
    """The dimension of messages to the rank so much further."""
    return f"rank{distance:+d}"


def own_lines(capture, dimensions):
    """A rank's lines with its dimensions and streams by name, and its streams."""
    streams = {COMPUTE: None}

    def stream(name):
        if name.startswith("group "):
            name = dimensions.names[dimensions.of_group[int(name[6:])]]
        streams.setdefault(name)
        return name

    result = []
    for line in capture["lines"]:
        line = dict(line)
        if "stream" in line:
            line["stream"] = stream(line["stream"])
        if "collective" in line:
            line["in"] = dimensions.names[dimensions.of_group[line["in"]]]
        elif "send" in line:
            line["send"] = hop(line["send"])
        elif "receive" in line:
            line["receive"] = hop(-line["receive"])
        result.append(json.dumps(line, separators=(",", ":")))
    return result, list(streams)


def stands_for(captured, world):
    """Which captured rank each rank does as: itself, or the one before it that was captured."""
    result, last = [], None
    for rank in range(world):
        last = rank if rank in captured else last
        if last is None:
            raise Unsupported("rank 0 must be captured: a rank that is not does as the captured one before it")
        result.append(last)
    return result


def document(captures, world, name, tokens):
    """The text of a program file of `captures`, which are what ranks wrote, by rank."""
    first = captures[min(captures)]
    for rank, capture in captures.items():
        if capture["groups"] != first["groups"]:
            raise Unsupported(f"ranks {first['rank']} and {rank} made other process groups: all ranks make all of them in one order")
    dimensions = Dimensions(first["groups"], world)
    classes = {}  # the lines of a program: the ranks that run it
    stands = stands_for(set(captures), world)
    own = {rank: own_lines(capture, dimensions) for rank, capture in captures.items()}
    for rank in range(world):
        lines, streams = own[stands[rank]]
        classes.setdefault((tuple(streams), tuple(lines)), []).append(rank)
    notes = list(dict.fromkeys(note for capture in captures.values() for note in capture["notes"]))
    if len(captures) < world:
        notes.insert(0, f"{len(captures)} of {world} ranks were captured: any other does as the captured one before it")
    notes.append("times of kernels are not measured: they follow from shapes and bytes, and hosts take no time")
    header = {"manyworlds_program": 1, "name": name, "origin": f"PyTorch {first['torch']} without a GPU", "notes": notes}
    if tokens:
        header["tokens_per_step"] = tokens
    lines = [json.dumps(header)]
    lines += communicators(dimensions, classes, world)
    for number, ((streams, program), ranks) in enumerate(classes.items()):
        lines.append(json.dumps({"program": f"as rank {stands[ranks[0]]}", "ranks": ranks_text(ranks), "streams": list(streams)}))
        lines += program
    return "\n".join(lines) + "\n"


def communicators(dimensions, classes, world):
    """The lines of dimensions and groups that programs use."""
    used, hops = set(), {}
    for (streams, program), ranks in classes.items():
        for text in program:
            line = json.loads(text) if any(word in text for word in ('"in"', '"send"', '"receive"')) else {}
            if "in" in line:
                used.add(line["in"])
            for word in ("send", "receive"):
                if word in line:
                    hops.setdefault(line[word], {}).setdefault(word, set()).update(ranks)
    result = [json.dumps({"dimension": name, "part": part_of(name)}) for name in dimensions.names if name in used]
    result += [json.dumps({"dimension": name, "kind": "pairs", "part": "exposed_pp"}) for name in hops]
    for name, members in zip(dimensions.names, dimensions.members):
        if name in used:
            result.append(json.dumps({"groups": name, "ranks": members}))
    for name, ends in hops.items():
        distance = int(name[4:])
        pairs = {(rank, rank + distance) for rank in ends.get("send", ())} | {(rank - distance, rank) for rank in ends.get("receive", ())}
        outside = [pair for pair in pairs if not (0 <= min(pair) and max(pair) < world)]
        if outside:
            raise Unsupported(f"ranks {sorted(outside)[0]} exchange messages, where ranks are 0 to {world - 1}: capture more ranks")
        result.append(json.dumps({"groups": name, "ranks": sorted(map(list, pairs))}))
    return result
