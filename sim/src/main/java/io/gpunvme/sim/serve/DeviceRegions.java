package io.gpunvme.sim.serve;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.ServerSession.Answer;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * What there is of the function: BARs, of which the doorbells are shared memory, and configuration
 * space. One thread.
 */
final class DeviceRegions {
  /** As PCI Express has it; what the controller has not reads as zeros. */
  private static final int CONFIG_BYTES = 4096;

  private final SimulatedController controller;
  private final @Nullable Bar[] bars = new Bar[Protocol.BARS];
  private @Nullable ClientSleep sleep;

  DeviceRegions(SimulatedController controller) {
    this.controller = controller;
    for (int i = 0; i < bars.length; i++) {
      try {
        bars[i] = controller.bar(i);
      } catch (InvalidRequestException e) {
        // There is none of this number.
      }
    }
  }

  /** The client knows {@link SleepRegion}: it is there from now on. */
  void sleep(ClientSleep page) {
    sleep = page;
  }

  private int count() {
    return sleep == null ? Protocol.REGIONS : SleepRegion.INDEX + 1;
  }

  private static ByteBuffer checked(Message message, int least) {
    ByteBuffer payload = message.payload();
    // argsz says how much of an answer the client takes; that may be more than it sends.
    if (payload.remaining() < least || Integer.toUnsignedLong(payload.getInt(0)) < least) {
      throw refused(message, Errno.EINVAL);
    }
    return payload;
  }

  private static RefusedException refused(Message message, int errno) {
    return new RefusedException(message.command(), errno);
  }

  Answer device(Message message) {
    checked(message, Protocol.DEVICE_INFO_BYTES);
    return Answer.of(
        Protocol.payload(Protocol.DEVICE_INFO_BYTES)
            .putInt(Protocol.DEVICE_INFO_BYTES)
            .putInt(Protocol.DEVICE_RESETS | Protocol.DEVICE_PCI)
            .putInt(count())
            .putInt(Protocol.IRQ_TYPES)
            .flip());
  }

  Answer region(Message message) {
    ByteBuffer asked = checked(message, Protocol.REGION_INFO_BYTES);
    long room = Integer.toUnsignedLong(asked.getInt(0));
    int index = asked.getInt(8);
    if (index < 0 || index >= count()) {
      throw refused(message, Errno.EINVAL);
    }
    long size = size(index);
    int flags = size == 0 ? 0 : Protocol.REGION_READ | Protocol.REGION_WRITE;
    ClientSleep page = sleep;
    if (page != null && index == SleepRegion.INDEX) {
      ByteBuffer answer =
          info(Protocol.REGION_INFO_BYTES, flags | Protocol.REGION_MMAP, index, 0, size).flip();
      return new Answer(answer, page.fd());
    }
    if (index != 0) {
      return Answer.of(info(Protocol.REGION_INFO_BYTES, flags, index, 0, size).flip());
    }
    // The area lies in the file where it lies in the region.
    flags |= Protocol.REGION_MMAP | Protocol.REGION_CAPABILITIES;
    int bytes =
        Protocol.REGION_INFO_BYTES
            + Protocol.CAPABILITY_BYTES
            + 2 * Integer.BYTES
            + Protocol.SPARSE_AREA_BYTES;
    if (room < bytes) {
      // The client asks again with as much room as this says. QEMU wants to be told where the
      // capabilities would be.
      return Answer.of(
          info(bytes, flags, index, Protocol.REGION_INFO_BYTES, size)
              .limit(Protocol.REGION_INFO_BYTES)
              .rewind());
    }
    SharedMemory doorbells = controller.doorbellMemory();
    ByteBuffer answer =
        info(bytes, flags, index, Protocol.REGION_INFO_BYTES, size)
            .putShort((short) Protocol.SPARSE_MMAP)
            .putShort((short) 1)
            .putInt(0)
            .putInt(1)
            .putInt(0)
            .putLong(Registers.DOORBELLS)
            .putLong(doorbells.size() - Registers.DOORBELLS)
            .flip();
    return new Answer(answer, doorbells.fd());
  }

  private static ByteBuffer info(int argsz, int flags, int index, int capabilities, long size) {
    return Protocol.payload(argsz)
        .putInt(argsz)
        .putInt(flags)
        .putInt(index)
        .putInt(capabilities)
        .putLong(size)
        .putLong(0);
  }

  private long size(int index) {
    if (index == Protocol.REGION_CONFIG) {
      return CONFIG_BYTES;
    }
    if (index == SleepRegion.INDEX) {
      return sleep == null ? 0 : SleepRegion.BYTES;
    }
    Bar bar = index < bars.length ? bars[index] : null;
    return bar == null ? 0 : bar.size();
  }

  /** None: the doorbells are memory. */
  Answer ioDescriptors(Message message) {
    int bytes = 4 * Integer.BYTES;
    ByteBuffer asked = checked(message, bytes);
    int index = asked.getInt(8);
    if (index < 0 || index >= count()) {
      throw refused(message, Errno.EINVAL);
    }
    return Answer.of(
        Protocol.payload(bytes).putInt(bytes).putInt(0).putInt(index).putInt(0).flip());
  }

  // ---- accesses

  Answer read(Message message) {
    ByteBuffer asked = message.payload();
    if (asked.remaining() != Protocol.REGION_ACCESS_BYTES) {
      throw refused(message, Errno.EINVAL);
    }
    int count = count(message, asked);
    int offset = (int) asked.getLong(0);
    ByteBuffer answer =
        Protocol.payload(Protocol.REGION_ACCESS_BYTES + count)
            .putLong(offset)
            .putInt(asked.getInt(8))
            .putInt(count);
    if (asked.getInt(8) == Protocol.REGION_CONFIG) {
      readConfig(offset, count, answer);
    } else {
      Bar bar = bar(message, asked, offset, count);
      for (int i = 0; i < count; i += Integer.BYTES) {
        answer.putInt(bar.read32(offset + i));
      }
    }
    return Answer.of(answer.flip());
  }

  Answer write(Message message) {
    ByteBuffer asked = message.payload();
    if (asked.remaining() < Protocol.REGION_ACCESS_BYTES) {
      throw refused(message, Errno.EINVAL);
    }
    int count = count(message, asked);
    int offset = (int) asked.getLong(0);
    if (asked.remaining() != Protocol.REGION_ACCESS_BYTES + count) {
      throw refused(message, Errno.EINVAL);
    }
    if (asked.getInt(8) == Protocol.REGION_CONFIG) {
      writeConfig(asked, offset, count);
    } else {
      Bar bar = bar(message, asked, offset, count);
      for (int i = 0; i < count; i += Integer.BYTES) {
        bar.write32(offset + i, asked.getInt(Protocol.REGION_ACCESS_BYTES + i));
      }
    }
    return Answer.of(
        Protocol.payload(Protocol.REGION_ACCESS_BYTES)
            .putLong(offset)
            .putInt(asked.getInt(8))
            .putInt(count)
            .flip());
  }

  /** How many bytes are read or written; all of them lie in their region. */
  private int count(Message message, ByteBuffer asked) {
    long offset = asked.getLong(0);
    int index = asked.getInt(8);
    long count = Integer.toUnsignedLong(asked.getInt(12));
    boolean known = index >= 0 && index < count();
    long size = known ? size(index) : 0;
    if (count == 0 || offset < 0 || count > size || offset > size - count) {
      throw refused(message, Errno.EINVAL);
    }
    return (int) count;
  }

  /** Registers are read and written by 4 or 8 bytes. */
  private Bar bar(Message message, ByteBuffer asked, int offset, int count) {
    int index = asked.getInt(8);
    Bar bar = index < bars.length ? bars[index] : null;
    boolean width = count == Integer.BYTES || count == Long.BYTES;
    if (bar == null || !width || offset % count != 0) {
      throw refused(message, Errno.EINVAL);
    }
    return bar;
  }

  private void readConfig(int offset, int count, ByteBuffer answer) {
    ConfigSpace config = controller.config();
    for (int at = offset; at < offset + count; at++) {
      answer.put((byte) (at < config.size() ? config.read(at, 1) : 0));
    }
  }

  /** In pieces as the bus would have them. */
  private void writeConfig(ByteBuffer asked, int offset, int count) {
    ConfigSpace config = controller.config();
    int at = offset;
    int end = Math.min(offset + count, config.size());
    while (at < end) {
      int bytes = Math.min(Integer.BYTES, Integer.lowestOneBit(at | Integer.BYTES));
      while (bytes > end - at) {
        bytes /= 2;
      }
      int value = 0;
      for (int i = 0; i < bytes; i++) {
        int from = Protocol.REGION_ACCESS_BYTES + at - offset + i;
        value |= (asked.get(from) & 0xFF) << i * Byte.SIZE;
      }
      config.write(at, bytes, value);
      at += bytes;
    }
  }
}
