"""DistributedDataParallel by its rules, as PyTorch's own reducer, which is C++, cannot run on tensors without data.

The rules are those of torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp: gradients are copied into buckets,
divided by the number of ranks; a bucket is reduced when all of its gradients are there and those before it were; at the end of the
backward pass they are waited for and copied back. The first backward pass has one bucket, or with find_unused_parameters buckets in the
reverse order of registration; then buckets are made anew, in the order in which gradients came, the first of 1 MiB and the others of
bucket_cap_mb. With find_unused_parameters, parameters that the outputs do not reach count as ready with the first gradient. With
static_graph the first pass is reduced at its end, later ones wait for as many gradients of a parameter as came in it, and buckets are
made anew after the second. Outputs are passed on through a copy of them with find_unused_parameters, and in that first pass.
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_flatten, tree_unflatten

from .recorder import Unsupported

BROADCAST_BYTES = 250 << 20


class PassedOn(torch.autograd.Function):
    """Outputs of the model, copied; its backward says that the backward pass of the whole began."""

    @staticmethod
    def forward(ctx, begun, *outputs):
        ctx.set_materialize_grads(False)
        ctx.begun = begun
        return tuple(output.clone() for output in outputs)

    @staticmethod
    def backward(ctx, *gradients):
        ctx.begun()
        return (None, *gradients)


def parameters_reached(tensors):
    """The ids of all parameters that a backward pass from these tensors reaches."""
    nodes = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen, reached = set(nodes), set()
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return reached


class Bucket:
    """A bucket of gradients as communication hooks see it (torch.distributed.GradBucket)."""

    def __init__(self, number, flat, views, parameters, is_last):
        self._number, self._flat, self._views, self._parameters, self._is_last = number, flat, views, parameters, is_last

    def index(self):
        return self._number

    def buffer(self):
        return self._flat

    def set_buffer(self, tensor):
        self._flat = tensor

    def gradients(self):
        return self._views

    def parameters(self):
        return self._parameters

    def is_last(self):
        return self._is_last


class DistributedDataParallel(torch.nn.Module):
    """Stands for torch.nn.parallel.DistributedDataParallel in a capture."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, process_group=None, bucket_cap_mb=25,
                 find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False, **others):
        super().__init__()
        if any(value is not None for value in others.values()):
            raise Unsupported(f"DistributedDataParallel({', '.join(others)})")
        self.module, self.device_ids, self.dim, self.static_graph = module, device_ids, dim, static_graph
        self.process_group = process_group or dist.distributed_c10d._get_default_group()
        self.device = next(module.parameters()).device
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._cap = int(bucket_cap_mb * (1 << 20))
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", [])
        self._buffers_to_send = [buffer for name, buffer in module.named_buffers() if name not in ignored]
        self._parameters_to_reduce = [parameter for name, parameter in module.named_parameters()
                                      if parameter.requires_grad and name not in ignored]
        self._broadcast([value for value in module.state_dict().values() if isinstance(value, torch.Tensor)])
        may_rebuild = static_graph or not find_unused_parameters
        limits = [sys.maxsize] if may_rebuild else [dist._DEFAULT_FIRST_BUCKET_BYTES, self._cap]
        chosen = self._assign(self._parameters_to_reduce, limits)
        self._set_buckets([[self._parameters_to_reduce[i] for i in bucket] for bucket in reversed(chosen)])
        self._arrived = [] if may_rebuild else None  # parameters in the order of their first gradients
        self._is_awaiting, self._passes, self._hook = False, 0, None
        self._fired, self._finished = {}, True
        self._hooks = []
        for parameter in self._parameters_to_reduce:
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(lambda *ignored, parameter=parameter: self._ready(parameter))
            self._hooks.append(node)

    @staticmethod
    def _assign(parameters, limits):
        result = dist._compute_bucket_assignment_by_size(parameters, limits, [False] * len(parameters))
        return result[0] if isinstance(result, tuple) else result

    def _set_buckets(self, buckets):
        self._contents = None  # what was there is free before the new ones are made
        self._buckets = buckets
        self._bucket_of = {id(parameter): number for number, bucket in enumerate(buckets) for parameter in bucket}
        self._contents = [torch.empty(sum(parameter.numel() for parameter in bucket), dtype=bucket[0].dtype, device=bucket[0].device)
                          for bucket in buckets]

    def _broadcast(self, tensors):
        """Tensors of one dtype go together, in pieces of 250 MiB."""
        for chosen in self._assign(tensors, [BROADCAST_BYTES]) if tensors else []:
            flat = torch.cat([tensors[i].detach().reshape(-1) for i in chosen])
            dist.broadcast(flat, dist.distributed_c10d.get_global_rank(self.process_group, 0)
                           if self.process_group is not dist.distributed_c10d._get_default_group() else 0, group=self.process_group)

    @contextlib.contextmanager
    def no_sync(self):
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state, hook):
        self._hook = lambda bucket: hook(state, bucket)

    def _register_builtin_comm_hook(self, hook):
        raise Unsupported(f"DistributedDataParallel with the built-in communication hook {hook}: those of Python are answered")

    def _register_fused_optim(self, *ignored, **also_ignored):
        raise Unsupported("DistributedDataParallel with the optimizer in its hook")

    def join(self, *ignored, **also_ignored):
        raise Unsupported("DistributedDataParallel.join: how many inputs other ranks have is not known")

    def _set_static_graph(self):
        self.static_graph = True
        self._arrived = self._arrived if self._arrived is not None else []

    def forward(self, *inputs, **kwargs):
        self._is_awaiting = torch.is_grad_enabled() and self.require_backward_grad_sync
        if torch.is_grad_enabled():
            self._rebuild()
        if self._is_awaiting:
            self._begin_pass()
        if self.broadcast_buffers and self._buffers_to_send and self.require_forward_param_sync:
            self._broadcast(self._buffers_to_send)
        if self.device_ids:
            inputs, kwargs = self._on_device(inputs), self._on_device(kwargs)
        result = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = self._is_awaiting  # buffers are sent again after a pass that was reduced alone
        return self._passed_on(result) if self._is_awaiting else result

    def _begin_pass(self):
        if not self._finished:
            raise RuntimeError("Expected to have finished reduction in the prior iteration before starting a new one: parameters were not "
                               "used in producing loss (find_unused_parameters=True allows that)")
        self._passes += 1
        self._missing = [len(bucket) for bucket in self._buckets]
        self._next, self._works, self._unused = 0, [], []
        self._has_begun = False
        self._left = dict(self._fired) if self.static_graph and self._passes > 1 else None

    @property
    def _delays(self):
        """The first backward pass of a static graph, which is reduced at its end."""
        return self.static_graph and self._passes == 1

    def _passed_on(self, result):
        """Finds what a backward pass will not reach, and copies the outputs where PyTorch's own does."""
        finds = self.find_unused_parameters and not self.static_graph
        if not finds and not self._delays:
            if self.static_graph:
                self._unused = [parameter for parameter in self._parameters_to_reduce if id(parameter) not in self._fired]
            return result
        leaves, shape = tree_flatten(result)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
        if finds:
            reached = parameters_reached([leaves[i] for i in places])
            self._unused = [parameter for parameter in self._parameters_to_reduce if id(parameter) not in reached]
        if places:
            for i, leaf in zip(places, PassedOn.apply(self._backward_begins, *(leaves[i] for i in places))):
                leaves[i] = leaf
        return tree_unflatten(leaves, shape)

    def _backward_begins(self):
        if self._delays and not self._has_begun:
            self._has_begun = True
            torch.autograd.Variable._execution_engine.queue_callback(self._reduce_all)

    def _on_device(self, value):
        if isinstance(value, torch.Tensor):
            return value.to(self.device)
        if isinstance(value, (list, tuple)):
            return type(value)(self._on_device(one) for one in value)
        return {key: self._on_device(one) for key, one in value.items()} if isinstance(value, dict) else value

    def _rebuild(self):
        """Buckets in the order in which gradients came, which rank 0 tells all others."""
        if not self._arrived or len(self._arrived) < len(self._parameters_to_reduce):
            return
        order, self._arrived = self._arrived, None
        chosen = self._assign(order, [dist._DEFAULT_FIRST_BUCKET_BYTES, self._cap])
        for count in (len(order) + 1, len(chosen)):
            dist.broadcast(torch.empty(count, dtype=torch.int32, device=self.device), 0, group=self.process_group)
        self._set_buckets([[order[i] for i in bucket] for bucket in chosen])

    def _ready(self, parameter):
        """A gradient of a parameter is there."""
        if not self._is_awaiting:
            return
        if self._delays:
            self._fired[id(parameter)] = self._fired.get(id(parameter), 0) + 1
            return
        if not self._has_begun:
            self._has_begun = True
            for unused in self._unused:
                self._mark(unused)
        if self._left is not None:
            self._left[id(parameter)] = self._left.get(id(parameter), 1) - 1
            if self._left[id(parameter)] > 0:
                return
        if self._arrived is not None:
            self._arrived.append(parameter)
        self._mark(parameter)

    def _mark(self, parameter):
        """The gradient of a parameter is whole, or there will be none; complete buckets are reduced, in order."""
        self._finished = False
        number = self._bucket_of[id(parameter)]
        with torch.no_grad():
            self._fill(self._view(number, parameter), parameter)
        self._missing[number] -= 1
        if self._missing[number] < 0:
            raise RuntimeError("Expected to mark a variable ready only once: a parameter is used in several checkpoints, or in several "
                               "backward passes (static_graph=True allows that)")
        while self._next < len(self._buckets) and self._missing[self._next] == 0:
            self._reduce(self._next)
        if self._next == len(self._buckets) and not self._delays:
            if self.find_unused_parameters and not self.static_graph:
                self._reduce_used()
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)

    def _fill(self, view, parameter):
        """Puts the gradient into its place in the bucket, divided by the ranks if no hook does that."""
        ranks = 1 if self._hook else dist.get_world_size(self.process_group)
        if parameter.grad is None:
            view.zero_()
        elif self.gradient_as_bucket_view and parameter.grad.data_ptr() == view.data_ptr():
            if ranks > 1:
                parameter.grad.div_(ranks)
        else:
            if ranks > 1:
                torch.mul(parameter.grad, 1 / ranks, out=view)
            else:
                view.copy_(parameter.grad)
            if self.gradient_as_bucket_view:
                parameter.grad = view

    def _view(self, number, parameter):
        begin = 0
        for other in self._buckets[number]:
            if other is parameter:
                break
            begin += other.numel()
        return self._contents[number][begin:begin + parameter.numel()].view_as(parameter)

    def _reduce(self, number):
        flat = self._contents[number]
        if self._hook is None:
            self._works.append(dist.all_reduce(flat, group=self.process_group, async_op=True))
        else:
            parameters = self._buckets[number]
            bucket = Bucket(number, flat, [self._view(number, one) for one in parameters], parameters, number == len(self._buckets) - 1)
            with torch.no_grad():
                self._works.append(self._hook(bucket))
        self._next = number + 1

    def _reduce_used(self):
        """Which parameters any rank used: a number for each."""
        used = torch.empty(len(self._parameters_to_reduce), dtype=torch.int32, device=self.device)
        dist.all_reduce(used, group=self.process_group)

    def _reduce_all(self):
        """The end of the first backward pass of a static graph."""
        self._reduce_used()
        for parameter in self._parameters_to_reduce:
            self._mark(parameter)
        self._finish()

    def _finish(self):
        """The end of the backward pass: what is reduced is waited for and copied back."""
        with torch.no_grad():
            for number, work in enumerate(self._works):
                work.wait()
                if self._hook is not None:
                    self._take(number, work.value())
                for parameter in self._buckets[number] if not self.gradient_as_bucket_view else ():
                    if parameter.grad is not None:
                        parameter.grad.copy_(self._view(number, parameter))
        if self._arrived:
            self._arrived += self._unused if self.static_graph else []
        self._is_awaiting, self._finished, self._works = False, True, []

    def _take(self, number, value):
        """What a hook made of a bucket comes into its place, if it is not there."""
        result = value[0] if isinstance(value, (list, tuple)) else value
        flat = self._contents[number]
        if result.data_ptr() != flat.data_ptr():
            flat.copy_(result)


def install():
    """Puts it in the place of PyTorch's own."""
    torch.nn.parallel.DistributedDataParallel = DistributedDataParallel
    torch.nn.parallel.distributed.DistributedDataParallel = DistributedDataParallel
