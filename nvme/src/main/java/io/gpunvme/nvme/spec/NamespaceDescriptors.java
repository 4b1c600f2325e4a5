package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Namespace Identification Descriptor list: 4096 bytes of descriptors, each a type, a length and an
 * identifier; a zero length ends the list (Base 2.0, 5.17.2.3).
 */
public final class NamespaceDescriptors {
  /** Bytes of the structure. */
  public static final int SIZE = 4096;

  /** Type of an IEEE Extended Unique Identifier, 8 bytes. */
  public static final int EUI64 = 1;

  /** Type of a Namespace Globally Unique Identifier, 16 bytes. */
  public static final int NGUID = 2;

  /** Type of a Namespace UUID, 16 bytes. */
  public static final int UUID = 3;

  /** Type of a Command Set Identifier, 1 byte: 0 NVM. */
  public static final int CSI = 4;

  private static final int TYPE = 0;
  private static final int LENGTH = 1;
  private static final int ID = 4;

  private final MemorySegment s;

  /**
   * One descriptor.
   *
   * @param type {@link #EUI64}, {@link #NGUID}, {@link #UUID}, {@link #CSI} or a reserved value
   * @param id the identifier, a view of the list's memory, 1..255 bytes
   */
  public record Descriptor(int type, MemorySegment id) {}

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public NamespaceDescriptors(MemorySegment segment) {
    if (segment.byteSize() < SIZE) {
      throw new IllegalArgumentException(
          "a descriptor list needs %d bytes, the segment has %d"
              .formatted(SIZE, segment.byteSize()));
    }
    s = segment.asSlice(0, SIZE);
  }

  /** Returns the structure's bytes. */
  public MemorySegment segment() {
    return s;
  }

  /**
   * Returns the descriptors up to the end of the list; one that would reach past the page ends it.
   */
  public List<Descriptor> list() {
    List<Descriptor> descriptors = new ArrayList<>();
    for (int off = 0; fits(off); off += ID + length(off)) {
      descriptors.add(new Descriptor(Wire.u8(s, off + TYPE), s.asSlice(off + ID, length(off))));
    }
    return List.copyOf(descriptors);
  }

  /** Returns the identifier of the first descriptor of {@code type}, or null if there is none. */
  public @Nullable MemorySegment find(int type) {
    for (Descriptor descriptor : list()) {
      if (descriptor.type() == type) {
        return descriptor.id();
      }
    }
    return null;
  }

  /**
   * Appends a descriptor and returns this list.
   *
   * @throws IllegalArgumentException if {@code id} is not 1..255 bytes or the page is full
   */
  public NamespaceDescriptors append(int type, byte[] id) {
    int off = 0;
    while (fits(off)) {
      off += ID + length(off);
    }
    if (id.length == 0 || id.length > 255 || off + ID + id.length > SIZE) {
      throw new IllegalArgumentException(
          "a descriptor of %d bytes does not fit at %d".formatted(id.length, off));
    }
    s.asSlice(off, ID).fill((byte) 0);
    Wire.u8(s, off + TYPE, type);
    Wire.u8(s, off + LENGTH, id.length);
    MemorySegment.copy(MemorySegment.ofArray(id), 0, s, off + ID, id.length);
    return this;
  }

  private boolean fits(int off) {
    return off + ID < SIZE && length(off) != 0 && off + ID + length(off) <= SIZE;
  }

  private int length(int off) {
    return Wire.u8(s, off + LENGTH);
  }
}
