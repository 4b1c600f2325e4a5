package io.gpunvme.models.format;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Makes safetensors files out of any header, right or wrong. */
final class SafetensorsBytes {
  private SafetensorsBytes() {}

  /** A file with this header and {@code dataBytes} zeros. */
  static byte[] file(String header, int dataBytes) {
    return file(header.getBytes(StandardCharsets.UTF_8), dataBytes);
  }

  static byte[] file(byte[] header, int dataBytes) {
    return file(header.length, header, dataBytes);
  }

  /** With a length that may be a lie. */
  static byte[] file(long length, byte[] header, int dataBytes) {
    return ByteBuffer.allocate(Long.BYTES + header.length + dataBytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(length)
        .put(header)
        .array();
  }

  /** What a header says of one tensor. */
  static String entry(String dtype, String shape, long begin, long end) {
    return "{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}"
        .formatted(dtype, shape, begin, end);
  }
}
