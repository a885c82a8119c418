import asyncio
import ctypes
import time

from assay.calls.loop_thread import LoopThread
from assay.errors import Abandoned


def test_a_loop_that_is_abandoned_while_it_waits_ends_its_other_calls():
    served = LoopThread()
    future = served.submit(asyncio.sleep(0.3, "done"))
    time.sleep(0.05)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(served.thread.ident), ctypes.py_object(Abandoned))
    served.loop.call_soon_threadsafe(served.end.set)
    assert future.result(timeout=10) == "done"
    served.thread.join(timeout=10)
    assert not served.thread.is_alive()
