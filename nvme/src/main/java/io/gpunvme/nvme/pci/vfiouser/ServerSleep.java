package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.ffi.Futex;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.host.MappedBar;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Wakes a server that sleeps while the doorbells are quiet: see {@link SleepRegion}. Safe for all
 * threads.
 */
final class ServerSleep implements DoorbellPoller, AutoCloseable {
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

  private final MappedBar.Part page;
  private final MemorySegment words;
  private final MemorySegment asleep;
  private final Runnable cut;

  /** Until somebody asks for the poller, whoever stores to a doorbell does not know of it. */
  private @Nullable Runnable unknown;

  /** How many never look; guarded by this. */
  private int silent;

  private boolean closed;

  /**
   * @param page the region, owned by this object from now on
   * @param cut run when the server is found to have taken the page away
   */
  ServerSleep(MappedBar.Part page, Runnable cut) {
    this.page = page;
    this.cut = cut;
    words = page.mapping().segment();
    asleep = words.asSlice(SleepRegion.ASLEEP, Integer.BYTES);
    // Wakes nobody: what the first wake-up needs takes the virtual machine milliseconds to link.
    try {
      end(-1);
      Futex.wake(asleep);
      Mapping.meetFaults();
    } catch (InternalError | PosixException e) {
      cut.run();
    }
    unknown = keepAwake();
  }

  /** From now on somebody knows that this is to be told of every store. */
  synchronized DoorbellPoller known() {
    Runnable first = unknown;
    if (first != null) {
      unknown = null;
      first.run();
    }
    return this;
  }

  @Override
  public void rang() {
    // The server is the other side: it first says that it sleeps, then looks at the doorbells once
    // more. Either it sees the store before this fence, or this load sees that it sleeps.
    VarHandle.fullFence();
    try {
      int sleep = (int) INT.getOpaque(asleep, 0L);
      if (sleep != 0) {
        end(sleep);
      }
    } catch (PosixException | OutOfMemoryError e) {
      // The server looks by itself after a while.
    } catch (IllegalStateException e) {
      // Closed just now: the store came too late.
    } catch (InternalError e) {
      // The page is gone, or the doorbell of the store before: compiled code learns of it late.
      cut.run();
    }
  }

  /** Of those who have seen the same sleep one wakes the server. */
  private synchronized void end(int sleep) {
    // Not while the page is unmapped: the system call would hold it.
    if (!closed && INT.compareAndSet(asleep, 0L, sleep, 0)) {
      Futex.wake(asleep);
    }
  }

  @Override
  public synchronized Runnable keepAwake() {
    count(1);
    boolean[] over = new boolean[1];
    return () -> {
      synchronized (this) {
        if (!over[0]) {
          over[0] = true;
          count(-1);
        }
      }
    };
  }

  private void count(int more) {
    silent += more;
    if (!closed) {
      // The admin command that makes the queue known wakes the server, which reads it then.
      try {
        INT.setRelease(words, (long) SleepRegion.SILENT, silent);
        Mapping.meetFaults();
      } catch (InternalError e) {
        cut.run();
      }
    }
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      page.mapping().close();
    }
  }
}
