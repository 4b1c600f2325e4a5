package io.gpunvme.nvme.fuzz;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * What a server gives to be mapped, given to its client as other files, which can be cut. What the
 * client stores to the one that is relayed goes on to the server.
 */
final class CuttableRegions implements AutoCloseable {
  private static final long PAUSE_NANOS = 20_000;

  private final int relayed;
  private final Map<Integer, Region> regions = new ConcurrentHashMap<>();

  /**
   * @param relayed the number of a region
   */
  CuttableRegions(int relayed) {
    this.relayed = relayed;
  }

  /** The file that the next client is given for a region, in the place of the server's. */
  int instead(int region, int theirs) {
    Region fresh = new Region(theirs);
    Region before = regions.put(region, fresh);
    if (before != null) {
      before.close();
    }
    if (region == relayed) {
      fresh.start();
    }
    return fresh.fd;
  }

  /** Takes the region's memory away from the client. */
  void cut(int region) {
    Region cut = regions.get(region);
    cut.stop();
    Posix.ftruncate(cut.fd, 0);
  }

  @Override
  public void close() {
    regions.values().forEach(Region::close);
    regions.clear();
  }

  private static final class Region {
    final int fd;
    private final Mapping ours;
    private final Mapping theirs;

    /** What the server has: from before the client can store anything. */
    private final int[] known;

    private final Thread relay = Thread.ofPlatform().daemon().unstarted(this::relay);
    private volatile boolean stopped;

    Region(int theirFd) {
      int prot = Posix.PROT_READ | Posix.PROT_WRITE;
      long bytes = Posix.size(theirFd);
      theirs = Mapping.shared(theirFd, 0, bytes, prot);
      fd = Posix.memfdCreate("cuttable", Posix.MFD_CLOEXEC);
      Posix.ftruncate(fd, bytes);
      ours = Mapping.shared(fd, 0, bytes, prot);
      ours.segment().copyFrom(theirs.segment());
      known = ours.segment().toArray(ValueLayout.JAVA_INT);
    }

    void start() {
      relay.start();
    }

    private void relay() {
      MemorySegment from = ours.segment();
      while (!stopped) {
        for (int i = 0; i < known.length; i++) {
          int value = from.getAtIndex(ValueLayout.JAVA_INT, i);
          if (value != known[i]) {
            known[i] = value;
            theirs.segment().setAtIndex(ValueLayout.JAVA_INT, i, value);
          }
        }
        LockSupport.parkNanos(PAUSE_NANOS);
      }
    }

    void stop() {
      stopped = true;
      Uninterrupted.join(relay);
    }

    void close() {
      stop();
      ours.close();
      theirs.close();
      Posix.close(fd);
    }
  }
}
