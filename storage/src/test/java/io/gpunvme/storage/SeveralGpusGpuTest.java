package io.gpunvme.storage;

import io.gpunvme.gpu.accel.TestGpu;
import java.util.List;
import org.junit.jupiter.api.Tag;

/** Of a machine with two; with one it has two users. */
@Tag("gpu")
class SeveralGpusGpuTest extends SeveralGpusContract {
  SeveralGpusGpuTest() {
    super(List.of(TestGpu.open(), TestGpu.openLast()), 100);
  }
}
