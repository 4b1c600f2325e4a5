"""Programs over graphs on an SSD, by the code that a GPU runs, compared with SciPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from support import PYTHON, Case, needs_real

try:
    import numpy as np
    import scipy.sparse as sparse
    from scipy.sparse import csgraph
except ImportError:
    sparse = None

ROOT = PYTHON.parent
NONE = 2**32 - 1
"""Of a vertex that was not reached."""

PLAYED: dict[str, str] = {}
"""What has a GPU played by the CPU; empty until it was compiled."""


def play(folder: Path) -> dict[str, str]:
    """Compiles the kernels for the CPU, if the caller of the tests has not."""
    made = os.environ.get("GPUNVME_TEST_CPU_CUDA")
    if made is None:
        subprocess.run([str(ROOT / "scripts" / "cpu-cuda"), str(folder)], check=True, capture_output=True)
        made = str(folder / "libcuda.so.1")
    return {"GPUNVME_LIBCUDA": made}


@needs_real
@unittest.skipUnless(sparse, "SciPy is not installed")
class GraphTest(Case):
    @classmethod
    def setUpClass(cls) -> None:
        # One for all tests of the process; the GPU of a machine that has one comes first.
        if not PLAYED and not os.path.exists("/dev/nvidiactl"):
            folder = tempfile.TemporaryDirectory()
            cls.addClassCleanup(folder.cleanup)
            PLAYED.update(play(Path(folder.name)))
            cls.addClassCleanup(PLAYED.clear)

    def command(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gpunvme", *map(str, words), "--json"],
            env=os.environ | {"PYTHONPATH": str(PYTHON / "src")} | PLAYED | environment,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def gpunvme(self, *words: object) -> dict[str, Any]:
        done = self.command(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        assert isinstance(result, dict)
        return result

    def run_on(self, image: Path, algorithm: str, *options: object) -> tuple[dict[str, Any], Any]:
        results = image.with_name("results")
        options = ("--algorithm", algorithm, "--threads", 512, "--results", results, *options)
        told = self.gpunvme("bench", "graph", image, *options)
        self.assertEqual(told["initiator"], "GPU")
        self.assertGreater(told["reads"], 0)
        return told, np.fromfile(results, "<f8" if algorithm == "pagerank" else "<u4")

    def matrix(self, image: Path, told: dict[str, Any]) -> Any:
        """What is in an image, read by its layout (docs/graphs.md)."""
        raw = image.read_bytes()
        vertices, edges, offsets_at, edges_at, weights_at = np.frombuffer(raw, "<u8", 5, 16).tolist()
        self.assertEqual((raw[:8], vertices, edges), (b"GPUNVMEG", told["vertices"], told["edges"]))
        offsets = np.frombuffer(raw, "<u8", vertices + 1, offsets_at).astype(np.int64)
        ends = np.frombuffer(raw, "<u4", edges, edges_at).astype(np.int64)
        weights = np.frombuffer(raw, "u1", edges, weights_at) if weights_at else np.ones(edges)
        return sparse.csr_matrix((weights.astype(float), ends, offsets), shape=(vertices, vertices))

    def check(self, image: Path, matrix: Any, source: int, *options: object) -> None:
        n = matrix.shape[0]
        told, levels = self.run_on(image, "bfs", "--source", source, *options)
        right = csgraph.dijkstra(matrix, indices=source, unweighted=True)
        np.testing.assert_array_equal(levels, np.where(np.isinf(right), NONE, right))
        self.assertEqual(told["reached"], np.isfinite(right).sum())

        told, distances = self.run_on(image, "sssp", "--source", source, *options)
        right = csgraph.dijkstra(matrix, indices=source)
        np.testing.assert_array_equal(distances, np.where(np.isinf(right), NONE, right))

        told, components = self.run_on(image, "cc", *options)
        count, labels = csgraph.connected_components(matrix, directed=False)
        lowest = np.full(count, n)
        np.minimum.at(lowest, labels, np.arange(n))
        np.testing.assert_array_equal(components, lowest[labels])
        self.assertEqual(told["components"], count)

        told, ranks = self.run_on(image, "pagerank", *options)
        right, rounds = pagerank(matrix)
        np.testing.assert_allclose(ranks, right, rtol=1e-9)
        self.assertEqual(told["rounds"], rounds)

    def test_kronecker(self) -> None:
        image = self.folder() / "kron"
        told = self.gpunvme("graph", "generate", "kron", "--scale", 12, "--weights", "--output", image)
        matrix = self.matrix(image, told)
        self.assertEqual((matrix != matrix.T).nnz, 0)
        self.assertEqual(matrix.diagonal().sum(), 0)
        self.assertTrue(matrix.has_canonical_format)
        self.check(image, matrix, int(np.argmax(matrix.getnnz(1))))

    def test_uniform(self) -> None:
        image = self.folder() / "uniform"
        words = ("--scale", 11, "--degree", 2, "--seed", 7, "--weights", "--output", image)
        told = self.gpunvme("graph", "generate", "uniform", *words)
        self.check(image, self.matrix(image, told), 5, "--cache", "8KiB", "--page", "512B")

    def test_what_scipy_saves(self) -> None:
        folder = self.folder()
        matrix = sparse.random(3000, 3000, 0.0007, "csr", random_state=3)
        matrix.setdiag(0)
        matrix.eliminate_zeros()
        matrix.data = np.floor(matrix.data * 255) + 1
        sparse.save_npz(folder / "m.npz", matrix)
        told = self.gpunvme("graph", "convert", folder / "m.npz", "--weights", "--output", folder / "m")
        self.assertFalse(told["symmetric"])
        read = self.matrix(folder / "m", told)
        self.assertEqual((read != matrix).nnz, 0)
        self.check(folder / "m", read, int(np.argmax(matrix.getnnz(1))), "--cache", "32KiB", "--page", "1KiB")

    def test_an_ssd_that_fails(self) -> None:
        """All its faults at once: the right result, or an error in a line."""
        image = self.folder() / "kron"
        told = self.gpunvme("graph", "generate", "kron", "--scale", 10, "--output", image)
        count, _ = csgraph.connected_components(self.matrix(image, told), directed=False)
        faults = (
            "status=generic/namespace-not-ready on read p=0.05;late=1ms on read p=0.01;torn on read p=0.01"
            ";duplicate on read p=0.01;reorder on read p=0.05;drop on read p=0.001;sqhd-bad on read p=0.001"
        )
        for seed in range(2):
            device = f"sim:latency=0,readonly=on,seed={seed},faults={faults},file={image}"
            options = ("--algorithm", "cc", "--threads", 512, "--page", "512B", "--timeout", "300ms")
            done = self.command("bench", "graph", device, *options)
            result = json.loads(done.stdout)
            if done.returncode == 0:
                self.assertEqual(result["components"], count)
            else:
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertNotIn("unexpected", result["error"])

    def test_without_a_gpu_it_says_what_to_do(self) -> None:
        image = self.folder() / "kron"
        self.gpunvme("graph", "generate", "kron", "--scale", 5, "--output", image)
        done = self.command("bench", "graph", image, "--algorithm", "bfs", GPUNVME_LIBCUDA="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--initiator cpu", json.loads(done.stdout)["error"])


def pagerank(matrix: Any) -> tuple[Any, int]:
    """GAP's: damping 0.85, until ranks change by less than 1e-4, at most 20 rounds; what leads nowhere is lost."""
    n = matrix.shape[0]
    pattern = sparse.csr_matrix((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    degree = np.maximum(pattern.getnnz(1), 1)
    ranks = np.full(n, 1 / n)
    for rounds in range(1, 21):
        before = ranks
        ranks = 0.15 / n + pattern.T @ (0.85 * before / degree)
        if np.abs(ranks - before).sum() < 1e-4:
            break
    return ranks, rounds


if __name__ == "__main__":
    unittest.main()
