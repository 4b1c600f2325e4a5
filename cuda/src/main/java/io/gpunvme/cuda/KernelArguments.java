package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * The values of a kernel's parameters, in the order of their declaration. A launch copies them, so
 * they can be reused. For one thread at a time.
 */
public final class KernelArguments {
  /** The strictest alignment of a kernel parameter. */
  private static final long ALIGNMENT = 16;

  private final List<byte[]> values = new ArrayList<>();

  /** Starts without arguments. */
  public KernelArguments() {}

  /** For a {@code float}. */
  public KernelArguments addFloat(float value) {
    return addInt(Float.floatToRawIntBits(value));
  }

  /** For a {@code double}. */
  public KernelArguments addDouble(double value) {
    return addLong(Double.doubleToRawLongBits(value));
  }

  /** For a 1-byte parameter, such as {@code bool}. */
  public KernelArguments addByte(byte value) {
    values.add(new byte[] {value});
    return this;
  }

  /** For a 4-byte integer. */
  public KernelArguments addInt(int value) {
    values.add(buffer(Integer.BYTES).putInt(value).array());
    return this;
  }

  /** For an 8-byte integer or a pointer. */
  public KernelArguments addLong(long value) {
    values.add(buffer(Long.BYTES).putLong(value).array());
    return this;
  }

  /** For a structure passed by value; the bytes are copied now. */
  public KernelArguments addStruct(MemorySegment value) {
    values.add(value.toArray(JAVA_BYTE));
    return this;
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
  }

  /** Sizes of the values in bytes. */
  List<Long> sizes() {
    return values.stream().map(value -> (long) value.length).toList();
  }

  /** An array of pointers to the values, as a launch wants it. */
  MemorySegment pointers(Arena arena) {
    MemorySegment pointers = arena.allocate(ValueLayout.ADDRESS, Math.max(1, values.size()));
    for (int i = 0; i < values.size(); i++) {
      byte[] value = values.get(i);
      MemorySegment copy = arena.allocate(Math.max(1, value.length), ALIGNMENT);
      MemorySegment.copy(value, 0, copy, JAVA_BYTE, 0, value.length);
      pointers.setAtIndex(ValueLayout.ADDRESS, i, copy);
    }
    return pointers;
  }
}
