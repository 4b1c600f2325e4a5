package io.gpunvme.tools.sample;

import java.util.List;

/**
 * A tensor of the sample.
 *
 * @param begin offset of its first byte in the data
 */
record SampleTensor(String name, DType dtype, List<Long> shape, long begin) {
  long bytes() {
    return bytes(dtype, shape);
  }

  long end() {
    return begin + bytes();
  }

  SampleTensor at(long offset) {
    return new SampleTensor(name, dtype, shape, offset);
  }

  private static long bytes(DType dtype, List<Long> shape) {
    long bytes = dtype.bytes();
    for (long dimension : shape) {
      bytes = Math.multiplyExact(bytes, dimension);
    }
    return bytes;
  }
}
