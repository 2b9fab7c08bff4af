"""Process groups that send nothing: a collective is recorded, and its outputs have their shapes."""

import itertools

import torch
import torch.distributed as dist
from . import costs
from .recorder import Unsupported
from .storages import GPU, has_data

BACKEND = "manyworlds"
BaseWork = getattr(dist, "_Work", None) or dist.Work


class Later:
    """A future of what follows a collective: it is done where it is waited for, as no one else's stream is known."""

    def __init__(self, make):
        self._make, self._made = make, []

    def wait(self):
        if not self._made:
            self._made.append(self._make())
        return self._made[0]

    value = wait

    def done(self):
        return True

    def then(self, function):
        return Later(lambda: (self.wait(), function(self))[1])

    def add_done_callback(self, function):
        function(self)


class Work(BaseWork):
    """A collective that runs: wait() lets the current stream wait for it, as with NCCL."""

    def __init__(self, recorder, events, result):
        super().__init__()
        self._recorder, self.events, self._result = recorder, events, result

    def wait(self, timeout=None):
        for event in self.events:
            self._recorder.wait_event(event)
        return True

    synchronize = wait

    def is_completed(self):
        return True

    is_success = is_completed

    def result(self):
        return self._result

    def get_future(self):
        return Later(lambda: (self.wait(), self._result)[1])


class AnyStore(dist.Store):
    """A store in which all other ranks have done what a barrier waits for."""

    def __init__(self, world):
        super().__init__()
        self._world, self._values = world, {}

    def add(self, key, amount):
        if "barrier" in key:
            return self._world
        self._values[key] = str(int(self._values.get(key, b"0")) + amount).encode()
        return int(self._values[key])

    def set(self, key, value):
        self._values[key] = value.encode() if isinstance(value, str) else value

    def get(self, key):
        if key not in self._values:
            raise Unsupported(f"the store has no '{key}': another rank would set it, and ranks are captured apart")
        return self._values[key]

    def wait(self, *ignored):
        return None

    def set_timeout(self, *ignored):
        return None


class Group(dist.ProcessGroup):
    """A communicator on a stream of its own. `number` is that of its place among the groups that the script made."""

    def __init__(self, rank, size, traffic, number):
        super().__init__(rank, size)
        self.traffic, self.number, self.members = traffic, number, size

    def getBackendName(self):
        return BACKEND

    def _set_sequence_number_for_group(self):
        return None

    def _get_sequence_number_for_group(self):
        return 0

    def _record(self, kind, measured, result, **more):
        return self.traffic.collective(self, kind, measured, result, **more)

    def allreduce(self, tensors, options=None):
        return self._record("all_reduce", tensors, tensors)

    def allreduce_coalesced(self, tensors, options=None):
        return self._record("all_reduce", tensors, tensors)

    def broadcast(self, tensors, options=None):
        return self._record("broadcast", tensors, tensors, root=options.rootRank if options else 0)

    def reduce(self, tensors, options=None):
        return self._record("reduce", tensors, tensors, root=options.rootRank if options else 0)

    def allgather(self, outputs, inputs, options=None):
        fill(outputs[0], inputs[0])
        return self._record("all_gather", outputs[0], outputs, copied=True)

    def allgather_coalesced(self, outputs, inputs, options=None):
        return self._record("all_gather", [tensor for one in outputs for tensor in one], outputs)

    def _allgather_base(self, output, source, options=None):
        if has_data(output):
            output.view(self.members, -1).copy_(source.reshape(1, -1).expand(self.members, -1))
        return self._record("all_gather", [output], [output])

    def allgather_into_tensor_coalesced(self, outputs, inputs, options=None):
        return self._record("all_gather", outputs, outputs)

    def reduce_scatter(self, outputs, inputs, options=None):
        return self._record("reduce_scatter", inputs[0], outputs, copied=True)

    def _reduce_scatter_base(self, output, source, options=None):
        if has_data(output):
            output.copy_(source.view(self.members, -1)[self.rank()].view_as(output))
        return self._record("reduce_scatter", [source], [output])

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, options=None):
        return self._record("reduce_scatter", inputs, outputs)

    def alltoall_base(self, output, source, output_splits, input_splits, options=None):
        counts = None
        if input_splits and len(set(input_splits)) > 1:
            row = costs.size_of(source) // max(1, source.shape[0])
            counts = [count * row for count in input_splits]
        return self._record("all_to_all", [source], [output], counts=counts)

    def alltoall(self, outputs, inputs, options=None):
        sizes = [costs.size_of(tensor) for tensor in inputs]
        return self._record("all_to_all", inputs, outputs, counts=sizes if len(set(sizes)) > 1 else None)

    def barrier(self, opts=None):
        """NCCL's reduces one byte on the GPU, and its host waits for that."""
        work = self.traffic.collective(self, "all_reduce", 1, [])
        work.wait()
        return work

    def send(self, tensors, peer, tag=0):
        return self.traffic.transfer(self, "send", tensors[0], peer)

    def recv(self, tensors, peer, tag=0):
        return self.traffic.transfer(self, "receive", tensors[0], peer)

    def recv_anysource(self, tensors, tag=0):
        raise Unsupported("recv from any rank: a program says from whom")

    def gather(self, outputs, inputs, options):
        """NCCL's is a group of messages to the root."""
        root, own = options.rootRank, inputs[0]
        if self.rank() != root:
            return self.traffic.transfer(self, "send", own, root)
        fill(outputs[0], own)
        return self._messages("receive", outputs[0], root)

    def scatter(self, outputs, inputs, options):
        """And this one of messages from it."""
        root = options.rootRank
        if self.rank() != root:
            return self.traffic.transfer(self, "receive", outputs[0], root)
        fill(outputs, inputs[0][root])
        return self._messages("send", inputs[0], root)

    def _messages(self, kind, tensors, root):
        works = [self.traffic.transfer(self, kind, tensor, peer) for peer, tensor in enumerate(tensors) if peer != root]
        return Work(self.traffic.recorder, [event for work in works for event in work.events], [tensors])

    def monitored_barrier(self, *ignored, **also_ignored):
        return self.barrier()


def fill(outputs, source):
    """A list of real tensors of the host: all ranks gave the same."""
    for output in outputs:
        if has_data(output) and has_data(source):
            output.copy_(source)


class Traffic:
    """Records the collectives of all groups, and which ranks are in each."""

    def __init__(self, recorder, storages, rank, world):
        self.recorder, self.storages, self.rank, self.world = recorder, storages, rank, world
        self.groups = []  # {"ranks", "name", "backend"} in the order of the script
        self._next = None

    def announce(self, ranks, name, backend):
        """The next group that is made is this one."""
        self.groups.append({"ranks": ranks, "name": name or "", "backend": backend or ""})

    def make(self, store, rank, size, timeout=None):
        return Group(rank, size, self, len(self.groups) - 1)

    def _on_gpu(self, what, tensors):
        places = {self.storages.place(tensor) for tensor in tensors}
        if GPU not in places:
            self.recorder.note(f"{what} of tensors of the host is left out: it does not use the GPUs' network, and all ranks give alike",
                               where=True)
        return GPU in places

    def collective(self, group, kind, measured, result, root=0, counts=None, copied=False):
        """Puts a collective of these tensors, or of so many bytes, on the group's stream, after all of the current one."""
        size = measured if isinstance(measured, int) else sum(map(costs.size_of, measured))
        if not size or group.members == 1 or (not isinstance(measured, int) and not self._on_gpu(kind, measured)):
            return Work(self.recorder, [], result)
        stream = f"group {group.number}"
        self.recorder.wait_event(self.recorder.record_event(), stream)
        line = {"collective": kind, "in": group.number, "bytes": size}
        if root:
            line["root"] = root
        if counts:
            line["counts"] = counts
        if copied and kind == "reduce_scatter":
            self.recorder.add({"copy": "device_to_device", "bytes": size}, stream)
        self.recorder.add(line, stream)
        if copied and kind == "all_gather":
            self.recorder.add({"copy": "device_to_device", "bytes": size}, stream)
        return Work(self.recorder, [self.recorder.record_event(stream)], result)

    def transfer(self, group, kind, tensor, peer):
        """A message, on a stream for each peer and direction."""
        if not self._on_gpu(kind, [tensor]):
            return Work(self.recorder, [], [tensor])
        distance = self.groups[group.number]["ranks"][peer] - self.rank
        stream = f"{kind} {distance:+d}"
        self.recorder.wait_event(self.recorder.record_event(), stream)
        self.recorder.add({kind: distance, "bytes": costs.size_of(tensor)}, stream)
        return Work(self.recorder, [self.recorder.record_event(stream)], [tensor])


def install(traffic, told):
    """Puts such groups in the place of those of torch.distributed."""
    module = dist.distributed_c10d
    rank, world = traffic.rank, traffic.world
    start, new_group = module.init_process_group, module.new_group
    asked, sent = {}, itertools.count()

    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, **kwargs):
        for what, said, captured in (("rank", rank, traffic.rank), ("world_size", world_size, world)):
            if said not in (-1, None, captured):
                raise Unsupported(f"init_process_group({what}={said}), which --world {world} makes {captured}: "
                                  "the script's arguments and the environment (RANK, WORLD_SIZE) must say the same")
        asked["backend"] = str(backend or "nccl").lower()
        traffic.announce(list(range(world)), kwargs.get("group_name"), "")
        start(BACKEND, store=AnyStore(world), rank=traffic.rank, world_size=world)
        asked["world"] = module._get_default_group()

    def make_group(ranks=None, timeout=None, backend=None, *args, **kwargs):
        members = sorted(ranks) if ranks is not None else list(range(world))
        traffic.announce(members, kwargs.get("group_desc"), backend)
        return new_group(members)

    def get_backend(group=None):
        return asked.get("backend", "nccl")

    def batch(operations):
        return [operation.op(operation.tensor, operation.peer, operation.group, operation.tag) for operation in operations]

    def same_objects(result, value, group=None):
        traffic.recorder.note("an object is gathered: all ranks give that of this one", where=True)
        result[:] = [value] * dist.get_world_size(group)

    def gather_objects(value, result=None, dst=0, group=None):
        if result is not None:
            same_objects(result, value, group)

    def broadcast_objects(objects, src=0, group=None, device=None):
        """A rank has what the one that sends it sent, if that was captured before it, else its own."""
        name = f"objects {next(sent)}"
        if src == rank:
            return told.tell(name, list(objects))
        found = told.of_others(name, lambda was_on: was_on, [src])
        if found:
            objects[:] = found[0]
        elif all(one is None for one in objects):
            raise Unsupported(f"broadcast_object_list from rank {src}: its objects are not known, as ranks are captured apart and "
                              f"rank {src} is not captured before rank {rank}")
        else:
            traffic.recorder.note("objects are broadcast: a rank keeps its own", where=True)

    dist.Backend.register_backend(BACKEND, traffic.make)
    own = {"init_process_group": init_process_group, "new_group": make_group, "get_backend": get_backend, "batch_isend_irecv": batch,
           "all_gather_object": same_objects, "gather_object": gather_objects, "broadcast_object_list": broadcast_objects, "is_nccl_available": lambda: True}
    for name, function in own.items():
        setattr(module, name, function)
        setattr(dist, name, function)
