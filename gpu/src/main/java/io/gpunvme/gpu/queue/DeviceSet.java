package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Member;
import io.gpunvme.gpu.queue.DeviceLayout.Set;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A {@link StripeSet} whose blocks kernels read and write: {@link #deviceAddress} is the {@code
 * const gpunvme::DeviceSet*} that you pass to them. Safe for all threads.
 */
public final class DeviceSet extends DeviceTable {
  /** Of {@code unit_shift} where there is one unit only. */
  private static final int ONE_UNIT = 63;

  private final StripeSet set;

  private DeviceSet(KernelStorage storage, DeviceBuffer memory, StripeSet set) {
    super(storage, memory);
    this.set = set;
  }

  static DeviceSet create(KernelStorage storage, Accelerator accelerator, StripeSet set) {
    DeviceBuffer memory = accelerator.allocate(Set.SIZE + memberBytes(set));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.size(), Long.BYTES);
      describe(storage, set, all, Set.SIZE, memory.deviceAddress() + Set.SIZE);
      memory.copyFromHost(all, 0);
      return new DeviceSet(storage, memory, set);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /** Bytes of the members' descriptions. */
  static long memberBytes(StripeSet set) {
    return set.members().size() * Member.SIZE;
  }

  /**
   * Writes {@code struct DeviceSet} and its members.
   *
   * @param struct begins with the structure
   * @param membersAt where the members are in it
   * @param membersAddress where kernels find them
   * @throws InvalidRequestException if the storage does not have all members
   */
  static void describe(
      KernelStorage storage,
      StripeSet set,
      MemorySegment struct,
      long membersAt,
      long membersAddress) {
    List<StripeSet.Member> members = set.members();
    int count = members.size();
    long most = Long.MAX_VALUE;
    for (int i = 0; i < count; i++) {
      StripeSet.Member one = members.get(i);
      int ssd = storage.ssd(one);
      long at = membersAt + i * Member.SIZE;
      DeviceLayout.setLong(struct, at + Member.SLBA, one.slba());
      DeviceLayout.setInt(struct, at + Member.SSD, ssd);
      most =
          Math.min(
              most, (long) storage.maxBlocks(ssd) * one.namespace().blockSize() / set.blockSize());
    }
    if (most == 0) {
      throw new InvalidRequestException(
          "blocks of %d bytes do not fit into one command of each member"
              .formatted(set.blockSize()));
    }
    DeviceLayout.setLong(struct, Set.BLOCKS, set.blocks());
    DeviceLayout.setLong(struct, Set.MEMBERS, membersAddress);
    // 2^64 / count, rounded up.
    DeviceLayout.setLong(struct, Set.INVERSE, count == 1 ? 0 : Long.divideUnsigned(-1, count) + 1);
    DeviceLayout.setInt(struct, Set.MEMBER_COUNT, count);
    DeviceLayout.setInt(struct, Set.BLOCK_SHIFT, Integer.numberOfTrailingZeros(set.blockSize()));
    int unitShift =
        count == 1 ? ONE_UNIT : Long.numberOfTrailingZeros(set.unit() / set.blockSize());
    DeviceLayout.setInt(struct, Set.UNIT_SHIFT, unitShift);
    DeviceLayout.setInt(struct, Set.MAX_BLOCKS, (int) most);
    // A power of two, unlike what one command takes.
    int step = Long.SIZE - 1 - Long.numberOfLeadingZeros(most);
    DeviceLayout.setInt(struct, Set.STEP_SHIFT, Math.min(unitShift, step));
  }

  /** What it describes. */
  public StripeSet set() {
    return set;
  }

  @Override
  String noun() {
    return "set";
  }
}
