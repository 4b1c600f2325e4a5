"""Ends of processes."""

from __future__ import annotations

import importlib.util
import unittest

from support import Case, needs_fake, on_the_stand_in, run

needs_numpy = unittest.skipIf(importlib.util.find_spec("numpy") is None, "numpy is not installed")


class ExitTest(Case):
    """Ends of processes with everything open."""

    def test_with_everything_open(self) -> None:
        done = run(
            """
            import gpunvme
            storage = gpunvme.Storage("sim:size=1MiB,latency=2s", ACCELERATOR, write=True)
            fast = gpunvme.Storage("sim:size=1MiB", ACCELERATOR, write=True)
            request = storage.submit_read(0, bytearray(512))
            waited = storage.submit_read(0, bytearray(512))
            future = waited.future()
            array = fast.allocate(4096)
            kinds = gpunvme.Kinds(fast)
            loader = gpunvme.LayerLoader(fast, 4096, 2)
            print("end")
            """
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    @on_the_stand_in
    @needs_numpy
    def test_with_exported_memory(self) -> None:
        done = run(
            """
            import gpunvme, numpy
            storage = gpunvme.Storage("sim:size=1MiB", ACCELERATOR, write=True)
            a = numpy.from_dlpack(storage.allocate(4096))
            b = numpy.asarray(storage.allocate(4096))
            keep = {"a": a}
            print("end")
            """
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    def test_with_a_daemon_reading(self) -> None:
        done = run(
            """
            import gpunvme, threading, time
            storage = gpunvme.Storage("sim:size=1MiB,latency=2s", ACCELERATOR)
            threading.Thread(target=lambda: storage.read(0, bytearray(512)), daemon=True).start()
            time.sleep(0.3)
            print("end")
            """
        )
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)


class LastLookTest(Case):
    """Who looks at memory when everything of ours was ended already."""

    def looked(self, source: str, said: str = "b'abcd'\n") -> None:
        done = run(source)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, ""))

    @on_the_stand_in
    @needs_numpy
    def test_a_handler_that_was_there_first(self) -> None:
        for view in ("numpy.asarray(array)", "numpy.from_dlpack(array)"):
            with self.subTest(view):
                self.looked(
                    f"""
                    import atexit
                    atexit.register(lambda: print(bytes(seen[:4])))
                    import gpunvme, numpy
                    storage = gpunvme.Storage("sim:size=8MiB", ACCELERATOR, write=True)
                    storage.write(0, b"abcd")
                    array = storage.read_array(0, 4 << 20)
                    seen = {view}
                    del array, storage
                    """
                )

    def test_a_handler_that_was_there_first_copies(self) -> None:
        self.looked(
            """
            import atexit
            atexit.register(lambda: print(array.tobytes()[:4]))
            import gpunvme
            storage = gpunvme.Storage("sim:size=1MiB", ACCELERATOR, write=True)
            storage.write(0, b"abcd")
            array = storage.read_array(0, 4096)
            """
        )

    @on_the_stand_in
    @needs_numpy
    def test_at_a_layer(self) -> None:
        self.looked(
            """
            import atexit
            atexit.register(lambda: print(bytes(seen[:4])))
            import gpunvme, numpy
            storage = gpunvme.Storage("sim:size=8MiB", ACCELERATOR, write=True)
            storage.write(0, b"abcd")
            loader = gpunvme.LayerLoader(storage, 2 << 20, 2)
            loader.prefetch([(0, 2 << 20)])
            seen = numpy.asarray(loader.next())
            """
        )

    @on_the_stand_in
    @needs_numpy
    def test_a_daemon(self) -> None:
        self.looked(
            """
            import atexit, threading, time
            atexit.register(time.sleep, 0.5)  # it goes on meanwhile
            import gpunvme, numpy
            storage = gpunvme.Storage("sim:size=8MiB", ACCELERATOR)
            seen = numpy.asarray(storage.allocate(8 << 20))

            def look():
                while True:
                    assert not seen.any()

            threading.Thread(target=look, daemon=True).start()
            print(b"abcd")
            """
        )

    @needs_fake
    def test_static_storage_of_others(self) -> None:
        for last in ("", "atexit.register(lambda: globals().update(keep(array)))"):
            for version in ("None", "(1, 0)"):
                with self.subTest(version=version, last=last):
                    self.looked(
                        f"""
                        import atexit
                        {last}
                        import ctypes, gpunvme
                        from gpunvme import _dlpack, _native

                        def keep(array):
                            capsule = array.__dlpack__(max_version={version})
                            name, kind = b"dltensor", _dlpack._Managed
                            if {version}:
                                name, kind = b"dltensor_versioned", _dlpack._Versioned
                            at = _dlpack._capsule_pointer(capsule, name)
                            rename = ctypes.pythonapi.PyCapsule_SetName
                            rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
                            used = ctypes.c_char_p(b"used_" + name)
                            rename(capsule, used)
                            _native.lib().fake_keep(ctypes.c_void_p(at), ctypes.c_void_p(at + kind.deleter.offset))
                            return {{"capsule": capsule, "used": used}}

                        storage = gpunvme.Storage("sim:size=1MiB")
                        array = storage.allocate(4096)
                        {"" if last else "kept = keep(array)"}
                        del storage
                        """,
                        "let go\n",
                    )
