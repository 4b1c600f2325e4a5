package io.gpunvme.nvme.pci.vfio;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.ffi.EventFd;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.host.DeviceFile;
import io.gpunvme.nvme.pci.vfio.VfioAbi.IrqSet;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Learns that the kernel wants a device back: it is being unplugged, or its driver unbound. The
 * kernel waits, for ever, until this process lets go of it; the device works meanwhile.
 */
final class RemovalWatch implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.vfio");

  private final EventFd event;
  private final Thread thread;
  private volatile boolean closed;

  private RemovalWatch(EventFd event, String name, Runnable wanted) {
    this.event = event;
    this.thread =
        Thread.ofPlatform().daemon().name("gpunvme-removal-" + name).unstarted(() -> wait(wanted));
  }

  /**
   * Begins to watch.
   *
   * @param wanted run once on a thread of this watch
   * @return null if the kernel does not tell
   */
  static @Nullable RemovalWatch start(DeviceFile device, String name, Runnable wanted) {
    EventFd event = EventFd.create();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment set = arena.allocate(IrqSet.SIZE, Long.BYTES);
      set.set(JAVA_INT_UNALIGNED, IrqSet.ARGSZ, (int) IrqSet.SIZE);
      set.set(JAVA_INT_UNALIGNED, IrqSet.FLAGS, IrqSet.DATA_EVENTFD | IrqSet.ACTION_TRIGGER);
      set.set(JAVA_INT_UNALIGNED, IrqSet.INDEX, VfioAbi.REQUEST_IRQ);
      set.set(JAVA_INT_UNALIGNED, IrqSet.COUNT, 1);
      set.set(JAVA_INT_UNALIGNED, IrqSet.DATA, event.fd());
      device.ioctl(VfioAbi.DEVICE_SET_IRQS, set);
    } catch (PosixException e) {
      event.close();
      LOG.log(System.Logger.Level.DEBUG, "removal of {0} is not announced: {1}", name, e);
      return null;
    }
    return start(event, name, wanted);
  }

  /** Watches what somebody else will signal; owns it. */
  static RemovalWatch start(EventFd event, String name, Runnable wanted) {
    RemovalWatch watch = new RemovalWatch(event, name, wanted);
    watch.thread.start();
    return watch;
  }

  private void wait(Runnable wanted) {
    try {
      event.await();
      if (!closed) {
        wanted.run();
      }
    } catch (RuntimeException e) {
      LOG.log(System.Logger.Level.WARNING, "watching for removal", e);
    }
  }

  /** Ends the thread. Idempotent. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    event.signal();
    if (Thread.currentThread() == thread) {
      return; // the descriptor ends with the process
    }
    Uninterrupted.join(thread);
    event.close();
  }
}
