"""What a process of a job tells the others of where it waits."""

import concurrent.futures
import inspect

from tf_ipu_shim.runtime.jobs import waits


def test_failures_in_a_tensorflow_thread_keep_the_script_s_line():
    """The script goes on after it, and may have ended when the others ask."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        wait = pool.submit(waits._Wait, "sum", "the sum", "").result()
        pool.submit(wait.freeze).result()
        line = inspect.currentframe().f_lineno - 1
    assert wait.state("")["place"] == f"{__file__}:{line}, in {inspect.currentframe().f_code.co_name}"
