package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The tensors to load, and the memory for them. Immutable.
 *
 * @param names only these tensors; null: all
 * @param pattern only tensors whose names contain a match; null: all
 * @param order the order of loading
 * @param slices parts of single tensors, by name
 * @param rank the rank of tensor parallelism, 0..{@code ranks - 1}
 * @param ranks the number of ranks; 1: no tensor parallelism
 * @param rules the division of tensors among ranks
 * @param memory how the tensors' memory is allocated
 * @param maxGpuBytes most memory of the accelerator for tensors and ring together; 0: no limit
 * @param ringBytes memory of the accelerator for tensors of which only rows are copied to their
 *     place
 * @param retries how often a failed read is repeated, 0..100
 */
public record LoadRequest(
    @Nullable List<String> names,
    @Nullable Pattern pattern,
    Order order,
    Map<String, TensorSlice> slices,
    int rank,
    int ranks,
    ShardRules rules,
    Memory memory,
    long maxGpuBytes,
    long ringBytes,
    int retries) {
  /** The order of tensors. */
  public enum Order {
    /** As in the files: the fastest. */
    FILE,
    /** By name, with digits compared as numbers: layer 2 before layer 10. */
    LAYERS,
    /** As the names were given. */
    GIVEN
  }

  /** The allocation of memory. */
  public enum Memory {
    /** Many tensors share an allocation, which is freed with the last of them. */
    TOGETHER,
    /** Each tensor has an allocation of its own. */
    EACH
  }

  private static final long DEFAULT_RING = 128 << 20;
  private static final long LEAST_RING = 1 << 20;
  private static final int DEFAULT_RETRIES = 2;
  private static final int MOST_RETRIES = 100;

  /**
   * Checks and copies.
   *
   * @throws InvalidRequestException if a number is out of range, or the order is {@link
   *     Order#GIVEN} without names
   */
  public LoadRequest {
    names = names == null ? null : List.copyOf(names);
    slices = Map.copyOf(slices);
    if (ranks < 1 || rank < 0 || rank >= ranks) {
      throw new InvalidRequestException(
          "there is no rank " + rank + " of " + ranks + ": ranks count from 0");
    }
    if (order == Order.GIVEN && names == null) {
      throw new InvalidRequestException("the order GIVEN needs names");
    }
    if (maxGpuBytes < 0 || ringBytes < LEAST_RING) {
      throw new InvalidRequestException(
          "memory of %d bytes, ring of %d: the ring needs 1 MiB or more, and memory 0 or more"
              .formatted(maxGpuBytes, ringBytes));
    }
    if (retries < 0 || retries > MOST_RETRIES) {
      throw new InvalidRequestException("retries " + retries + " is outside 0.." + MOST_RETRIES);
    }
  }

  /** Everything, in the files' order. */
  public static LoadRequest all() {
    return new LoadRequest(
        null,
        null,
        Order.FILE,
        Map.of(),
        0,
        1,
        ShardRules.rows(),
        Memory.TOGETHER,
        0,
        DEFAULT_RING,
        DEFAULT_RETRIES);
  }

  /** Only these tensors. */
  public LoadRequest names(List<String> some) {
    return new LoadRequest(
        some, pattern, order, slices, rank, ranks, rules, memory, maxGpuBytes, ringBytes, retries);
  }

  /** Only tensors whose names contain a match of this. */
  public LoadRequest matching(Pattern some) {
    return new LoadRequest(
        names, some, order, slices, rank, ranks, rules, memory, maxGpuBytes, ringBytes, retries);
  }

  /** In another order. */
  public LoadRequest order(Order other) {
    return new LoadRequest(
        names, pattern, other, slices, rank, ranks, rules, memory, maxGpuBytes, ringBytes, retries);
  }

  /** Only a part of a tensor. */
  public LoadRequest slice(String tensor, TensorSlice slice) {
    if (slice.isBytes()) {
      throw new InvalidRequestException(
          "%s of tensor '%s' are no tensor: slice a dimension".formatted(slice, tensor));
    }
    Map<String, TensorSlice> more = new LinkedHashMap<>(slices);
    more.put(tensor, slice);
    return new LoadRequest(
        names, pattern, order, more, rank, ranks, rules, memory, maxGpuBytes, ringBytes, retries);
  }

  /** Only what a rank of tensor parallelism needs. */
  public LoadRequest rank(int number, int of, ShardRules by) {
    return new LoadRequest(
        names, pattern, order, slices, number, of, by, memory, maxGpuBytes, ringBytes, retries);
  }

  /** With memory allocated otherwise. */
  public LoadRequest memory(Memory other) {
    return new LoadRequest(
        names, pattern, order, slices, rank, ranks, rules, other, maxGpuBytes, ringBytes, retries);
  }

  /** With at most this much memory of the accelerator, and a ring of this size. */
  public LoadRequest within(long gpuBytes, long ring) {
    return new LoadRequest(
        names, pattern, order, slices, rank, ranks, rules, memory, gpuBytes, ring, retries);
  }

  /** With this many repetitions of failed reads. */
  public LoadRequest retries(int times) {
    return new LoadRequest(
        names, pattern, order, slices, rank, ranks, rules, memory, maxGpuBytes, ringBytes, times);
  }
}
