package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Directory;
import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.gpu.queue.DeviceLayout.File;
import io.gpunvme.gpu.queue.DeviceLayout.PathSlot;
import io.gpunvme.gpu.queue.DeviceLayout.Set;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Files that kernels find by their paths and read with {@code read_file}: {@link #deviceAddress} is
 * the {@code const gpunvme::DeviceDirectory*} that you pass to them. Where the files are is looked
 * up once, when it is made: nobody may change them meanwhile. Safe for all threads.
 */
public final class DeviceDirectory extends DeviceTable {
  private final int count;
  private final long memoryBytes;

  private DeviceDirectory(KernelStorage storage, DeviceBuffer memory, int count, long memoryBytes) {
    super(storage, memory);
    this.count = count;
    this.memoryBytes = memoryBytes;
  }

  /**
   * Describes files for kernels.
   *
   * @throws io.gpunvme.base.InvalidRequestException as {@link KernelStorage#directory}
   */
  static DeviceDirectory create(
      KernelStorage storage, Accelerator accelerator, DirectoryFiles collected) {
    List<DirectoryFiles.One> files = collected.sorted();
    PathSlots slots =
        PathSlots.of(files.stream().map(DirectoryFiles.One::path).toList(), PathSlots.MOST_PROBES);
    Places places = Places.of(collected.set(), files, slots);
    DeviceBuffer memory = accelerator.allocate(places.end());
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.size(), Long.BYTES);
      long address = memory.deviceAddress();
      DeviceLayout.setInt(all, Directory.COUNT, files.size());
      DeviceLayout.setInt(
          all, Directory.LONGEST, files.stream().mapToInt(f -> f.path().length).max().orElse(0));
      DeviceLayout.setInt(all, Directory.SLOT_MASK, slots.mask());
      DeviceLayout.setInt(all, Directory.SEED, slots.seed());
      DeviceLayout.setInt(all, Directory.PROBES, slots.probes());
      DeviceLayout.setLong(all, Directory.FILES, address + places.files());
      DeviceLayout.setLong(all, Directory.SLOTS, address + places.slots());
      DeviceLayout.setLong(all, Directory.ENDS, address + places.ends());
      DeviceLayout.setLong(all, Directory.PATHS, address + places.paths());
      DeviceSet.describe(
          storage,
          collected.set(),
          all.asSlice(Places.SET),
          Set.SIZE,
          address + Places.SET + Set.SIZE);
      write(all, files, places, address);
      write(all.asSlice(places.slots()), slots);
      memory.copyFromHost(all, 0);
      return new DeviceDirectory(storage, memory, files.size(), places.end());
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /** Where each part begins behind {@code struct DeviceDirectory}. */
  private record Places(long files, long extents, long slots, long ends, long paths, long end) {
    static final long SET = Directory.SIZE;

    static Places of(StripeSet set, List<DirectoryFiles.One> all, PathSlots table) {
      long members = SET + Set.SIZE + DeviceSet.memberBytes(set);
      long files = Math.ceilDiv(members, File.SIZE) * File.SIZE;
      long extents = files + all.size() * File.SIZE;
      long slots = extents + all.stream().mapToLong(f -> f.extents().size()).sum() * Extent.SIZE;
      long ends = slots + table.size() * PathSlot.SIZE;
      long paths = ends + (long) all.size() * Integer.BYTES;
      long end = paths + all.stream().mapToLong(f -> f.path().length).sum();
      return new Places(files, extents, slots, ends, paths, end);
    }
  }

  private static void write(
      MemorySegment all, List<DirectoryFiles.One> files, Places places, long address) {
    long extents = places.extents();
    long path = places.paths();
    for (int i = 0; i < files.size(); i++) {
      DirectoryFiles.One one = files.get(i);
      DeviceFile.describe(
          all,
          places.files() + i * File.SIZE,
          one.bytes(),
          one.extents().size(),
          address + extents,
          address + Places.SET);
      extents = DeviceFile.describe(all, extents, one.extents());
      MemorySegment.copy(MemorySegment.ofArray(one.path()), 0, all, path, one.path().length);
      path += one.path().length;
      DeviceLayout.setInt(
          all, places.ends() + (long) i * Integer.BYTES, (int) (path - places.paths()));
    }
  }

  private static void write(MemorySegment table, PathSlots slots) {
    for (int i = 0; i < slots.size(); i++) {
      int file = slots.file(i);
      long at = i * PathSlot.SIZE;
      DeviceLayout.setInt(table, at + PathSlot.HASH, file == PathSlot.NONE ? 0 : slots.hash(file));
      DeviceLayout.setInt(table, at + PathSlot.FILE, file);
    }
  }

  /** How many files are in it. */
  public int count() {
    return count;
  }

  /** Bytes of memory of the GPU that it takes, before they are rounded up to what is allocated. */
  public long memoryBytes() {
    return memoryBytes;
  }

  @Override
  String noun() {
    return "directory";
  }
}
