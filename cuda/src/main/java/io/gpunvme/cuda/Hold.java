package io.gpunvme.cuda;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A state that lasts until this is closed: an object that cannot be closed meanwhile, or a step
 * that will be run. Any thread may close it; a second close does nothing.
 */
public final class Hold implements AutoCloseable {
  private final AtomicReference<@Nullable Runnable> end;

  Hold(Runnable end) {
    this.end = new AtomicReference<>(end);
  }

  /** One hold for both; then do not close this one and {@code other} by themselves. */
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
