package io.gpunvme.storage.layer;

import io.gpunvme.gpu.accel.DeviceBuffer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** A file of random bytes, and layers of it. */
record Sources(Path file, byte[] content) {
  static Sources in(Path folder, int size) throws IOException {
    byte[] content = new byte[size];
    new Random(11).nextBytes(content);
    Path file = folder.resolve("layers.bin");
    Files.write(file, content);
    return new Sources(file, content);
  }

  /** An embedded SSD over the file. */
  String ssd(String more) {
    return "sim:file=" + file + ",lba=512" + more;
  }

  /** Layers of equal length, one behind the other. */
  static List<Layer> equal(int count, int bytes) {
    List<Layer> layers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      layers.add(new Layer("l" + i, (long) i * bytes, bytes));
    }
    return layers;
  }

  /** Whether a buffer has the layer's bytes at a place. */
  boolean isIn(DeviceBuffer buffer, long at, Layer layer) {
    byte[] seen = new byte[(int) layer.bytes()];
    buffer.copyToHost(at, MemorySegment.ofArray(seen));
    int from = (int) layer.offset();
    return Arrays.equals(seen, 0, seen.length, content, from, from + seen.length);
  }
}
