package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.pci.RegisterAccess;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import java.nio.ByteBuffer;

/**
 * Registers of a region: one message for each access. No access throws, as none does to a device
 * that was pulled: a server that does not do what it is asked is gone.
 */
final class RegionAccess implements RegisterAccess {
  private final Requests requests;
  private final int region;

  RegionAccess(Requests requests, int region) {
    this.requests = requests;
    this.region = region;
  }

  @Override
  public int read(long offset, int bytes) {
    int ones = bytes == Integer.BYTES ? -1 : (1 << bytes * Byte.SIZE) - 1;
    if (requests.lost() != null) {
      return ones;
    }
    ByteBuffer ask = header(offset, bytes, 0).flip();
    try (Message answer = requests.call(Command.REGION_READ, ask)) {
      ByteBuffer payload = answer.payload();
      if (payload.remaining() != Protocol.REGION_ACCESS_BYTES + bytes
          || payload.getInt(12) != bytes) {
        requests.end("%d bytes answer a read of %d bytes".formatted(payload.remaining(), bytes));
        return ones;
      }
      int value = 0;
      for (int i = 0; i < bytes; i++) {
        value |= (payload.get(Protocol.REGION_ACCESS_BYTES + i) & 0xFF) << i * Byte.SIZE;
      }
      return value;
    } catch (DeviceGoneException | ProtocolException e) {
      return ones;
    } catch (RefusedException e) {
      refused("read", offset, bytes, e);
      return ones;
    }
  }

  @Override
  public void write(long offset, int bytes, int value) {
    if (requests.lost() != null) {
      return;
    }
    ByteBuffer ask = header(offset, bytes, bytes);
    for (int i = 0; i < bytes; i++) {
      ask.put((byte) (value >>> i * Byte.SIZE));
    }
    try (Message answer = requests.call(Command.REGION_WRITE, ask.flip())) {
      if (answer.payload().remaining() < Protocol.REGION_ACCESS_BYTES) {
        requests.end(answer.payload().remaining() + " bytes answer a write");
      }
    } catch (DeviceGoneException | ProtocolException e) {
      // As a write to a device that was pulled.
    } catch (RefusedException e) {
      refused("write", offset, bytes, e);
    }
  }

  private ByteBuffer header(long offset, int bytes, int data) {
    return Protocol.payload(Protocol.REGION_ACCESS_BYTES + data)
        .putLong(offset)
        .putInt(region)
        .putInt(bytes);
  }

  private void refused(String what, long offset, int bytes, RefusedException e) {
    requests.end(
        "it refuses to %s %d bytes at offset %Xh of region %d: %s"
            .formatted(what, bytes, offset, region, e.getMessage()));
  }
}
