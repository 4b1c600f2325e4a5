package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.RegisterAccess;

/**
 * Configuration space that the kernel offers as part of a file, or another process behind a socket.
 * All ones once the device is gone or the file closed. Safe for all threads.
 */
public final class FileConfigSpace implements ConfigSpace {
  private final RegisterAccess file;
  private final long start;
  private final int size;

  /**
   * @param start where in the file it begins
   * @param size bytes, 256 or 4096
   */
  public FileConfigSpace(RegisterAccess file, long start, int size) {
    this.file = file;
    this.start = start;
    this.size = size;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public int read(int offset, int bytes) {
    check(offset, bytes);
    return file.read(start + offset, bytes);
  }

  @Override
  public void write(int offset, int bytes, int value) {
    check(offset, bytes);
    file.write(start + offset, bytes, value);
  }

  private void check(int offset, int bytes) {
    boolean width = bytes == 1 || bytes == 2 || bytes == 4;
    if (!width || offset < 0 || offset > size - bytes || offset % bytes != 0) {
      throw new InvalidRequestException(
          "access of %d bytes at offset %Xh of %d bytes of configuration space"
              .formatted(bytes, offset, size));
    }
  }
}
