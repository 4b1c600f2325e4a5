package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Descriptions of the buffers that one controller used last. To describe a large buffer takes time,
 * and loads alternate between a few buffers. The description of a freed buffer is dropped. Safe for
 * all threads.
 */
public final class BufferRegistrations implements AutoCloseable {
  /** The number of unused descriptions that are kept. */
  public static final int MOST = 4;

  /** Of the memory of others: four lists of buffers of 1 GiB. */
  private static final long MOST_MEMORY = 32 << 20;

  private final NvmeController controller;
  private final RegistrationMemory memory;

  // Least recently used first.
  private final Map<DeviceBuffer, Entry> entries = new LinkedHashMap<>(2 * MOST, 0.75f, true);

  /** Starts without descriptions. */
  public BufferRegistrations(NvmeController controller, Accelerator accelerator) {
    this.controller = controller;
    memory = new RegistrationMemory(controller.function(), accelerator, MOST_MEMORY);
  }

  private boolean closed;

  private static final class Entry {
    private final DeviceBuffer buffer;
    private final BufferRegistration registration;

    /** Takes back the wish to be told that the buffer is freed. */
    private final Runnable forget;

    private int users;

    Entry(DeviceBuffer buffer, BufferRegistration registration, Runnable forget) {
      this.buffer = buffer;
      this.registration = registration;
      this.forget = forget;
    }

    void close() {
      forget.run();
      registration.close();
    }
  }

  /** A description in use: it stays until this is closed, and so does the buffer's memory. */
  public final class Use implements AutoCloseable {
    private final Entry entry;

    private Use(Entry entry) {
      this.entry = entry;
    }

    /** The description. */
    public BufferRegistration registration() {
      return entry.registration;
    }

    /** No command in flight needs it. Called once. */
    @Override
    public void close() {
      release(entry);
      entry.buffer.release();
    }
  }

  /**
   * The description of a buffer, which is made if there is none.
   *
   * @throws io.gpunvme.nvme.DmaMappingException as {@link BufferRegistration#create}
   */
  public synchronized Use use(DeviceBuffer buffer) {
    if (closed) {
      throw new IllegalStateException("descriptions for " + controller.name() + " are closed");
    }
    Entry entry = entries.get(buffer);
    if (entry == null) {
      entry = make(buffer);
      entries.put(buffer, entry);
    }
    shrink();
    Use use = new Use(entry);
    buffer.lease();
    entry.users++;
    return use;
  }

  private Entry make(DeviceBuffer buffer) {
    BufferRegistration made =
        BufferRegistration.create(controller.function(), controller.pageSize(), buffer, memory);
    return CloseAll.orClose(
        () -> new Entry(buffer, made, buffer.beforeFree(() -> freed(buffer))), made::close);
  }

  private synchronized void release(Entry entry) {
    entry.users--;
    shrink();
  }

  private void shrink() {
    long unused = entries.values().stream().filter(e -> e.users == 0).count();
    Iterator<Entry> eldest = entries.values().iterator();
    while (unused > MOST) {
      Entry e = eldest.next();
      if (e.users == 0) {
        eldest.remove();
        e.close();
        unused--;
      }
    }
  }

  private synchronized void freed(DeviceBuffer buffer) {
    Entry gone = entries.remove(buffer);
    if (gone != null) {
      gone.close();
    }
  }

  /** Frees all descriptions; no command in flight uses one. The buffers stay. */
  @Override
  public synchronized void close() {
    closed = true;
    entries.values().forEach(Entry::close);
    entries.clear();
    memory.close();
  }
}
