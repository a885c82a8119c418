import asyncio
import ctypes
import threading

from waiting import PATIENCE

from assay.calls.async_runner import LoopThread
from assay.errors import Abandoned


def test_a_loop_that_is_abandoned_while_it_waits_ends_its_other_calls():
    waits, goes_on = threading.Event(), asyncio.Event()

    async def call():
        waits.set()
        await goes_on.wait()
        return "done"

    served = LoopThread()
    future = served.submit(call())
    assert waits.wait(PATIENCE)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(served.ident), ctypes.py_object(Abandoned))
    served.loop.call_soon_threadsafe(served.end.set)
    served.loop.call_soon_threadsafe(goes_on.set)
    assert future.result(timeout=PATIENCE) == "done"
    served.join(timeout=PATIENCE)
    assert not served.is_alive()
