"""The examples of docs/python.md run as they are printed."""

from __future__ import annotations

import importlib.util
import re

from support import PYTHON, Case, make_model, run, seeded


class DocsTest(Case):
    def test_examples(self) -> None:
        text = (PYTHON.parent / "docs" / "python.md").read_text()
        examples = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        self.assertGreater(len(examples), 4)
        folder = self.folder()
        random = seeded(self)
        (folder / "model.bin").write_bytes(random.randbytes(8 << 20))
        tensors = {
            "lm_head.weight": ("F32", (2000, 16), random.randbytes(2000 * 64)),
            "norm.weight": ("F32", (16,), random.randbytes(64)),
        }
        make_model(folder / "model.safetensors", tensors)
        for number, example in enumerate(examples):
            with self.subTest(example.splitlines()[0]):
                if "torch" in example and importlib.util.find_spec("torch") is None:
                    continue
                if "numpy" in example and importlib.util.find_spec("numpy") is None:
                    continue
                script = folder / f"example{number}.py"
                script.write_text(example)
                done = run(f"import os, runpy; os.chdir({str(folder)!r}); runpy.run_path({str(script)!r}, run_name='__main__')", GPUNVME_DEVICE="sim:size=8MiB")
                self.assertEqual(done.returncode, 0, done.stderr)
