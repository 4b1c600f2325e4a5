package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.host.MappedBar;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * What the server says about a region, and the parts of it that it gives to be mapped.
 *
 * @param size bytes, 0 if there is no such region
 * @param parts the caller's to close
 */
record RegionInfo(long size, List<MappedBar.Part> parts) {
  /** Room for capabilities in the answer. */
  private static final int ROOM = 4096;

  private static final int MOST_AREAS = 64;
  private static final long LARGEST = 1L << 46;

  /** A part that can be mapped, offset and size in the region. */
  private record Area(long offset, long size) {}

  /**
   * Asks.
   *
   * @throws io.gpunvme.nvme.ProtocolException if the answer makes no sense
   * @throws RefusedException if the server refuses
   */
  static RegionInfo ask(Requests requests, int index) {
    ByteBuffer ask =
        Protocol.payload(Protocol.REGION_INFO_BYTES)
            .putInt(ROOM)
            .putInt(0)
            .putInt(index)
            .putInt(0)
            .putLong(0)
            .putLong(0)
            .flip();
    try (Message answer = requests.call(Command.DEVICE_GET_REGION_INFO, ask)) {
      ByteBuffer payload = answer.payload();
      if (payload.remaining() < Protocol.REGION_INFO_BYTES || payload.getInt(8) != index) {
        throw requests.breach("no information about region " + index + " in the answer");
      }
      long size = payload.getLong(16);
      long start = payload.getLong(24);
      if (size < 0 || size > LARGEST || start < 0 || start > LARGEST) {
        throw requests.breach("region %d of %Xh bytes at %Xh".formatted(index, size, start));
      }
      int flags = payload.getInt(4);
      if ((flags & Protocol.REGION_MMAP) == 0 || answer.descriptors().isEmpty() || size == 0) {
        return new RegionInfo(size, List.of());
      }
      List<Area> areas = areas(requests, payload, flags, size);
      return new RegionInfo(size, map(requests, answer, areas, start));
    }
  }

  private static List<Area> areas(Requests requests, ByteBuffer payload, int flags, long size) {
    if ((flags & Protocol.REGION_CAPABILITIES) == 0) {
      return List.of(new Area(0, size));
    }
    int at = payload.getInt(12);
    // Each is behind the one before it, so that a chain has an end.
    int least = Protocol.REGION_INFO_BYTES;
    while (at != 0) {
      if (at < least || at > payload.remaining() - Protocol.CAPABILITY_BYTES) {
        throw requests.breach("a capability of a region at offset " + at);
      }
      if (payload.getShort(at) == Protocol.SPARSE_MMAP) {
        return sparse(requests, payload, at + Protocol.CAPABILITY_BYTES, size);
      }
      least = at + Protocol.CAPABILITY_BYTES;
      at = payload.getInt(at + Integer.BYTES);
    }
    return List.of(new Area(0, size));
  }

  private static List<Area> sparse(Requests requests, ByteBuffer payload, int at, long size) {
    int first = at + 2 * Integer.BYTES;
    int count = first > payload.remaining() ? -1 : payload.getInt(at);
    if (count < 0
        || count > MOST_AREAS
        || count * Protocol.SPARSE_AREA_BYTES > payload.remaining() - first) {
      throw requests.breach("a list of areas to map that does not fit its message");
    }
    long page = Posix.pageSize();
    List<Area> areas = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      long offset = payload.getLong(first + i * Protocol.SPARSE_AREA_BYTES);
      long bytes = payload.getLong(first + i * Protocol.SPARSE_AREA_BYTES + Long.BYTES);
      boolean inside = offset >= 0 && bytes > 0 && offset <= size && bytes <= size - offset;
      if (!inside || (offset | bytes) % page != 0) {
        throw requests.breach(
            "%Xh bytes at offset %Xh of a region of %Xh bytes cannot be mapped"
                .formatted(bytes, offset, size));
      }
      areas.add(new Area(offset, bytes));
    }
    return areas;
  }

  private static List<MappedBar.Part> map(
      Requests requests, Message answer, List<Area> areas, long start) {
    int fd = answer.descriptors().getFirst();
    List<MappedBar.Part> parts = new ArrayList<>();
    try {
      long there = Posix.size(fd);
      for (Area area : areas) {
        long from = start + area.offset;
        if (from % Posix.pageSize() != 0 || from + area.size > there) {
          throw requests.breach(
              "%Xh bytes at %Xh of a file of %Xh bytes".formatted(area.size, from, there));
        }
        int access = Posix.PROT_READ | Posix.PROT_WRITE;
        parts.add(new MappedBar.Part(area.offset, Mapping.shared(fd, from, area.size, access)));
      }
      // If that fails, nothing stays mapped.
      answer.close();
      return parts;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, parts, p -> p.mapping().close());
      if (e instanceof PosixException) {
        throw requests.breach("what it gives to be mapped cannot be: " + e.getMessage());
      }
      throw e;
    }
  }
}
