package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * One namespace of the embedded controller.
 *
 * @param kind the place of its bytes
 * @param size bytes, a positive multiple of {@code lbaSize}; 0 (file only): as long as the file
 * @param lbaSize bytes per logical block when formatted: a power of two, 512..65536
 * @param file the backing file, equal to the namespace byte for byte; only with {@link Kind#FILE}
 *     and {@link Kind#MAPPED}
 * @param readOnly the namespace is write protected; a backing file is opened for reading only
 */
public record NamespaceConfig(
    Kind kind, long size, int lbaSize, @Nullable Path file, boolean readOnly) {
  /** The smallest logical block, in bytes. */
  public static final int MIN_LBA_SIZE = 512;

  /** The largest logical block, in bytes. */
  public static final int MAX_LBA_SIZE = 65536;

  /** The place of a namespace's bytes. */
  public enum Kind {
    /**
     * Memory, touched lazily, and at most as much as memory and swap have; lost when the controller
     * closes. All of it together may be more than is free when it is written.
     */
    RAM,
    /** A sparse file that survives. */
    FILE,
    /** The same, mapped: faster for what the page cache holds. */
    MAPPED,
    /** Nowhere: writes are discarded and reads leave the host's buffer alone. For measuring. */
    NULL;

    /** Whether it needs a file. */
    boolean inFile() {
      return this == FILE || this == MAPPED;
    }
  }

  /** Checks what can be checked without looking at the file. */
  public NamespaceConfig {
    if (Integer.bitCount(lbaSize) != 1 || lbaSize < MIN_LBA_SIZE || lbaSize > MAX_LBA_SIZE) {
      throw new InvalidRequestException(
          "lba=" + lbaSize + " is not a power of two from 512 to 65536");
    }
    if (kind.inFile() != (file != null)) {
      throw new InvalidRequestException("file= goes with media=file or mapped, and only with them");
    }
    if (size < 0 || (size == 0 && !kind.inFile())) {
      throw new InvalidRequestException("size=" + size + " is not a size in bytes above zero");
    }
    if (size % lbaSize != 0) {
      throw new InvalidRequestException("size=" + size + " is not a multiple of lba=" + lbaSize);
    }
  }

  /** A namespace in memory. */
  public static NamespaceConfig ram(long size, int lbaSize) {
    return new NamespaceConfig(Kind.RAM, size, lbaSize, null, false);
  }

  /** A namespace in a file; {@code size} 0 takes the size of the file, which then must exist. */
  public static NamespaceConfig file(Path file, long size, int lbaSize) {
    return new NamespaceConfig(Kind.FILE, size, lbaSize, file, false);
  }

  /** A namespace that stores nothing. */
  public static NamespaceConfig discarding(long size, int lbaSize) {
    return new NamespaceConfig(Kind.NULL, size, lbaSize, null, false);
  }

  /** The same namespace, write protected. */
  public NamespaceConfig asReadOnly() {
    return new NamespaceConfig(kind, size, lbaSize, file, true);
  }
}
