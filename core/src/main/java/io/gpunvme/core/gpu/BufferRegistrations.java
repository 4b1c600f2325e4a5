package io.gpunvme.core.gpu;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Descriptions of the buffers that one controller was given last: making one of a large buffer
 * takes a while, and loads alternate between a few. One that is freed is forgotten. Safe for all
 * threads; what is returned stays valid until {@value #MOST} others were asked for.
 */
public final class BufferRegistrations implements AutoCloseable {
  /** How many are kept. */
  public static final int MOST = 4;

  /** A description, and what takes back the wish to be told that its buffer is freed. */
  private record Entry(BufferRegistration registration, Runnable forget) {}

  private final NvmeController controller;
  private final Accelerator accelerator;

  // Least recently used first.
  private final Map<DeviceBuffer, Entry> entries = new LinkedHashMap<>(2 * MOST, 0.75f, true);

  /** None yet. */
  public BufferRegistrations(NvmeController controller, Accelerator accelerator) {
    this.controller = controller;
    this.accelerator = accelerator;
  }

  /**
   * The description of a buffer.
   *
   * @throws io.gpunvme.nvme.DmaMappingException as {@link BufferRegistration#create}
   */
  public synchronized BufferRegistration of(DeviceBuffer buffer) {
    Entry there = entries.get(buffer);
    if (there != null) {
      return there.registration;
    }
    if (entries.size() == MOST) {
      Iterator<Entry> eldest = entries.values().iterator();
      Entry old = eldest.next();
      eldest.remove();
      old.forget.run();
      old.registration.close();
    }
    BufferRegistration made = BufferRegistration.create(controller, accelerator, buffer);
    try {
      entries.put(buffer, new Entry(made, buffer.beforeFree(() -> freed(buffer))));
      return made;
    } catch (RuntimeException e) {
      made.close();
      throw e;
    }
  }

  private synchronized void freed(DeviceBuffer buffer) {
    Entry gone = entries.remove(buffer);
    if (gone != null) {
      gone.registration.close();
    }
  }

  /** Frees all descriptions; no command in flight uses one. The buffers stay. */
  @Override
  public synchronized void close() {
    entries
        .values()
        .forEach(
            e -> {
              e.forget.run();
              e.registration.close();
            });
    entries.clear();
  }
}
