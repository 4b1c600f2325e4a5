package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.memory.DmaBuffer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32;

/**
 * What a whole namespace reads as, a CRC-32 for each MiB: one side reads it from the controller,
 * the other from the file in which the controller keeps its blocks.
 *
 * @param bytes of the namespace
 * @param without the first byte of a block that cannot be read, and counts as zeroes; -1 for none
 * @param withoutBytes how long that block is
 * @param sums one for each MiB; the last may be shorter
 */
public record ImageDigest(long bytes, long without, int withoutBytes, List<String> sums) {
  private static final int MIB = 1 << 20;

  /**
   * Reads all bytes from {@code position} that the buffer has room for; none of the block left out.
   */
  private interface Source {
    void read(long position, ByteBuffer to) throws IOException;
  }

  /**
   * Two commands.
   *
   * @param arguments {@code read DEVICE FOLDER [LBA]}: writes the digest of every namespace, but
   *     for an unreadable block of the first one, to FOLDER/digest.NSID; {@code check DIGEST
   *     IMAGE}: compares one with a file
   */
  public static void main(String[] arguments) throws IOException {
    if (arguments[0].equals("read")) {
      long bad = arguments.length > 3 ? Long.parseLong(arguments[3]) : -1;
      readAll(arguments[1], Path.of(arguments[2]), bad);
      return;
    }
    ImageDigest said = parse(Files.readAllLines(Path.of(arguments[1])));
    String difference = said.difference(Path.of(arguments[2]));
    if (!difference.isEmpty()) {
      System.err.println(difference);
      System.exit(1);
    }
    System.out.println(said);
  }

  private static void readAll(String address, Path folder, long bad) throws IOException {
    try (Device device = Device.open(address, ControllerOptions.defaults());
        DmaBuffer buffer = DmaBuffer.allocate(device.controller().function(), MIB)) {
      long unreadable = bad;
      for (Namespace ns : device.controller().namespaces()) {
        int size = ns.blockSize();
        try (BlockDevice blocks = BlockDevice.open(device.controller(), ns, 8)) {
          Source source =
              (position, to) -> {
                blocks.read(position / size, to.remaining() / size, buffer.range(), 0);
                to.put(buffer.memory().asSlice(0, to.remaining()).asByteBuffer());
              };
          long without = unreadable < 0 ? -1 : unreadable * size;
          ImageDigest digest = of(source, ns.bytes(), without, without < 0 ? 0 : size);
          Files.write(folder.resolve("digest." + ns.nsid()), digest.lines());
        }
        unreadable = -1;
      }
    }
  }

  private static ImageDigest of(Source source, long bytes, long without, int withoutBytes)
      throws IOException {
    List<String> sums = new ArrayList<>();
    ByteBuffer memory = ByteBuffer.allocateDirect(MIB);
    for (long at = 0; at < bytes; at += MIB) {
      int length = (int) Math.min(MIB, bytes - at);
      MemorySegment.ofBuffer(memory.clear()).fill((byte) 0);
      if (without >= at && without < at + length) {
        int before = (int) (without - at);
        read(source, memory, at, 0, before);
        read(source, memory, at, before + withoutBytes, length);
      } else {
        read(source, memory, at, 0, length);
      }
      CRC32 sum = new CRC32();
      sum.update(memory.clear().limit(length));
      sums.add(HexFormat.of().toHexDigits((int) sum.getValue()));
    }
    return new ImageDigest(bytes, without, withoutBytes, sums);
  }

  private static void read(Source source, ByteBuffer memory, long position, int from, int to)
      throws IOException {
    if (from < to) {
      source.read(position + from, memory.clear().position(from).limit(to));
    }
  }

  private List<String> lines() {
    List<String> lines = new ArrayList<>();
    lines.add(bytes + " " + without + " " + withoutBytes);
    lines.addAll(sums);
    return lines;
  }

  static ImageDigest parse(List<String> lines) {
    String[] first = lines.getFirst().split(" ");
    return new ImageDigest(
        Long.parseLong(first[0]),
        Long.parseLong(first[1]),
        Integer.parseInt(first[2]),
        lines.subList(1, lines.size()));
  }

  /** How a file differs from this; empty if it does not. */
  String difference(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      if (channel.size() != bytes) {
        return "%s has %d bytes, the guest read %d".formatted(file, channel.size(), bytes);
      }
      Source source =
          (position, to) -> {
            for (long at = position; to.hasRemaining(); ) {
              int n = channel.read(to, at);
              if (n < 0) {
                throw new IOException(file + " was cut off while it was read");
              }
              at += n;
            }
          };
      List<String> here = of(source, bytes, without, withoutBytes).sums();
      if (here.size() != sums.size()) {
        return "the guest says %d MiB, %s has %d".formatted(sums.size(), file, here.size());
      }
      int wrong = 0;
      int first = -1;
      for (int i = here.size() - 1; i >= 0; i--) {
        if (!here.get(i).equals(sums.get(i))) {
          wrong++;
          first = i;
        }
      }
      return wrong == 0
          ? ""
          : "MiB %d (byte %d) of %s is not what the guest read; %d of %d MiB are not"
              .formatted(first, (long) first * MIB, file, wrong, here.size());
    }
  }

  @Override
  public String toString() {
    String all = bytes + " bytes are what the guest read";
    return without < 0
        ? all
        : "%s, but for byte %d and the %d after it, which cannot be read"
            .formatted(all, without, withoutBytes - 1);
  }
}
