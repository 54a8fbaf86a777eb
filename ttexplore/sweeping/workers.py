"""Workers that call a function for each of many tasks: processes of this machine, or those of a Dask cluster.

Both give the same answers, in the order in which they come. A worker that dies loses nothing but the task that it was
at, which is given to another one; a task that no worker survives is answered by :class:`LostTask`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from ttexplore.backends.process import kill_group
from ttexplore.control import Control
from ttexplore.errors import BackendError, refuse_cancelled
from ttexplore.optional import install_extra, optional

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")

# So often is a task tried before it counts as lost.
_TRIES = 2
# Cancelling takes effect within this time.
_POLL_SECONDS = 0.1
_CONNECT_SECONDS = 10
_WITHOUT = "use processes of this machine"


@dataclass(frozen=True, slots=True)
class LostTask:
    """The answer to a task that no worker survived; `why` says how the last one ended."""

    why: str


class Workers(Protocol):
    """Where tasks run."""

    @property
    def count(self) -> int:
        """The number of workers."""
        ...

    def answers(
        self, call: Callable[[TaskT], AnswerT], tasks: Sequence[TaskT], control: Control
    ) -> Generator[tuple[int, AnswerT | LostTask]]:
        """The number of each task with its answer, as they come. Closing the generator ends what still runs.

        `call`, tasks and answers are pickled; `call` is known by its module and name. Raises Cancelled, and
        BackendError if `call` raises.
        """
        ...


@dataclass(frozen=True)
class Here:
    """This process, one task after another."""

    count: int = 1

    def answers(
        self, call: Callable[[TaskT], AnswerT], tasks: Sequence[TaskT], control: Control
    ) -> Generator[tuple[int, AnswerT | LostTask]]:
        for number, task in enumerate(tasks):
            refuse_cancelled(control.cancel)
            yield number, call(task)


# Processes of this machine


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, which end with this one."""

    count: int

    def answers(
        self, call: Callable[[TaskT], AnswerT], tasks: Sequence[TaskT], control: Control
    ) -> Generator[tuple[int, AnswerT | LostTask]]:
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        for number in range(len(tasks)):
            waiting.put(number)
        ended = threading.Event()
        children: set[subprocess.Popen[bytes]] = set()

        def work() -> None:
            child: subprocess.Popen[bytes] | None = None
            try:
                while not ended.is_set():
                    try:
                        number = waiting.get_nowait()
                    except queue.Empty:
                        break
                    answer: Any = None
                    for _ in range(_TRIES):
                        if child is None:
                            child = _started()
                            children.add(child)
                            if ended.is_set():
                                kill_group(child)
                        answer = _asked(child, (call, tasks[number]))
                        if not isinstance(answer, LostTask) or ended.is_set():
                            break
                        children.discard(_reaped(child))
                        child = None
                    done.put((number, answer))
            # Without an answer the other thread would wait forever.
            except BackendError as error:
                done.put((0, error))
            except Exception:
                done.put((0, _Raised(traceback.format_exc(limit=-4))))
            finally:
                if child is not None:
                    children.discard(_reaped(child))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(self.count, len(tasks)))]
        try:
            for thread in threads:
                thread.start()
            for _ in tasks:
                number, answer = _next(done, control)
                match answer:
                    case _Raised():
                        raise failed(answer.text)
                    case BackendError():
                        raise answer
                    case _:
                        yield number, answer
        finally:
            ended.set()
            for child in list(children):
                kill_group(child)
            for thread in threads:
                thread.join()


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a child says where the called function raised."""

    text: str


def _next(done: queue.SimpleQueue[tuple[int, Any]], control: Control) -> tuple[int, Any]:
    while True:
        refuse_cancelled(control.cancel)
        with contextlib.suppress(queue.Empty):
            return done.get(timeout=_POLL_SECONDS)


def _started() -> subprocess.Popen[bytes]:
    """A new process. Raises BackendError if the system starts none."""
    # It finds the modules that this process finds. Ctrl-C in a terminal is for this process alone.
    program = f"import sys; sys.path[:] = {sys.path!r}; from ttexplore.sweeping.workers import serve; serve()"
    try:
        return subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
    except OSError as error:
        raise BackendError(
            "B033",
            f"a worker cannot be started: {error.strerror or error}",
            hint="use fewer workers; with workers=1 this process does the work",
        ) from error


def _asked(child: subprocess.Popen[bytes], request: object) -> Any:
    """The child's answer; LostTask if it has ended."""
    assert child.stdin is not None, "it is a pipe"
    assert child.stdout is not None, "it is a pipe"
    try:
        pickle.dump(request, child.stdin)
        child.stdin.flush()
        return pickle.load(child.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        code = child.wait()
        return LostTask(f"it ended with signal {-code}" if code < 0 else f"it ended with status {code}")


def _reaped(child: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None, "both are pipes"
        with contextlib.suppress(OSError):
            pipe.close()
    child.wait()
    return child


def serve() -> None:
    """Answer requests on standard input, until it is closed. What is called may print: nobody reads it."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    for number in itertools.count():
        try:
            call, task = cast("tuple[Callable[[object], object], object]", pickle.load(requests))
        except EOFError:
            return
        try:
            answer = pickle.dumps(call(task))
        except Exception:
            answer = pickle.dumps(_Raised(traceback.format_exc(limit=-4)))
        answers.write(answer)
        answers.flush()
        if number == 0:
            # All modules are loaded now, with hundreds of thousands of objects that the collector need not visit again.
            gc.collect()
            gc.freeze()


# A Dask cluster


@dataclass(frozen=True, eq=False)
class Cluster:
    """The workers of a Dask scheduler; `client` is a ``distributed.Client``."""

    client: Any

    @property
    def count(self) -> int:
        return max(1, len(self.client.scheduler_info()["workers"]))

    def answers(
        self, call: Callable[[TaskT], AnswerT], tasks: Sequence[TaskT], control: Control
    ) -> Generator[tuple[int, AnswerT | LostTask]]:
        killed: type[Exception] = optional("distributed", install_extra("cluster"), _WITHOUT).KilledWorker
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        futures = [self.client.submit(call, task, pure=False) for task in tasks]
        for number, future in enumerate(futures):
            future.add_done_callback(functools.partial(_put, done, number))
        try:
            for _ in tasks:
                number, future = _next(done, control)
                try:
                    # A result that was lost with its worker is computed again.
                    yield number, future.result()
                except killed as error:
                    yield number, LostTask(_first_line(error))
                except Exception as error:
                    raise failed(f"{type(error).__name__}: {error}") from error
        finally:
            self.client.cancel(futures)


@contextlib.contextmanager
def connected(address: str) -> Generator[Cluster]:
    """The cluster of the scheduler at `address` inside the `with` block.

    Raises BackendError if Dask is not installed or the scheduler does not answer.
    """
    distributed = optional("distributed", install_extra("cluster"), _WITHOUT)
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # What Dask raises for an address depends on its protocol.
        raise BackendError(
            "B034",
            f"the scheduler {address} cannot be reached: {_first_line(error)}",
            hint="start one with `dask scheduler` and workers with `dask worker ADDRESS`, and give its address, for "
            "example tcp://127.0.0.1:8786",
        ) from None
    try:
        yield Cluster(client)
    finally:
        client.close()


def _put(done: queue.SimpleQueue[tuple[int, Any]], number: int, future: Any) -> None:
    done.put((number, future))


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def failed(text: str) -> BackendError:
    """Return the error for a worker in which something else than the kernel failed."""
    return BackendError(
        "B033",
        f"a worker failed: {text.strip().splitlines()[-1]}",
        hint=f"this is not the kernel's fault:\n{text.strip()}",
    )
