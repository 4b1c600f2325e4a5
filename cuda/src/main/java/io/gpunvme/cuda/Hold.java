package io.gpunvme.cuda;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Something that lasts until it is closed: an object that cannot be closed meanwhile, a step that
 * will be taken. Any thread closes it; a second time does nothing.
 */
public final class Hold implements AutoCloseable {
  private final AtomicReference<@Nullable Runnable> end;

  Hold(Runnable end) {
    this.end = new AtomicReference<>(end);
  }

  /** One for both; this one and {@code other} are not closed on their own then. */
  public Hold and(Hold other) {
    return new Hold(
        () -> {
          other.close();
          close();
        });
  }

  @Override
  public void close() {
    Runnable step = end.getAndSet(null);
    if (step != null) {
      step.run();
    }
  }
}
