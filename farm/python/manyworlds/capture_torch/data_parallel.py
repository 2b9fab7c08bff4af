"""DistributedDataParallel by its rules, as PyTorch's own reducer, which is C++, cannot run on tensors without data.

The rules are those of torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp: gradients are copied into buckets,
divided by the number of ranks; a bucket is reduced when all of its gradients are there and those before it were; at the end of the
backward pass they are waited for and copied back. The first backward pass has one bucket, or with find_unused_parameters buckets in the
reverse order of registration; then buckets are made anew, in the order in which gradients came, the first of 1 MiB and the others of
bucket_cap_mb.
"""

import contextlib
import sys

import torch
import torch.distributed as dist

from .recorder import Unsupported

BROADCAST_BYTES = 250 << 20


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
        self._is_awaiting = False
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
        raise Unsupported("DistributedDataParallel.register_comm_hook")

    def _set_static_graph(self):
        self.static_graph = True

    def forward(self, *inputs, **kwargs):
        if torch.is_grad_enabled() and self.require_backward_grad_sync:
            self._rebuild()
            self._missing = [len(bucket) for bucket in self._buckets]
            self._offsets, self._next, self._works = {}, 0, []
            self._is_awaiting, self._is_last_queued = True, False
        else:
            self._is_awaiting = False
        if self.broadcast_buffers and self._buffers_to_send and self.require_forward_param_sync:
            self._broadcast(self._buffers_to_send)
        if self.device_ids:
            inputs, kwargs = self._on_device(inputs), self._on_device(kwargs)
        return self.module(*inputs, **kwargs)

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
        """The gradient of a parameter is whole."""
        if not self._is_awaiting:
            return
        if not self._is_last_queued:
            self._is_last_queued = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        if self._arrived is not None:
            self._arrived.append(parameter)
        number = self._bucket_of[id(parameter)]
        with torch.no_grad():
            view = self._view(number, parameter)
            if self.gradient_as_bucket_view and parameter.grad.data_ptr() == view.data_ptr():
                parameter.grad.div_(dist.get_world_size(self.process_group))
            else:
                torch.mul(parameter.grad, 1 / dist.get_world_size(self.process_group), out=view)
                if self.gradient_as_bucket_view:
                    parameter.grad = view
        self._missing[number] -= 1
        while self._next < len(self._buckets) and self._missing[self._next] == 0:
            self._reduce(self._next)

    def _view(self, number, parameter):
        begin = 0
        for other in self._buckets[number]:
            if other is parameter:
                break
            begin += other.numel()
        return self._contents[number][begin:begin + parameter.numel()].view_as(parameter)

    def _reduce(self, number):
        self._works.append(dist.all_reduce(self._contents[number], group=self.process_group, async_op=True))
        self._next = number + 1

    def _finish(self):
        """The end of the backward pass: what is unused is reduced, too, and all is copied back."""
        if self.find_unused_parameters:
            used = torch.empty(len(self._parameters_to_reduce), dtype=torch.int32, device=self.device)
            while self._next < len(self._buckets):
                self._reduce(self._next)
            dist.all_reduce(used, group=self.process_group)
        elif self._next < len(self._buckets):
            raise RuntimeError("Expected to have finished reduction: parameters were not used in producing loss "
                               "(find_unused_parameters=True allows that)")
        with torch.no_grad():
            for number, work in enumerate(self._works):
                work.wait()
                for parameter in self._buckets[number] if not self.gradient_as_bucket_view else ():
                    if parameter.grad is not None:
                        parameter.grad.copy_(self._view(number, parameter))
        self._is_awaiting = False


def install():
    """Puts it in the place of PyTorch's own."""
    torch.nn.parallel.DistributedDataParallel = DistributedDataParallel
    torch.nn.parallel.distributed.DistributedDataParallel = DistributedDataParallel
