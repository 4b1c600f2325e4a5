package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.List;

/**
 * Blocks of several SSDs that kernels address as one range, as the address {@code stripe:} lays
 * them out: unit 0 on the first member, unit 1 on the second, and around again. One namespace is a
 * set of one member.
 *
 * @param members in their turn
 * @param unit bytes on one member before the next one's turn: a power of two, of whole blocks;
 *     without effect for one member
 * @param bytes of all of it: whole units on each member, or whole blocks of the only one
 */
public record StripeSet(List<Member> members, long unit, long bytes) {
  /**
   * One SSD's part.
   *
   * @param namespace of the controller
   * @param slba the block with which the part begins
   */
  public record Member(NvmeController controller, Namespace namespace, long slba) {
    private long bytes() {
      return (namespace.blocks() - slba) * namespace.blockSize();
    }

    @Override
    public String toString() {
      return "%s, %s, from block %d on".formatted(controller.name(), namespace, slba);
    }
  }

  /**
   * Checks.
   *
   * @throws InvalidRequestException if the unit or the size is not as described, or a member does
   *     not have its part
   */
  public StripeSet {
    members = List.copyOf(members);
    int count = members.size();
    if (count == 0) {
      throw new InvalidRequestException("a set without members");
    }
    int block = largestBlock(members);
    if (count > 1 && (unit < block || Long.bitCount(unit) != 1)) {
      throw new InvalidRequestException(
          "a stripe unit of %d bytes is not a power of two of at least %d, the largest block"
              .formatted(unit, block));
    }
    if (count == 1) {
      unit = block;
    }
    // Kernels divide numbers of units by a multiplication, which is exact for so many.
    if (bytes <= 0
        || unit > Long.MAX_VALUE / count
        || bytes % (unit * count) != 0
        || bytes / unit > Long.MAX_VALUE / count) {
      throw new InvalidRequestException(
          "a set of %d bytes is not whole units of %d bytes on each of %d members"
              .formatted(bytes, unit, count));
    }
    for (Member one : members) {
      if (one.slba() < 0 || one.slba() >= one.namespace().blocks() || bytes / count > one.bytes()) {
        throw new InvalidRequestException(
            "%s does not have %d bytes, a member's part of a set of %d"
                .formatted(one, bytes / count, bytes));
      }
    }
  }

  /**
   * All blocks of a namespace.
   *
   * @throws InvalidRequestException if there is no such namespace, or it is not usable
   */
  public static StripeSet of(NvmeController controller, int nsid) {
    Namespace namespace = controller.namespace(nsid);
    return new StripeSet(
        List.of(new Member(controller, namespace, 0)), namespace.blockSize(), namespace.bytes());
  }

  /** Bytes in a block of the set: the largest of the members', a power of two. */
  public int blockSize() {
    return largestBlock(members);
  }

  /** How many blocks of the set there are. */
  public long blocks() {
    return bytes / blockSize();
  }

  /** The controllers, each once, in their turn. */
  public List<NvmeController> controllers() {
    return members.stream().map(Member::controller).distinct().toList();
  }

  private static int largestBlock(List<Member> members) {
    return members.stream().mapToInt(m -> m.namespace().blockSize()).max().orElseThrow();
  }
}
