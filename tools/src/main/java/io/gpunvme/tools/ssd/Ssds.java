package io.gpunvme.tools.ssd;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The SSDs that an address names, open for commands of the caller's own: one, the members of a set,
 * or that on which a partition or a file lies. For one thread.
 */
public final class Ssds implements AutoCloseable {
  /** Partition tables and file systems are read by one queue pair: others want theirs. */
  private static final InitiatorOptions LOOK =
      InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(1, 2, 1);

  private final String address;
  private final List<AutoCloseable> open = new ArrayList<>();
  private final GpuStorage storage;
  private final StorageAddress parsed;

  private Ssds(
      StorageAddress address,
      ControllerOptions options,
      String faults,
      int nsid,
      @Nullable Accelerator target,
      InitiatorOptions initiator) {
    requireSsd(address);
    this.address = address.toString();
    parsed = address;
    StorageOptions how =
        StorageOptions.defaults().with(options).with(initiator).withNamespace(nsid);
    try {
      Accelerator host = target == null ? kept(CpuAccelerator.open()) : target;
      DeviceAddress device = address.device();
      if (device == null && !faults.isEmpty()) {
        throw new InvalidRequestException(
            "faults are for one embedded SSD; " + address + " is something else");
      }
      FileAddress file = address.inside();
      if (device != null) {
        NvmeController controller = kept(Device.open(device, options, faults)).controller();
        storage = kept(GpuStorage.over(controller, host, how));
      } else if (file != null) {
        // A storage of a file takes no options that allow writing; its blocks may be written.
        storage = kept(kept(Volume.open(file, host, how, false)).file(file.path()));
      } else {
        storage = kept(GpuStorage.open(address, host, how));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  /**
   * Opens what an address names.
   *
   * @param address text as {@link StorageAddress#parse} reads it
   * @param options of each controller
   * @param faults of an embedded SSD, as {@link Device#open} takes them; empty for none
   * @param nsid namespace of each controller
   * @throws InvalidRequestException if the address makes no sense, or there is no such device
   * @throws io.gpunvme.storage.path.StorageException if there is no such file
   * @throws io.gpunvme.nvme.NvmeException if a controller does not come up
   */
  public static Ssds open(String address, ControllerOptions options, String faults, int nsid) {
    return new Ssds(StorageAddress.parse(address), options, faults, nsid, null, LOOK);
  }

  /**
   * The same, and its {@link #storage} moves data to an accelerator.
   *
   * @param target stays the caller's
   * @param initiator who does it, and how
   */
  public static Ssds open(
      String address,
      ControllerOptions options,
      String faults,
      int nsid,
      Accelerator target,
      InitiatorOptions initiator) {
    return new Ssds(StorageAddress.parse(address), options, faults, nsid, target, initiator);
  }

  /**
   * Refuses an address that names no SSD of ours.
   *
   * @throws InvalidRequestException if it is a file that the kernel reads
   */
  public static void requireSsd(StorageAddress address) {
    if (address.devices().isEmpty()) {
      throw new InvalidRequestException(
          address
              + " is a file of a mounted file system, or a disk: the kernel drives its SSD. Name an"
              + " SSD, e.g. vfio:0000:01:00.0 (gpunvme list shows them)");
    }
  }

  private <T extends AutoCloseable> T kept(T part) {
    open.add(part);
    return part;
  }

  /** The opened address. */
  public String address() {
    return address;
  }

  /** All that is at the address as one source; closed with this. */
  public GpuStorage storage() {
    return storage;
  }

  /** Bytes at the address. */
  public long size() {
    return storage.size();
  }

  /**
   * Where bytes of it are: whole blocks only, as {@link GpuStorage#blocks} says.
   *
   * @param range null: all bytes
   * @return at least one run
   * @throws InvalidRequestException if the range is not inside, or has no whole block
   * @throws io.gpunvme.storage.path.StorageException if the address is a file of a mounted file
   *     system
   */
  public List<BlockRun> blocks(@Nullable ByteRange range) {
    ByteRange wanted = range == null ? new ByteRange(0, Math.max(1, storage.size())) : range;
    if (wanted.bytes() > storage.size() - wanted.offset()) {
      throw new InvalidRequestException(
          "the range %s is not inside %s, which has %d bytes"
              .formatted(wanted, address, storage.size()));
    }
    List<BlockRun> runs = storage.blocks(wanted.offset(), wanted.bytes());
    if (runs.isEmpty()) {
      throw new InvalidRequestException(
          "there is no whole block of an SSD in %s of %s".formatted(wanted, address));
    }
    return runs;
  }

  /**
   * The same of bytes that are to be overwritten.
   *
   * @throws InvalidRequestException also if the SSDs have copies of each other: they would differ
   *     meanwhile, and for good if one of them failed
   */
  public List<BlockRun> blocksToWrite(ByteRange range) {
    if (parsed.hasCopies()) {
      throw new InvalidRequestException(
          "the members of %s have the same data, and would not while one is written: name one of"
                  .formatted(address)
              + " them");
    }
    return blocks(range);
  }

  /** The controllers of some runs, each once. */
  public static List<NvmeController> controllers(List<BlockRun> runs) {
    return runs.stream().map(BlockRun::controller).distinct().toList();
  }

  /** Runs by the SSD on which they are, in the order of {@link #controllers}. */
  public static List<List<BlockRun>> bySsd(List<BlockRun> runs) {
    return List.copyOf(
        runs.stream()
            .collect(
                Collectors.groupingBy(
                    BlockRun::controller, LinkedHashMap::new, Collectors.toList()))
            .values());
  }

  /** Bytes in some runs. */
  public static long bytes(List<BlockRun> runs) {
    return runs.stream().mapToLong(BlockRun::bytes).sum();
  }

  /** Shuts the controllers down, and gives everything back. Idempotent. */
  @Override
  public void close() {
    CloseAll.newestFirst(open);
  }
}
