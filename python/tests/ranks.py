"""Ranks of torch.distributed for tests: processes that a fork server makes, which has imported PyTorch once."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import multiprocessing
import os
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # these ranks are all here, whatever networks there are

import torch
import torch.distributed as dist


def _serve(connection: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    while True:
        try:
            ranks, rank, store, module, function, arguments = connection.recv()
        except EOFError:
            return
        try:
            with group(ranks, rank, store):
                connection.send((True, getattr(importlib.import_module(module), function)(*arguments)))
        except BaseException:
            connection.send((False, traceback.format_exc()))


@contextlib.contextmanager
def group(ranks: int, rank: int, store: str) -> Iterator[None]:
    if ranks == 0:
        yield
        return
    dist.init_process_group("gloo", store=dist.FileStore(store, ranks), rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=60))
    try:
        yield
    finally:
        dist.destroy_process_group()


class Ranks:
    """Processes that stay, so that Java starts once in each; groups are made of the first of them."""

    def __init__(self, module: str) -> None:
        """:param module: what has the functions for :meth:`run`"""
        self._module = module
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([module])
        self._workers: list[tuple[Any, Any]] = []
        self._stores = tempfile.TemporaryDirectory()
        self._groups = 0

    def run(self, ranks: int, function: str, *arguments: Any) -> list[Any]:
        """What the function returns on each rank; with 0 ranks, in one process without a group."""
        while len(self._workers) < max(1, ranks):
            here, there = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(there,), daemon=False)
            process.start()
            there.close()
            self._workers.append((process, here))
        self._groups += 1
        store = str(Path(self._stores.name) / str(self._groups))
        used = self._workers[: max(1, ranks)]
        for rank, (_, connection) in enumerate(used):
            connection.send((ranks, rank, store, self._module, function, arguments))
        answers = []
        for rank, (process, connection) in enumerate(used):
            if not connection.poll(120):
                raise AssertionError(f"rank {rank} of {ranks} does not answer: {function}{arguments}")
            try:
                answers.append(connection.recv())
            except EOFError:
                raise AssertionError(f"rank {rank} of {ranks} died with code {process.exitcode}: {function}{arguments}") from None
        wrong = [text for good, text in answers if not good]
        if wrong:
            raise AssertionError(f"{function}{arguments} on {ranks} ranks:\n{wrong[0]}")
        return [value for _, value in answers]

    def close(self) -> None:
        for process, connection in self._workers:
            connection.close()
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
        self._stores.cleanup()
