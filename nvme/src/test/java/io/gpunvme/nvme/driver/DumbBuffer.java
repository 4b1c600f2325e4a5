package io.gpunvme.nvme.driver;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.host.DeviceFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/**
 * A buffer of a graphics card, real or virtual (vgem), which shares it as a dma-buf: a stand-in for
 * GPU memory whose contents can be seen through the card's own mapping. Numbers are those of {@code
 * <drm/drm.h>} and {@code <drm/drm_mode.h>}.
 */
final class DumbBuffer implements SharedBuffer {
  private static final long CREATE_DUMB = 0xC020_64B2L;
  private static final long MAP_DUMB = 0xC010_64B3L;
  private static final long DESTROY_DUMB = 0xC004_64B4L;
  private static final long PRIME_HANDLE_TO_FD = 0xC00C_642DL;
  private static final int BITS_PER_PIXEL = 32;
  private static final int WIDTH = 1024;
  private static final long ROW = WIDTH * 4L;

  private final DeviceFile card;
  private final int handle;
  private final long whole;
  private final Mapping mapping;

  /** Which part of the buffer is shared. */
  private final long offset;

  private final long size;

  /**
   * Makes a buffer.
   *
   * @param whole its bytes, a multiple of 4096
   * @param offset where the memory begins in it, likewise
   * @param size of the memory, likewise
   */
  DumbBuffer(Path node, long whole, long offset, long size) {
    this.card = DeviceFile.open(node);
    this.offset = offset;
    this.size = size;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment create = arena.allocate(32, 8);
      create.set(JAVA_INT, 0, Math.toIntExact(whole / ROW));
      create.set(JAVA_INT, 4, WIDTH);
      create.set(JAVA_INT, 8, BITS_PER_PIXEL);
      card.ioctl(CREATE_DUMB, create);
      this.handle = create.get(JAVA_INT, 16);
      this.whole = create.get(JAVA_LONG, 24);
      MemorySegment map = arena.allocate(16, 8);
      map.set(JAVA_INT, 0, handle);
      card.ioctl(MAP_DUMB, map);
      this.mapping = card.map(map.get(JAVA_LONG, 8), this.whole);
    }
  }

  @Override
  public MemorySegment whole() {
    return mapping.segment();
  }

  @Override
  public MemorySegment memory() {
    return whole().asSlice(offset, size);
  }

  @Override
  public String name() {
    return "%d of %d bytes of %s".formatted(size, whole, card.path());
  }

  @Override
  public long size() {
    return size;
  }

  /** That of vgem is nowhere else. */
  @Override
  public boolean mayBeInHost() {
    return true;
  }

  @Override
  public DmaBuf exportDmaBuf() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment prime = arena.allocate(12, 4);
      prime.set(JAVA_INT, 0, handle);
      prime.set(JAVA_INT, 4, Posix.O_CLOEXEC | Posix.O_RDWR);
      card.ioctl(PRIME_HANDLE_TO_FD, prime);
      return new DmaBuf(prime.get(JAVA_INT, 8), offset, size);
    }
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    throw new UnsupportedOperationException("the card's mapping is there for that");
  }

  @Override
  public void close() {
    mapping.close();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment destroy = arena.allocate(4, 4);
      destroy.set(JAVA_INT, 0, handle);
      card.ioctl(DESTROY_DUMB, destroy);
    }
    card.close();
  }
}
