package io.gpunvme.tools.graph;

import io.gpunvme.base.Align;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * The first 4 KiB of an image: how large the graph is, and where its parts begin. docs/graphs.md
 * has the layout.
 *
 * @param vertices 1..2^32 - 1; their numbers begin with 0
 * @param edges directed ones, at least 1
 * @param offsetsAt byte at which the offsets begin: 8 bytes for each vertex, and 8 more
 * @param edgesAt byte at which the edges begin, 4 bytes each
 * @param weightsAt byte at which the weights begin, 1 byte each; 0: it has none
 * @param symmetric whether for each edge there is one back
 */
public record GraphHeader(
    long vertices, long edges, long offsetsAt, long edgesAt, long weightsAt, boolean symmetric) {
  /** Bytes of the header. */
  static final int BYTES = 4096;

  /** Parts begin at multiples of this, and the image ends at one. */
  static final long ALIGNMENT = 64 << 10;

  private static final byte[] MAGIC = "GPUNVMEG".getBytes(StandardCharsets.US_ASCII);
  private static final int VERSION = 1;
  private static final int SYMMETRIC = 1;
  private static final int WEIGHTED = 2;
  private static final long MOST_VERTICES = (1L << 32) - 1;

  /** So that no sum below overflows. */
  private static final long MOST_EDGES = 1L << 56;

  private static final int AT_VERSION = 8;
  private static final int AT_FLAGS = 12;
  private static final int AT_VERTICES = 16;
  private static final int AT_EDGES = 24;
  private static final int AT_OFFSETS = 32;
  private static final int AT_EDGE_LIST = 40;
  private static final int AT_WEIGHTS = 48;
  private static final int AT_CHECKSUM = 56;

  /**
   * Where the parts of a new image are.
   *
   * @param most edges for which there is room before the weights; the image may have fewer
   */
  static GraphHeader plan(long vertices, long most, boolean symmetric, boolean weighted) {
    long edgesAt = align(ALIGNMENT + (vertices + 1) * Long.BYTES);
    long weightsAt = weighted ? align(edgesAt + most * Integer.BYTES) : 0;
    return new GraphHeader(vertices, most, ALIGNMENT, edgesAt, weightsAt, symmetric);
  }

  /** The same with so many edges. */
  GraphHeader withEdges(long fewer) {
    return new GraphHeader(vertices, fewer, offsetsAt, edgesAt, weightsAt, symmetric);
  }

  static long align(long bytes) {
    return Align.up(bytes, ALIGNMENT);
  }

  /** Whether edges have weights. */
  public boolean weighted() {
    return weightsAt != 0;
  }

  /** Bytes of an image. */
  public long bytes() {
    return align(weighted() ? weightsAt + edges : edgesAt + edges * Integer.BYTES);
  }

  /** As it is in an image. */
  ByteBuffer toBytes() {
    ByteBuffer all = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
    all.put(MAGIC)
        .putInt(VERSION)
        .putInt((symmetric ? SYMMETRIC : 0) | (weighted() ? WEIGHTED : 0));
    all.putLong(vertices).putLong(edges).putLong(offsetsAt).putLong(edgesAt).putLong(weightsAt);
    all.putInt(AT_CHECKSUM, checksum(all));
    return all.clear();
  }

  private static int checksum(ByteBuffer all) {
    CRC32C crc = new CRC32C();
    crc.update(all.slice(0, AT_CHECKSUM));
    return (int) crc.getValue();
  }

  /**
   * Reads and checks it.
   *
   * @param bytes the image's first 4 KiB
   * @param size bytes that there are in all
   * @param name of the image, for messages
   * @throws GraphException if this is no image, or not one that fits there
   */
  static GraphHeader read(byte[] bytes, long size, String name) {
    ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    if (bytes.length < BYTES || !Arrays.equals(bytes, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
      throw new GraphException(
          GraphException.Kind.NO_IMAGE,
          name,
          "is no image of a graph: make one (gpunvme graph generate, gpunvme graph convert)");
    }
    int version = all.getInt(AT_VERSION);
    int flags = all.getInt(AT_FLAGS);
    if (version != VERSION || (flags & ~(SYMMETRIC | WEIGHTED)) != 0) {
      throw new GraphException(
          GraphException.Kind.NO_IMAGE,
          name,
          "is an image of version %d with flags %X; this program knows version %d: make it again"
              .formatted(version, flags, VERSION));
    }
    if (all.getInt(AT_CHECKSUM) != checksum(all)) {
      throw damaged(name, "the header's checksum is wrong");
    }
    GraphHeader header =
        new GraphHeader(
            all.getLong(AT_VERTICES),
            all.getLong(AT_EDGES),
            all.getLong(AT_OFFSETS),
            all.getLong(AT_EDGE_LIST),
            all.getLong(AT_WEIGHTS),
            (flags & SYMMETRIC) != 0);
    header.check((flags & WEIGHTED) != 0, size, name);
    return header;
  }

  private void check(boolean weights, long size, String name) {
    if (vertices < 1 || vertices > MOST_VERTICES || edges < 1 || edges > MOST_EDGES) {
      throw damaged(
          name,
          "%d vertices and %d edges: 1 to %d, and 1 to %d, can be in an image"
              .formatted(vertices, edges, MOST_VERTICES, MOST_EDGES));
    }
    long end = part("offsets", offsetsAt, BYTES, (vertices + 1) * Long.BYTES, name);
    end = part("edges", edgesAt, end, edges * Integer.BYTES, name);
    if (weights) {
      end = part("weights", weightsAt, end, edges, name);
    } else if (weightsAt != 0) {
      throw damaged(name, "it has no weights, but a place for them at byte " + weightsAt);
    }
    if (end > size) {
      throw damaged(
          name,
          "it has %d bytes, and %d edges of %d vertices need %d: an incomplete copy"
              .formatted(size, edges, vertices, end));
    }
  }

  /** Returns its end. */
  private static long part(String what, long at, long after, long length, String name) {
    if (at < after || at % ALIGNMENT != 0 || at > MOST_EDGES * Long.BYTES) {
      throw damaged(
          name,
          "the %s begin at byte %d: they lie behind byte %d, at a multiple of %d"
              .formatted(what, at, after, ALIGNMENT));
    }
    return at + length;
  }

  static GraphException damaged(String name, String what) {
    return new GraphException(
        GraphException.Kind.DAMAGED, name, "is damaged: " + what + "; make the image again");
  }
}
