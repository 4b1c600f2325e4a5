"""The examples of docs/python.md and docs/checkpoint.md run as they are printed."""

from __future__ import annotations

import importlib.util
import re

from support import PYTHON, Case, make_model, run, seeded


class DocsTest(Case):
    def test_examples(self) -> None:
        self.run_examples("python.md", 5, GPUNVME_DEVICE="sim:size=8MiB")

    def test_examples_of_checkpoints(self) -> None:
        # As torchrun tells a process that it is the only one.
        alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
        self.run_examples("checkpoint.md", 3, **alone)

    def run_examples(self, page: str, least: int, **environment: str) -> None:
        text = (PYTHON.parent / "docs" / page).read_text()
        examples = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        self.assertGreaterEqual(len(examples), least)
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
                done = run(f"import os, runpy; os.chdir({str(folder)!r}); runpy.run_path({str(script)!r}, run_name='__main__')", **environment)
                self.assertEqual(done.returncode, 0, done.stderr)
