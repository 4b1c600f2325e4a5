package io.gpunvme.storage.plan;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;

/**
 * I/Os that read the bytes of many ranges. Immutable, safe for all threads.
 *
 * <p>Offsets are those on the member of a striped source, and those in the source otherwise. I/Os
 * do not overlap. If the size of a source is not a multiple of the alignment, the last I/O ends
 * past the source, by less than the alignment: the read of a file is short by that much.
 *
 * <p>Each I/O has pieces: parts of it with their places. A direct I/O has exactly one piece, the
 * whole I/O, aligned in the target. The pieces of all I/Os together are the ranges, cut; no two
 * overlap in a target.
 */
public final class Plan {
  private final PlanArrays arrays;
  private final PlanOptions options;
  private final int ranges;
  private final long bytesAsked;
  private final long bytesRead;
  private final long bytesOverread;
  private final long directBytes;
  private final int directIos;

  /**
   * A plan.
   *
   * @param distinct bytes of the source that are asked for at least once
   */
  Plan(PlanArrays arrays, PlanOptions options, Ranges ranges, long distinct) {
    this.arrays = arrays;
    this.options = options;
    this.ranges = ranges.size();
    long asked = 0;
    for (long length : arrays.pieceLength) {
      asked += length;
    }
    long read = 0;
    long direct = 0;
    int count = 0;
    for (int io = 0; io < arrays.length.length; io++) {
      read += arrays.length[io];
      if (arrays.direct[io]) {
        direct += arrays.length[io];
        count++;
      }
    }
    bytesAsked = asked;
    bytesRead = read;
    bytesOverread = read - distinct;
    directBytes = direct;
    directIos = count;
  }

  /** The options that it was made with. */
  public PlanOptions options() {
    return options;
  }

  /** The number of ranges. */
  public int ranges() {
    return ranges;
  }

  /** How many I/Os. */
  public int ios() {
    return arrays.length.length;
  }

  /** How many of them are direct. */
  public int directIos() {
    return directIos;
  }

  /** How many pieces, in all I/Os. */
  public int pieces() {
    return arrays.pieceLength.length;
  }

  /** Sum of the lengths of all ranges; bytes in two ranges count twice. */
  public long bytesAsked() {
    return bytesAsked;
  }

  /** Sum of the lengths of all I/Os. */
  public long bytesRead() {
    return bytesRead;
  }

  /** Bytes of I/Os that are in no range. */
  public long bytesOverread() {
    return bytesOverread;
  }

  /** Bytes of ranges that I/Os put straight to their place. */
  public long directBytes() {
    return directBytes;
  }

  /** Bytes of ranges that are copied from where an I/O put them. */
  public long stagedBytes() {
    return bytesAsked - directBytes;
  }

  /** The stripe member of an I/O; 0 of a source that is not striped. */
  public int member(int io) {
    return arrays.member[io];
  }

  /** First byte of an I/O on its member, aligned. */
  public long offset(int io) {
    return arrays.offset[io];
  }

  /** Bytes of an I/O, aligned, more than 0. */
  public long length(int io) {
    return arrays.length[io];
  }

  /** Whether all its bytes are one aligned run of one target. */
  public boolean isDirect(int io) {
    return arrays.direct[io];
  }

  /** The first of an I/O's pieces, which are numbered through the plan. */
  public int firstPiece(int io) {
    return arrays.firstPiece[io];
  }

  /** One past the last of an I/O's pieces. */
  public int endPiece(int io) {
    return arrays.firstPiece[io + 1];
  }

  /** First byte of a piece in its I/O; never smaller than that of the piece before. */
  public long pieceOffset(int piece) {
    return arrays.pieceOffset[piece];
  }

  /** Bytes of a piece, more than 0. */
  public long pieceLength(int piece) {
    return arrays.pieceLength[piece];
  }

  /** Index of the buffer that a piece goes to. */
  public int target(int piece) {
    return arrays.target[piece];
  }

  /** First byte of a piece in its buffer. */
  public long targetOffset(int piece) {
    return arrays.targetOffset[piece];
  }

  /**
   * The plan as one JSON object.
   *
   * @param limit the most I/Os to list; {@code ios_left_out} counts the others
   */
  public JsonObject toJson(int limit) {
    JsonObject json = new JsonObject();
    json.add("options", optionsJson());
    json.addProperty("ranges", ranges);
    json.addProperty("bytes_asked", bytesAsked);
    json.addProperty("bytes_read", bytesRead);
    json.addProperty("bytes_overread", bytesOverread);
    json.addProperty("bytes_direct", directBytes);
    json.addProperty("bytes_staged", stagedBytes());
    json.addProperty("ios", ios());
    json.addProperty("ios_direct", directIos);
    json.addProperty("pieces", pieces());
    int listed = Math.clamp(limit, 0, ios());
    JsonArray all = new JsonArray(listed);
    for (int io = 0; io < listed; io++) {
      all.add(ioJson(io));
    }
    json.add("plan", all);
    json.addProperty("ios_left_out", ios() - listed);
    return json;
  }

  private JsonObject optionsJson() {
    JsonObject json = new JsonObject();
    json.addProperty("source_size", options.sourceSize());
    json.addProperty("alignment", options.alignment());
    json.addProperty("target_alignment", options.targetAlignment());
    json.addProperty("max_bytes", options.maxBytes());
    json.addProperty("gap", options.gap());
    json.addProperty("stripe_members", options.stripes().members());
    if (options.stripes().members() > 1) {
      json.addProperty("stripe_unit", options.stripes().unit());
    }
    json.addProperty("order", options.order().toString());
    return json;
  }

  private JsonObject ioJson(int io) {
    JsonObject json = new JsonObject();
    json.addProperty("member", member(io));
    json.addProperty("offset", offset(io));
    json.addProperty("length", length(io));
    json.addProperty("direct", isDirect(io));
    JsonArray pieces = new JsonArray(endPiece(io) - firstPiece(io));
    for (int piece = firstPiece(io); piece < endPiece(io); piece++) {
      JsonObject one = new JsonObject();
      one.addProperty("offset", pieceOffset(piece));
      one.addProperty("length", pieceLength(piece));
      one.addProperty("target", target(piece));
      one.addProperty("target_offset", targetOffset(piece));
      pieces.add(one);
    }
    json.add("pieces", pieces);
    return json;
  }
}
