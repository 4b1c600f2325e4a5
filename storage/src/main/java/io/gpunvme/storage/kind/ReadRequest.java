package io.gpunvme.storage.kind;

import io.gpunvme.base.Align;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.plan.Ranges;
import java.io.IOException;
import java.io.Reader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The kinds of a source, and reads of them by (kind, index, length): <em>kind</em> is a name or a
 * number, <em>index</em> the first element, <em>length</em> how many elements. Immutable, safe for
 * all threads.
 */
public final class ReadRequest {
  private final List<Kind> kinds;
  private final Map<String, Kind> byName = new HashMap<>();

  /** Ascending; the kinds are in the same order. */
  private final int[] numbers;

  private ReadRequest(List<Kind> given) {
    kinds = given.stream().sorted(Comparator.comparingInt(Kind::number)).toList();
    numbers = kinds.stream().mapToInt(Kind::number).toArray();
    kinds.stream().filter(kind -> !kind.name().isEmpty()).forEach(k -> byName.put(k.name(), k));
  }

  /** No kinds yet. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * Reads the kinds from JSON, for example
   *
   * <pre>{@code
   * {"block_size": 512,
   *  "kinds": {"tokens": {"start_lba": 0, "blocks": 2048, "element": 4096},
   *            "labels": {"offset": 1048576, "length": 65536, "element": 8, "number": 7},
   *            "12": {"offset": 2097152, "length": 4096, "element": 1}}}
   * }</pre>
   *
   * <p>A kind whose name is a number has no other name. Kinds in blocks need {@code block_size},
   * which comes before the kinds.
   *
   * @throws IOException if the reader throws it
   * @throws InvalidRequestException if it is not such JSON, names something twice, or has an
   *     impossible kind; the message says where
   */
  public static ReadRequest parse(Reader json) throws IOException {
    return KindsJson.read(json);
  }

  /** All kinds, by number. */
  public List<Kind> kinds() {
    return kinds;
  }

  /**
   * A kind by its number.
   *
   * @throws InvalidRequestException if there is none
   */
  public Kind kind(int number) {
    int at = Arrays.binarySearch(numbers, number);
    if (at < 0) {
      throw new InvalidRequestException("no kind " + number + "; " + known());
    }
    return kinds.get(at);
  }

  /**
   * A kind by its name, or by its number in decimal.
   *
   * @throws InvalidRequestException if there is none
   */
  public Kind kind(String name) {
    Kind named = byName.get(name);
    if (named != null) {
      return named;
    }
    if (KindsJson.isNumber(name)) {
      return kind(Integer.parseInt(name));
    }
    throw new InvalidRequestException("no kind '" + name + "'; " + known());
  }

  private String known() {
    int shown = 8;
    List<String> names =
        kinds.stream()
            .limit(shown)
            .map(k -> k.name().isEmpty() ? Integer.toString(k.number()) : k.name())
            .toList();
    String more = kinds.size() > shown ? " and " + (kinds.size() - shown) + " more" : "";
    return "the kinds are: " + String.join(", ", names) + more;
  }

  /**
   * One read, to the start of target 0.
   *
   * @throws InvalidRequestException if there is no such kind, or the elements are not all inside
   */
  public Ranges ranges(String kind, long index, long length) {
    return one(kind(kind), index, length);
  }

  /** The same, with a kind's number. */
  public Ranges ranges(int kind, long index, long length) {
    return one(kind(kind), index, length);
  }

  private static Ranges one(Kind kind, long index, long length) {
    return Ranges.builder().add(kind.offset(index, length), length * kind.element()).build();
  }

  /**
   * Many reads, one after the other in target 0. All arrays are equally long.
   *
   * @param kinds numbers
   * @param indexes first elements
   * @param lengths elements
   * @param alignment of each read's place in the target, bytes, a power of two; 1 for none
   * @throws InvalidRequestException as for one read, or if the places are too far apart to count
   */
  public Ranges packed(int[] kinds, long[] indexes, long[] lengths, long alignment) {
    if (Long.bitCount(alignment) != 1 || alignment < 0) {
      throw new InvalidRequestException("alignment " + alignment + " is not a power of two");
    }
    checkLengths(kinds.length, indexes.length, lengths.length);
    Ranges.Builder ranges = Ranges.builder();
    long at = 0;
    for (int i = 0; i < kinds.length; i++) {
      Kind kind = kind(kinds[i]);
      long offset = kind.offset(indexes[i], lengths[i]);
      long bytes = lengths[i] * kind.element();
      if (at > Long.MAX_VALUE - alignment) {
        throw new InvalidRequestException("read " + i + " goes to a place at 2^63 or more");
      }
      at = Align.up(at, alignment);
      ranges.add(offset, bytes, 0, at);
      at += bytes;
    }
    return ranges.build();
  }

  /**
   * Many reads, each to its place. All arrays are equally long.
   *
   * @param kinds numbers
   * @param indexes first elements
   * @param lengths elements
   * @param targets indices of buffers
   * @param targetOffsets first bytes in the buffers
   * @throws InvalidRequestException as for one read, or if a place is negative
   */
  public Ranges ranges(
      int[] kinds, long[] indexes, long[] lengths, int[] targets, long[] targetOffsets) {
    checkLengths(
        kinds.length, indexes.length, lengths.length, targets.length, targetOffsets.length);
    Ranges.Builder ranges = Ranges.builder();
    for (int i = 0; i < kinds.length; i++) {
      Kind kind = kind(kinds[i]);
      long offset = kind.offset(indexes[i], lengths[i]);
      ranges.add(offset, lengths[i] * kind.element(), targets[i], targetOffsets[i]);
    }
    return ranges.build();
  }

  private static void checkLengths(int... lengths) {
    if (Arrays.stream(lengths).distinct().count() > 1) {
      throw new InvalidRequestException(
          "the arrays have different lengths: " + Arrays.toString(lengths));
    }
  }

  /** Collects kinds. A kind without a number gets one more than the greatest so far. */
  public static final class Builder {
    private final List<Kind> kinds = new ArrayList<>();
    private final Set<Integer> numbers = new HashSet<>();
    private final Set<String> names = new HashSet<>();
    private int next;

    private Builder() {}

    /**
     * Adds a kind.
     *
     * @throws InvalidRequestException if its number or its name is taken, or its name is a number
     */
    public Builder add(Kind kind) {
      if (KindsJson.isNumber(kind.name())) {
        throw new InvalidRequestException("'" + kind.name() + "' is a number, not a name");
      }
      if (numbers.contains(kind.number())) {
        throw new InvalidRequestException("two kinds have the number " + kind.number());
      }
      if (!kind.name().isEmpty() && !names.add(kind.name())) {
        throw new InvalidRequestException("two kinds have the name '" + kind.name() + "'");
      }
      numbers.add(kind.number());
      kinds.add(kind);
      next = Math.max(next, kind.number() == Integer.MAX_VALUE ? 0 : kind.number() + 1);
      return this;
    }

    /** Adds a kind by a name and its bytes. */
    public Builder bytes(String name, long offset, long length, long element) {
      return add(new Kind(next, name, offset, length, element));
    }

    /** Adds a kind by a number and its bytes. */
    public Builder bytes(int number, long offset, long length, long element) {
      return add(new Kind(number, "", offset, length, element));
    }

    /**
     * Adds a kind by a name and its logical blocks.
     *
     * @param blockSize bytes of a logical block
     */
    public Builder blocks(String name, long startLba, long blocks, int blockSize, long element) {
      return bytes(
          name,
          KindsJson.blockBytes(startLba, blockSize),
          KindsJson.blockBytes(blocks, blockSize),
          element);
    }

    /** Adds a kind by a number and its logical blocks. */
    public Builder blocks(int number, long startLba, long blocks, int blockSize, long element) {
      return bytes(
          number,
          KindsJson.blockBytes(startLba, blockSize),
          KindsJson.blockBytes(blocks, blockSize),
          element);
    }

    /** The number that a kind without one gets next. */
    int nextNumber() {
      return next;
    }

    /** The kinds added so far. */
    public ReadRequest build() {
      return new ReadRequest(kinds);
    }
  }
}
